"""The document of a declared pipeline: where rows come from, and which types they become.

Owns its keys and their meaning as plain data. Knows neither a graph nor Spark: whether a type
or a column exists is asked later.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from omnigraph.errors import BadRequest
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.pipeline.declared.checks import DeclaredCheck, read_checks
from omnigraph.pipeline.declared.yaml_node import (
    DocumentErrors,
    YamlLocation,
    YamlNode,
    read_written,
    substituted,
)
from omnigraph.write.load.operation import LoadOptions

_HOW = ("mode", "on_error", "max_rejects", "rejects", "run_id")
_WHAT = ("sources", "nodes", "edges", "checks")
_KEYS = ("graph", "branch", "from", *_HOW, *_WHAT, "steps")
_STEP = ("name", *_HOW, *_WHAT)
_SOURCE = ("format", "path", "options", "schema", "table", "query")
_NODE = ("from", "where", "set", "id")
_EDGE = ("from", "src", "dst", "where", "set", "id")


@dataclass(frozen=True, slots=True)
class Expression:
    """A text of Spark SQL over the columns of a source."""

    text: str
    spot: YamlLocation

    @property
    def said(self) -> str:
        """What it says, wherever it stands."""
        return self.text


@dataclass(frozen=True, slots=True)
class KeyExpressions:
    """An end of edges by the key of its node: an expression for every key property."""

    type_name: str
    members: Mapping[str, Expression]
    spot: YamlLocation

    @property
    def said(self) -> list[Any]:
        """What they say, wherever they stand."""
        return [self.type_name, {name: one.said for name, one in self.members.items()}]


End = Expression | KeyExpressions


@dataclass(frozen=True, slots=True)
class PipelineSource:
    """Where rows come from: files, a table of Spark's catalog, or a query over other sources."""

    name: str
    spot: YamlLocation
    format: str | None = None
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    table: str | None = None
    query: str | None = None

    @property
    def said(self) -> list[Any]:
        """What it says, wherever it stands."""
        return [self.format, self.paths, self.options, self.schema, self.table, self.query]


@dataclass(frozen=True, slots=True)
class TypeMapping:
    """Rows of one source as entities of one type."""

    kind: Literal["node", "edge"]
    type_name: str
    spot: YamlLocation
    source: str
    source_spot: YamlLocation
    values: Mapping[str, Expression]
    where: Expression | None = None
    id: Expression | None = None
    ends: Mapping[str, End] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What its rows are known by."""
        return self.spot.path

    @property
    def said(self) -> list[Any]:
        """What it says, wherever it stands."""
        some = (self.values, self.ends, {"where": self.where, "id": self.id})
        texts = [{name: one and one.said for name, one in members.items()} for members in some]
        return [self.kind, self.type_name, self.source, *texts]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole pipeline; ``graph`` is None when the document leaves it to whoever runs it."""

    file: str
    graph: str | None
    branch: str
    from_branch: str | None
    options: LoadOptions
    sources: Mapping[str, PipelineSource]
    mapped: tuple[TypeMapping, ...]
    checks: Mapping[str, DeclaredCheck] = field(default_factory=dict)
    name: str | None = None
    """What it is called as a step of another."""
    steps: tuple[Document, ...] = ()

    @property
    def parts(self) -> tuple[Document, ...]:
        """What is loaded, one after the other: its steps, or itself."""
        return self.steps or (self,)

    @property
    def said(self) -> list[Any]:
        """What is loaded, whatever the document looks like."""
        sources = {name: source.said for name, source in self.sources.items()}
        return [sources, [mapping.said for mapping in self.mapped]]


def read_document(
    path: str | Path, variables: Mapping[str, str] = os.environ
) -> tuple[Document, DocumentErrors]:
    """Read a document as far as it can be understood, and what is wrong with its shape."""
    place = Path(path).expanduser()
    try:
        source = place.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise BadRequest(f"cannot read {place}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"{place} is not UTF-8 text (byte {error.start})") from None
    problems = DocumentErrors(str(place))
    written = read_written(str(place), source, problems)
    return _Reader(place, problems, variables).document(written), problems


@dataclass(frozen=True, slots=True)
class _Reader:
    file: Path
    problems: DocumentErrors
    variables: Mapping[str, str]

    def document(self, written: YamlNode) -> Document:
        found = written.known(_KEYS)
        if "steps" not in found:
            return self._part(found, written)
        for extra in {"nodes", "edges"} & found.keys():
            found[extra].say("in a document with `steps`, this belongs into one of them")
        steps = [self._step(one, found) for one in found["steps"].items()]
        if not found["steps"].is_list or not steps:
            found["steps"].say("this must be a list of steps: - { name: …, nodes: … }")
        names = [step.name for step in steps]
        for at, name in enumerate(names):
            if name is not None and name in names[:at]:
                found["steps"].items()[at].say(f"there is a step '{name}' before it")
        whole = self._part(found, written, is_whole=True)
        return replace(whole, steps=tuple(steps))

    def _step(self, written: YamlNode, shared: Mapping[str, YamlNode]) -> Document:
        """A step: what it does not say is as the document says."""
        own = written.known(_STEP)
        name = self._of(own, "name")
        if name is None and written.is_mapping:
            written.say("`name` is missing: what the step is called")
        # The places of the whole are the step's, too, and it goes to the same branch.
        common = {key: value for key, value in shared.items() if key not in _WHAT}
        step = self._part({**common, **own}, written)
        options = step.options
        if options.run_id is not None and "run_id" not in own:
            options = replace(options, run_id=f"{options.run_id}/{name}")
        return replace(
            step,
            name=name,
            options=options,
            sources={**self._sources(shared.get("sources")), **step.sources},
            checks={**read_checks(shared.get("checks"), self._place), **step.checks},
        )

    def _part(
        self, found: Mapping[str, YamlNode], written: YamlNode, *, is_whole: bool = False
    ) -> Document:
        """One load; ``is_whole`` is what steps have in common, and loads nothing by itself."""
        options = self._options(found, written)
        for name in ("mode",) if written.spot.path else ("mode", "sources"):
            if name not in found and not is_whole:
                written.problems.say(
                    YamlLocation(written.below(name), written.line), "this key is missing"
                )
        mapped = [
            *self._mapped(found.get("nodes"), "node"),
            *self._mapped(found.get("edges"), "edge"),
        ]
        if not (is_whole or {"nodes", "edges"} & found.keys()):
            written.say("there is nothing to load: write `nodes` or `edges`")
        base = self._branch(found, "from")
        return Document(
            str(self.file),
            self._place(found.get("graph")),
            self._branch(found, "branch") or MAIN,
            base,
            options,
            self._sources(found.get("sources")),
            tuple(mapped),
            read_checks(found.get("checks"), self._place),
        )

    # -- how to load -----------------------------------------------------------------

    def _options(self, found: Mapping[str, YamlNode], written: YamlNode) -> LoadOptions:
        given = {
            name: self._text(found[name]) if name in found else None
            for name in ("mode", "on_error", "run_id")
        }
        limit = self._number(found.get("max_rejects"))
        checks: list[tuple[str, Callable[[], object]]] = [
            ("mode", lambda: LoadOptions.of(given["mode"] or "append")),
            ("on_error", lambda: LoadOptions.of("append", on_error=given["on_error"] or "fail")),
        ]
        sound = True
        for name, check in checks:
            try:
                check()
            except BadRequest as error:
                sound = False
                found[name].say(str(error))
        options = LoadOptions("append")
        if sound:
            try:
                options = LoadOptions.of(
                    given["mode"] or "append",
                    on_error=given["on_error"] or "fail",
                    rejects=self._place(found.get("rejects")),
                    max_rejects=limit,
                    run_id=given["run_id"],
                )
            except BadRequest as error:
                found.get("max_rejects", written).say(str(error))
        return options

    def _number(self, written: YamlNode | None) -> int | None:
        text = None if written is None else written.text()
        if text is None or written is None:
            return None
        if not (text.isascii() and text.isdigit()):
            written.say(f"this must be a number of rows, found {text!r}")
            return None
        return int(text)

    def _branch(self, found: Mapping[str, YamlNode], name: str) -> str | None:
        text = self._text(found[name]) if name in found else None
        if text is None:
            return None
        try:
            return normalise_branch(text)
        except BadRequest as error:
            found[name].say(str(error))
            return None

    # -- sources ---------------------------------------------------------------------

    def _sources(self, written: YamlNode | None) -> dict[str, PipelineSource]:
        members = {} if written is None else written.members()
        return {name: self._source(name, value) for name, value in members.items()}

    def _source(self, name: str, written: YamlNode) -> PipelineSource:
        found = written.known(_SOURCE)
        ways = [way for way in ("path", "table", "query") if way in found]
        if len(ways) > 1:
            written.say(f"{' and '.join(ways)}: a source has only one of them")
        elif not ways and "format" not in found and (written.is_mapping or written.is_null):
            written.say("where does it come from? write `format` and `path`, `table`, or `query`")
        if "path" in found and "format" not in found:
            written.say(
                "`format` is missing: csv, json, parquet, orc or any other that Spark reads"
            )
        for extra in ("format", "schema", "options"):
            if extra in found and ({"table", "query"} & set(ways)):
                found[extra].say(f"a source with `{ways[0]}` has no `{extra}`")
        options = found["options"].members() if "options" in found else {}
        return PipelineSource(
            name,
            written.spot,
            self._of(found, "format"),
            self._paths(found.get("path")),
            {key: self._text(value) or "" for key, value in options.items()},
            self._of(found, "schema"),
            self._of(found, "table"),
            # Not substituted: `${…}` has a meaning of its own in Spark's SQL.
            found["query"].text() if "query" in found else None,
        )

    def _paths(self, written: YamlNode | None) -> tuple[str, ...]:
        if written is None:
            return ()
        if written.is_list and not written.items():
            written.say("this is empty")
        places = [self._place(one) for one in written.one_or_more()]
        return tuple(place for place in places if place is not None)

    # -- what becomes of rows --------------------------------------------------------

    def _mapped(self, written: YamlNode | None, kind: Literal["node", "edge"]) -> list[TypeMapping]:
        if written is None:
            return []
        found = []
        for name, value in written.members().items():
            if value.is_list and not value.items():
                value.say("this is empty")
            for one in value.one_or_more():
                mapped = self._one(name, one, kind)
                if mapped is not None:
                    found.append(mapped)
        return found

    def _one(
        self, name: str, written: YamlNode, kind: Literal["node", "edge"]
    ) -> TypeMapping | None:
        found = written.known(_NODE if kind == "node" else _EDGE)
        source = found["from"].text() if "from" in found else None
        if "from" not in found and (written.is_mapping or written.is_null):
            written.say("`from` is missing: the name of a source")
        ends = {end: self._end(found[end]) for end in ("src", "dst") if end in found}
        for end in ("src", "dst") if kind == "edge" and written.is_mapping else ():
            if end not in found:
                written.say(f"`{end}` is missing: an expression for the id of a node, or its key")
        values = found["set"].members() if "set" in found else {}
        if source is None:
            return None
        expressions = {key: self._expression(value) for key, value in values.items()}
        return TypeMapping(
            kind,
            name,
            written.spot,
            source,
            found["from"].spot,
            {key: value for key, value in expressions.items() if value is not None},
            self._expression(found["where"]) if "where" in found else None,
            self._expression(found["id"]) if "id" in found else None,
            {end: value for end, value in ends.items() if value is not None},
        )

    def _expression(self, written: YamlNode) -> Expression | None:
        # A null that is written is SQL's, and an empty place is a mistake.
        if written.is_null and isinstance(written.node.value, str) and written.node.value.strip():
            return Expression("null", written.spot)
        text = written.text()
        return None if text is None else Expression(text, written.spot)

    def _end(self, written: YamlNode) -> End | None:
        if not written.is_mapping:
            return self._expression(written)
        types = written.members()
        if len(types) != 1:
            written.say("an end is one node: write { Type: { key property: expression } }")
            return None
        ((name, members),) = types.items()
        expressions = {key: self._expression(value) for key, value in members.members().items()}
        return KeyExpressions(
            name,
            {key: value for key, value in expressions.items() if value is not None},
            members.spot,
        )

    # -- texts -----------------------------------------------------------------------

    def _of(self, found: Mapping[str, YamlNode], name: str) -> str | None:
        return self._text(found[name]) if name in found else None

    def _text(self, written: YamlNode) -> str | None:
        text = written.text()
        return None if text is None else substituted(written, text, self.variables)

    def _place(self, written: YamlNode | None) -> str | None:
        """A path, relative to the document unless it is absolute or an address."""
        text = None if written is None else self._text(written)
        if text is None or "://" in text:
            return text
        return str(self.file.absolute().parent / Path(text).expanduser())
