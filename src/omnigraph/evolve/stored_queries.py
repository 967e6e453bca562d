"""Stored queries beside a change of the schema: which of them it would break.

Owns compiling them against the desired catalog. Never runs one, and never decides what becomes
of a plan that breaks some.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration.refusals import BrokenQuery
from omnigraph.lang.source import Source

StoredQueries = Mapping[str, str]
"""Texts of queries, by the names that they go by in messages."""


def broken_queries(queries: StoredQueries, catalog: Catalog) -> tuple[BrokenQuery, ...]:
    """The queries that do not compile against a catalog, in the order of their texts."""
    return tuple(
        broken
        for name, text in queries.items()
        for broken in _broken_in(Source(text, name), catalog)
    )


def _broken_in(source: Source, catalog: Catalog) -> Iterator[BrokenQuery]:
    report = lint_queries(source, catalog)
    if report.diagnostics and not report.results:
        yield BrokenQuery(source.name, None, report.diagnostics)
    for result in report.results:
        if result.diagnostics:
            yield BrokenQuery(source.name, result.name, result.diagnostics)
