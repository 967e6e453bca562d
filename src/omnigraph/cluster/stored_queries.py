"""The stored queries of an applied graph: what they take, and whether they would run today.

Owns reading them out of the catalog's texts; runs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph import graph
from omnigraph.cluster.revision import AppliedGraph
from omnigraph.lang.lint_report import ResultField
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.compile import describe_params, parse_source, select_query
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
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
        """What it takes."""
        return describe_params(self.syntax)


@dataclass(frozen=True, slots=True)
class QueryProblem:
    """What is wrong with a query; a warning if it runs all the same."""

    query: str
    message: str
    is_breakage: bool


def registered_queries(applied: AppliedGraph) -> Iterator[RegisteredQuery]:
    """The stored queries of a graph, by name; an error for one that does not parse."""
    for name, text in sorted(applied.queries.items()):
        source = Source(text, f"{name}.gq")
        yield RegisteredQuery(name, source, select_query(parse_source(source), name))


def check_queries(applied: AppliedGraph) -> list[QueryProblem]:
    """What is wrong with the stored queries of a graph under the schema that it has now."""
    catalog = graph.open(str(applied.location), read_only=True).catalog
    found = []
    for name, text in sorted(applied.queries.items()):
        found += problems_of(name, Source(text, f"{name}.gq"), catalog)
    return found


def problems_of(name: str, source: Source, catalog: Catalog) -> list[QueryProblem]:
    """What is wrong with one query of a text under a schema."""
    report = lint_queries(source, catalog)
    found = []
    if report.diagnostics and not report.results:
        found.append(QueryProblem(name, report.diagnostics[0].message, is_breakage=True))
    for result in report.results:
        if result.name == name:
            found += [
                QueryProblem(name, one.message, is_breakage=True) for one in result.diagnostics
            ]
    found += [
        QueryProblem(name, one.message, is_breakage=False)
        for one in report.findings
        if not one.query_names or name in one.query_names
    ]
    return found
