"""Stored queries: the `.gq` sources that a graph is served with, by the name of each query.

Owns reading them and checking them against the schema when the graph is opened. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.lang.lint_report import ResultField
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.compile import check_query, describe_params, parse_source
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """One query that can be called by its name."""

    name: str
    source: Source
    syntax: ast.Query

    @property
    def is_mutation(self) -> bool:
        """Whether it changes something."""
        return not isinstance(self.syntax.body, ast.Read)

    @property
    def params(self) -> tuple[ResultField, ...]:
        """What it takes, in the order of its declaration."""
        return describe_params(self.syntax)

    def fits(self, catalog: Catalog) -> bool:
        """Whether a graph with these types has all that it names."""
        compiled, _ = check_query(self.source, self.syntax, catalog)
        return compiled is not None


@dataclass(frozen=True, slots=True)
class StoredQueries:
    """The stored queries of one graph."""

    by_name: Mapping[str, StoredQuery] = field(default_factory=dict)

    @classmethod
    def read(cls, paths: Sequence[str]) -> StoredQueries:
        """All queries of the named files, and of the `.gq` files of the named directories."""
        return cls.of(source for path in paths for source in _sources(Path(path)))

    @classmethod
    def named(cls, paths: Sequence[tuple[str, str | None]]) -> StoredQueries:
        """The same; of a path that has a name beside it just the query of that name."""
        whole = [source for path, name in paths if name is None for source in _sources(Path(path))]
        found = dict(cls.of(iter(whole)).by_name)
        for path, name in paths:
            if name is None:
                continue
            one = cls.of(_sources(Path(path))).by_name.get(name)
            if one is None:
                raise BadRequest(f"{path} holds no query `{name}`")
            if name in found:
                raise BadRequest(f"query `{name}` is stored twice: rename one of them")
            found[name] = one
        return cls(dict(sorted(found.items())))

    @classmethod
    def of(cls, sources: Iterator[Source]) -> StoredQueries:
        """All queries of some texts; two of one name are refused."""
        found: dict[str, StoredQuery] = {}
        for source in sources:
            for query in parse_source(source).queries:
                name = query.name.text
                if name in found:
                    raise BadRequest(
                        f"query `{name}` is stored twice, in {found[name].source.name} and in "
                        f"{source.name}: rename one of them"
                    )
                found[name] = StoredQuery(name, source, query)
        return cls(dict(sorted(found.items())))

    def check(self, catalog: Catalog) -> None:
        """Raise for the first query that does not fit a schema."""
        from omnigraph.lang.diagnostics import as_error

        for query in self.by_name.values():
            compiled, diagnostics = check_query(query.source, query.syntax, catalog)
            if compiled is None:
                raise as_error(diagnostics)

    @property
    def texts(self) -> Mapping[str, str]:
        """The texts of all sources, as a change of the schema is checked against them."""
        return {query.source.name: query.source.text for query in self.by_name.values()}


def _sources(path: Path) -> Iterator[Source]:
    try:
        files = sorted(path.glob("*.gq")) if path.is_dir() else [path]
        for file in files:
            if file.exists() and not file.is_file():
                raise BadRequest(f"cannot read stored queries from {file}: it is not a file")
            yield Source(file.read_text(encoding="utf-8-sig"), str(file))
    except OSError as error:
        raise BadRequest(f"cannot read stored queries from {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{path} is not UTF-8 text (byte {error.start})") from error
