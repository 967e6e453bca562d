"""Lint of query files: everything that can be said about one without running it.

Owns the lint rules that are no type errors: names declared twice (L101),
cross products (L103), properties no update ever sets (L201), properties that an
insert takes away from a row it replaces (L301), mutations without parameters.
Never raises for what is wrong in the text: that is what the report is for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.lint_report import Finding, LintReport, QueryResult
from omnigraph.lang.query import plan
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.compile import CompiledQuery, check_query
from omnigraph.lang.query.cross_products import unconnected
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.query.remarks import remarks_on
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.source import Source


def lint_queries(source: Source, catalog: Catalog) -> LintReport:
    """Check every query of a file against a catalog."""
    reporter = Reporter(source)
    file = parse_queries(source, reporter)
    compiled: list[CompiledQuery] = []
    results: list[QueryResult] = []
    for query in file.queries:
        result, diagnostics = check_query(source, query, catalog)
        results.append(_query_result(query, result, diagnostics))
        if result is not None:
            compiled.append(result)
    if reporter:
        found = (*reporter.diagnostics, *(d for result in results for d in result.diagnostics))
        return LintReport(
            (),
            (Finding("error", "Q000", reporter.diagnostics[0].summary),),
            tuple(sorted(found, key=lambda diagnostic: diagnostic.span)),
        )
    findings = [
        *_repeated_names(file),
        *(finding for query in file.queries for finding in remarks_on(source, query)),
        *_never_set(compiled, catalog),
        *(finding for query in compiled for finding in _left_out(query, catalog)),
        *(finding for query in compiled for finding in _cross_products(query, catalog)),
    ]
    return LintReport(
        tuple(results),
        tuple(sorted(findings, key=lambda finding: finding.order)),
        tuple(diagnostic for result in results for diagnostic in result.diagnostics),
    )


def _query_result(
    query: ast.Query, compiled: CompiledQuery | None, diagnostics: tuple[Diagnostic, ...]
) -> QueryResult:
    is_read = isinstance(query.body, ast.Read)
    warnings: tuple[str, ...] = ()
    if not is_read and not query.params:
        warnings = (
            f"mutation `{query.name.text}` declares no parameters: it does the same every time",
        )
    return QueryResult(
        query.name.text,
        "read" if is_read else "mutation",
        diagnostics,
        warnings,
        compiled.operation if compiled is not None else None,
    )


def _repeated_names(file: ast.QueryFile) -> Iterable[Finding]:
    seen: set[str] = set()
    for query in file.queries:
        name = query.name.text
        if name in seen:
            yield Finding(
                "warning",
                "L101",
                f"query `{name}` is declared more than once; only the first can be run",
                query_names=(name,),
            )
        seen.add(name)


def _never_set(compiled: list[CompiledQuery], catalog: Catalog) -> Iterable[Finding]:
    """L201: nullable properties that no update of their type ever sets."""
    updates: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for query in compiled:
        if isinstance(query.plan, plan.MutationPlan):
            for statement in query.plan.statements:
                if isinstance(statement, plan.UpdateNodes):
                    assigned = {assignment.property for assignment in statement.assignments}
                    updates[statement.node_type][query.name] |= assigned
                elif isinstance(statement, plan.UpdateMatched) and (
                    statement.entity.kind == "node"
                ):
                    assigned = {assignment.property for assignment in statement.assignments}
                    for name in statement.entity.types:
                        updates[name][query.name] |= assigned
    for type_name, by_query in updates.items():
        assigned = set().union(*by_query.values())
        names = tuple(sorted(by_query))
        for name in _updatable(catalog.nodes[type_name]):
            if name not in assigned:
                yield Finding(
                    "warning",
                    "L201",
                    f"property `{name}` of {type_name} is set by no update query",
                    type_name,
                    name,
                    names,
                )


def _updatable(node_type: NodeType) -> Iterable[str]:
    for name, definition in node_type.properties.items():
        if definition.type.nullable and name not in node_type.key and definition.embedding is None:
            yield name


def _cross_products(query: CompiledQuery, catalog: Catalog) -> Iterable[Finding]:
    """L103: variables that are paired with every row."""
    read = query.plan if isinstance(query.plan, plan.ReadPlan) else query.plan.match
    if read is None:
        return
    for variable in unconnected(read, catalog):
        named = "a variable without a name" if variable.startswith("#") else f"${variable}"
        yield Finding(
            "warning",
            "L103",
            f"{named} is connected with nothing before it in `{query.name}`: every pair is made. "
            "Connect it by an edge or an equality",
            query_names=(query.name,),
        )


def _left_out(query: CompiledQuery, catalog: Catalog) -> Iterable[Finding]:
    """L301: properties that a row loses when an insert replaces it."""
    if not isinstance(query.plan, plan.MutationPlan):
        return
    # A node type and an edge type may have one name.
    lost: dict[tuple[str, str], set[str]] = defaultdict(set)
    for statement in query.plan.statements:
        if isinstance(statement, plan.InsertNode | plan.InsertEdge) and statement.verb == "insert":
            type_: NodeType | EdgeType = (
                catalog.nodes[statement.node_type]
                if isinstance(statement, plan.InsertNode)
                else catalog.edges[statement.edge_type]
            )
            assigned = {assignment.property for assignment in statement.assignments}
            lost[type_.kind, type_.name] |= _replaceable(type_) - assigned
    for (_, type_name), names in lost.items():
        if names:
            listed = ", ".join(f"`{name}`" for name in sorted(names))
            yield Finding(
                "warning",
                "L301",
                f"insert replaces a {type_name} that has the key, and leaves out {listed}: "
                "`upsert` keeps them, `create` replaces nothing",
                type_name,
                query_names=(query.name,),
            )


def _replaceable(type_: NodeType | EdgeType) -> set[str]:
    """What a row of a type with a key may have and an insert may leave out."""
    if not type_.key:
        return set()
    return {
        name
        for name, definition in type_.properties.items()
        if name not in type_.key and definition.embedding is None and not definition.is_required
    }
