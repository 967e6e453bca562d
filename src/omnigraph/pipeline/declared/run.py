"""Running a declared pipeline: its document, a graph and Spark brought together.

Owns holding what a document says against the schema, turning expressions into columns (the
texts are Spark's own SQL, each parsed as one expression and never put together), and the order:
everything that can be wrong with a document is told before a row is read, and all rows of all
sources are one load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.pipeline.declared.document import (
    Document,
    Expression,
    KeyExpressions,
    TypeMapping,
    read_document,
)
from omnigraph.pipeline.declared.sources import open_sources
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.pipeline.load.entry import SparkTarget, catalog_for, load_given
from omnigraph.pipeline.load.stage.frames import Frame, LoadInput
from omnigraph.pipeline.load.stage.spark_frames import KeyedEnd, misfits
from omnigraph.pipeline.spark.errors import condition_of, failures, message_of, parameter_of
from omnigraph.pipeline.spark.session import SparkEngine, spark_session
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.change.results import LoadResult
from omnigraph.write.load.ndjson.exact import unknown_property
from omnigraph.write.publish.driver import Target

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_BESIDE = ("id", "src", "dst")

_SQL_TYPES = {
    Scalar.STRING: "string",
    Scalar.BLOB: "binary",
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "bigint",
    Scalar.U32: "bigint",
    Scalar.U64: "decimal(20, 0)",
    Scalar.F32: "float",
    Scalar.F64: "double",
    Scalar.DATE: "date",
    Scalar.DATETIME: "timestamp",
}


@dataclass(frozen=True, slots=True)
class KeyedNode:
    """An end by the key of its node, all of whose properties are known."""

    node: NodeType
    members: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class Typed:
    """Rows of one source with the type they become."""

    mapped: TypeMapping
    type: EntityType
    texts: Mapping[str, Expression]
    """The expression of every column that is taken as it is."""
    keyed: Mapping[str, KeyedNode] = field(default_factory=dict)


def typed_rows(document: Document, catalog: Catalog, problems: DocumentErrors) -> list[Typed]:
    """What a document maps, as far as it fits the schema."""
    return [
        typed
        for mapped in document.mapped
        if (typed := _Check(document, catalog, problems).typed(mapped)) is not None
    ]


@dataclass(frozen=True, slots=True)
class _Check:
    document: Document
    catalog: Catalog
    problems: DocumentErrors

    def typed(self, mapped: TypeMapping) -> Typed | None:
        if mapped.source not in self.document.sources:
            hint = _hint(mapped.source, self.document.sources)
            self.problems.say(mapped.source_spot, f"there is no source '{mapped.source}'{hint}")
        type_ = self._type(mapped)
        if type_ is None:
            return None
        self._check_values(mapped, type_)
        texts = dict(mapped.values)
        keyed: dict[str, KeyedNode] = {}
        if mapped.id is not None:
            texts["id"] = mapped.id
        for end, value in mapped.ends.items():
            if isinstance(value, Expression):
                texts[end] = value
            elif isinstance(type_, EdgeType):
                node = self._keyed(value, type_.source if end == "src" else type_.target)
                if node is not None:
                    keyed[end] = node
        if not mapped.values and not mapped.ends and mapped.id is None:
            self.problems.say(mapped.spot, "no value is given: write `set`")
        return Typed(mapped, type_, texts, keyed)

    def _type(self, mapped: TypeMapping) -> EntityType | None:
        name = mapped.type_name
        found: EntityType | None
        other: EntityType | None
        node, edge = self.catalog.nodes.get(name), self.catalog.find_edge(name)
        found, other = (node, edge) if mapped.kind == "node" else (edge, node)
        if found is not None:
            return found
        if other is not None:
            said = f"{other.name} is {'an edge' if other.kind == 'edge' else 'a node'} type"
            self.problems.say(mapped.spot, f"{said}: write it below `{other.kind}s`")
            return None
        known = self.catalog.nodes if mapped.kind == "node" else self.catalog.edges
        hint = _hint(name, known)
        self.problems.say(mapped.spot, f"unknown {mapped.kind} type '{name}'{hint}")
        return None

    def _check_values(self, mapped: TypeMapping, type_: EntityType) -> None:
        for name, value in mapped.values.items():
            if name in type_.properties:
                continue
            if name in _BESIDE:
                said = f"`{name}` stands beside `set`, not in it"
            else:
                said = unknown_property(type_, name)
            self.problems.say(value.spot, said)
        for name, property_ in type_.properties.items():
            if property_.is_required and property_.embedding is None and name not in mapped.values:
                self.problems.say(
                    mapped.spot, f"{type_.name}.{name} must have a value: write it into `set`"
                )

    def _keyed(self, value: KeyExpressions, wanted: str) -> KeyedNode | None:
        name = value.type_name.removeprefix("node:")
        node = self.catalog.nodes.get(wanted)
        if name != wanted or node is None:
            self.problems.say(value.spot, f"this end is a {wanted}, not a {value.type_name}")
            return None
        if not node.key:
            self.problems.say(
                value.spot, f"{node.name} has no key: write an expression for its id instead"
            )
            return None
        for member, expression in value.members.items():
            if member not in node.key:
                hint = _hint(member, node.key)
                self.problems.say(
                    expression.spot, f"'{member}' is not in the key of {node.name}{hint}"
                )
        missing = [member for member in node.key if member not in value.members]
        if missing:
            listed = ", ".join(missing)
            self.problems.say(value.spot, f"the key of {node.name} needs {listed} as well")
            return None
        return KeyedNode(node, {member: value.members[member] for member in node.key})


def _hint(name: str, known: Iterable[str]) -> str:
    hint = name_hint(name, known)
    return f"; {hint}" if hint else ""


@dataclass(frozen=True, slots=True)
class _Named:
    """An expression and the column that it becomes; ``kind`` is what the column has to hold."""

    column: str
    expression: Expression
    kind: ValueType | None


def plan(typed: Typed, source: DataFrame, problems: DocumentErrors) -> Frame | None:
    """The rows of one mapping, or None, and the problems of its expressions."""
    mapped = typed.mapped
    before = len(problems.found)
    rows = source
    if mapped.where is not None:
        rows = _filtered(source, mapped.where, mapped.source, problems)
    named = {one.column: one for one in _named(typed)}
    columns = {
        name: column
        for name, one in named.items()
        if (column := _column(rows, one.expression, mapped.source, problems)) is not None
    }
    ends = {
        end: KeyedEnd(keyed.node, {name: _key_column(end, name) for name in keyed.members})
        for end, keyed in typed.keyed.items()
        if all(_key_column(end, name) in columns for name in keyed.members)
    }
    frame = rows.select(*(column.alias(name) for name, column in columns.items()))
    is_whole = len(problems.found) == before
    for violation in misfits(frame, typed.type, mapped.label, ends):
        said = violation.text.removeprefix(f"frame '{mapped.label}': ")
        guilty = named.get(violation.property or "")
        if guilty is not None:
            problems.say(guilty.expression.spot, said + _cast_hint(guilty))
        elif is_whole:
            # Else it is the column that could not be made which is missed.
            problems.say(mapped.spot, said)
    return Frame(typed.type, mapped.label, frame, ends) if is_whole else None


def _named(typed: Typed) -> Iterator[_Named]:
    text = ValueType(Scalar.STRING)
    for name, expression in typed.texts.items():
        property_ = typed.type.properties.get(name)
        yield _Named(name, expression, text if property_ is None else property_.type)
    for end, keyed in typed.keyed.items():
        for name, expression in keyed.members.items():
            kind = keyed.node.properties[name].type
            yield _Named(_key_column(end, name), expression, kind)


def _key_column(end: str, name: str) -> str:
    # A name that no property can have.
    return f"{end} {name}"


def _filtered(
    source: DataFrame, where: Expression, source_name: str, problems: DocumentErrors
) -> DataFrame:
    from pyspark.sql.functions import expr

    try:
        rows = source.where(expr(where.text))
        _ = rows.schema
    except failures() as error:
        problems.say(where.spot, _said(error, source, source_name))
        return source
    return rows


def _column(
    rows: DataFrame, expression: Expression, source_name: str, problems: DocumentErrors
) -> Column | None:
    """An expression that Spark understands; it is analysed by itself, to blame the right one."""
    from pyspark.sql.functions import expr

    try:
        column = expr(expression.text)
        _ = rows.select(column).schema
    except failures() as error:
        problems.say(expression.spot, _said(error, rows, source_name))
        return None
    return column


def _said(error: Exception, rows: DataFrame, source_name: str) -> str:
    if condition_of(error).startswith("UNRESOLVED_COLUMN"):
        name = parameter_of(error, "objectName").replace("`", "")
        hint = name_hint(name, rows.columns)
        return f"source '{source_name}' has no column '{name}'" + (f"; {hint}" if hint else "")
    return message_of(error) or str(error).partition("\n")[0]


def _cast_hint(named: _Named) -> str:
    kind = named.kind
    if kind is None or kind.is_list or kind.scalar not in _SQL_TYPES:
        return ""
    return f"; write cast({named.expression.text} as {_SQL_TYPES[kind.scalar]})"


def plans(
    typed: list[Typed], sources: Mapping[str, DataFrame], problems: DocumentErrors
) -> list[Frame]:
    """The rows of all mappings whose sources could be opened."""
    found = (
        plan(one, sources[one.mapped.source], problems)
        for one in typed
        if one.mapped.source in sources
    )
    return [frame for frame in found if frame is not None]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A document that was read, and what is wrong with it so far."""

    document: Document
    problems: DocumentErrors

    @classmethod
    def of(cls, pipeline: str | Path | Pipeline) -> Pipeline:
        """Read a document; what is no YAML at all is refused here, everything else later."""
        if isinstance(pipeline, cls):
            return pipeline
        if not isinstance(pipeline, str | Path):
            found = type(pipeline).__name__
            raise BadRequest(f"a pipeline is the path of its document, not a {found}")
        return cls(*read_document(str(pipeline)))

    def run(
        self,
        graph: Target,
        spark: SparkTarget,
        *,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> LoadResult:
        """Load all that the document maps, as one commit; ``graph`` is any of its branches."""
        target = self._target(graph)
        options = replace(self.document.options, dry_run=dry_run)
        with self._planned(target, spark, columns_only=False) as (frames, engine):
            return load_given(
                LoadInput(unwritten=tuple(frames)),
                options,
                target,
                engine,
                actor=actor,
                progress=spark.progress,
                notes={"pipeline": Path(self.document.file).name},
            )

    def validate(self, graph: Target, spark: SparkTarget) -> None:
        """Tell everything that is wrong without reading more than columns."""
        with self._planned(self._target(graph), spark, columns_only=True):
            return

    def _target(self, graph: Target) -> Target:
        document = self.document
        return replace(graph, branch=document.branch, fork_from=document.from_branch)

    @contextmanager
    def _planned(
        self, target: Target, spark: SparkTarget, *, columns_only: bool
    ) -> Iterator[tuple[list[Frame], SparkEngine]]:
        typed = typed_rows(self.document, catalog_for(target), self.problems)
        # Spark takes seconds to start: what can be told without it is told at once.
        self.problems.raise_if_any()
        with (
            spark_session(spark.settings, existing=spark.session) as engine,
            open_sources(
                self.document, engine, self.problems, columns_only=columns_only
            ) as sources,
        ):
            frames = plans(typed, sources, self.problems)
            self.problems.raise_if_any()
            yield frames, engine
