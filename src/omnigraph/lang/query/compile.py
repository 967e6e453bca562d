"""Compiling queries: text and catalog in, typed plan out.

Owns the pipeline parse, check, lower and its cache, and the description of what a plan returns,
reads and writes. A file compiles one query at a time, so a mistake in one query does not stop
another from running.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.errors import NotFound, TypeCheckError
from omnigraph.lang.cache import Cache
from omnigraph.lang.diagnostics import (
    Diagnostic,
    Phase,
    Reporter,
    as_error,
    did_you_mean,
    nearest_name,
)
from omnigraph.lang.lint_report import Operation, ResultField, Touched
from omnigraph.lang.query import plan as plans
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.check.bounds import check_bounds
from omnigraph.lang.query.check.mutations.statements import check_mutation
from omnigraph.lang.query.check.reads import check_read
from omnigraph.lang.query.check.scope import Checker
from omnigraph.lang.query.lowering.reads import lower_read
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.type_sets import members_of
from omnigraph.lang.source import Source
from omnigraph.lang.types import BASE_NAMES, RecordList, Scalar, ValueType

RESERVED_PARAM = "__nanograph_now"

_KINDS = {
    Scalar.STRING: "string",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.BLOB: "blob",
    Scalar.VECTOR: "vector",
}


@dataclass(frozen=True, slots=True)
class CompiledQuery:
    """One query, checked and planned against one schema."""

    name: str
    params: dict[str, ValueType]
    plan: plans.Plan
    operation: Operation
    description: str | None = None
    instruction: str | None = None
    records: dict[str, RecordList] = field(default_factory=dict)
    """The parameters that are lists of records."""

    @property
    def kind(self) -> str:
        """Either "read" or "mutation"."""
        return "read" if isinstance(self.plan, plans.ReadPlan) else "mutation"

    def require_read(self) -> plans.ReadPlan:
        """The plan of a read; an error that names the other call for a mutation."""
        if isinstance(self.plan, plans.ReadPlan):
            return self.plan
        raise TypeCheckError(f"query `{self.name}` is a mutation: run it with mutate, not query")

    def require_mutation(self) -> plans.MutationPlan:
        """The plan of a mutation; an error that names the other call for a read."""
        if isinstance(self.plan, plans.MutationPlan):
            return self.plan
        raise TypeCheckError(f"query `{self.name}` is a read: run it with query, not mutate")


# What a text is parsed to takes many times the memory of the text.
MOST_TEXT = 1_000_000
_parsed: Cache[str, ast.QueryFile] = Cache(256, len, MOST_TEXT)
_compiled: Cache[tuple[str, str | None, str], CompiledQuery] = Cache(
    1024, lambda key: len(key[0]), MOST_TEXT
)


def compile_query(
    text: str | Source, catalog: Catalog, name: str | None = None, *, path: str = "<query>"
) -> CompiledQuery:
    """Compile the named query of a text; the name may be left out when there is only one."""
    source = Source(text, path) if isinstance(text, str) else text
    key = (source.text, name, catalog.schema_hash)
    return _compiled.get(key, lambda: _compile(source, catalog, name))


def _compile(source: Source, catalog: Catalog, name: str | None) -> CompiledQuery:
    query = select_query(parse_source(source), name)
    compiled, diagnostics = check_query(source, query, catalog)
    if compiled is None:
        raise as_error(diagnostics)
    return compiled


def parse_source(source: Source) -> ast.QueryFile:
    """The syntax of a text, cached; raises one error for all that does not parse."""

    def parse() -> ast.QueryFile:
        reporter = Reporter(source)
        file = parse_queries(source, reporter)
        reporter.raise_if_any()
        return file

    return _parsed.get(source.text, parse)


def select_query(file: ast.QueryFile, name: str | None) -> ast.Query:
    """The query a caller means."""
    names = [query.name.text for query in file.queries]
    if name is None:
        if len(names) == 1:
            return file.queries[0]
        raise NotFound(
            f"the text holds {len(names)} queries ({', '.join(names)}): say which one to run"
            if names
            else "the text holds no query",
            details={"queries": names},
        )
    for query in file.queries:
        if query.name.text == name:
            return query
    nearest = nearest_name(name, names)
    hint = f"; did you mean `{nearest}`?" if nearest else ""
    raise NotFound(f"there is no query `{name}`{hint}", details={"queries": names})


def check_query(
    source: Source, query: ast.Query, catalog: Catalog
) -> tuple[CompiledQuery | None, tuple[Diagnostic, ...]]:
    """Check and plan one query; either a result or everything that is wrong with it."""
    reporter = Reporter(source)
    check_bounds(query, reporter)
    if reporter:
        return None, reporter.diagnostics
    params, records = _declare_params(reporter, query)
    checker = Checker(catalog, params, reporter, records)
    if isinstance(query.body, ast.Read):
        read = check_read(checker, query.body)
        planned: plans.Plan | None = None if reporter else lower_read(catalog, read)
    else:
        checked = check_mutation(checker, query.body)
        match = None
        if checked.match is not None and not reporter:
            match = lower_read(catalog, checked.match)
        planned = plans.MutationPlan(checked.steps, match, checked.returns, checked.shown)
    if reporter or planned is None:
        return None, reporter.diagnostics
    known = {name: type_ for name, type_ in checker.params.items() if type_ is not None}
    operation = describe_operation(planned, catalog)
    compiled = CompiledQuery(
        query.name.text,
        known,
        planned,
        operation,
        query.description,
        query.instruction,
        records,
    )
    return compiled, ()


def _declare_params(
    reporter: Reporter, query: ast.Query
) -> tuple[dict[str, ValueType | None], dict[str, RecordList]]:
    """Parameters by name, None for one whose type is unknown; and those that are records."""
    params: dict[str, ValueType | None] = {}
    records: dict[str, RecordList] = {}
    for param in query.params:
        span, message, hint = param.span, None, None
        if param.name == RESERVED_PARAM:
            message = f"parameter name ${param.name} is reserved"
        elif param.name in params or param.name in records:
            message = f"parameter ${param.name} is declared twice"
        elif isinstance(param.type, terms.Name):
            span = param.type.span
            message = f"unknown parameter type {param.type.text}"
            hint = did_you_mean(param.type.text.strip("[]?"), [*BASE_NAMES, "Vector"])
        if message is not None:
            reporter.report(span, message, phase=Phase.TYPE, hint=hint)
        if isinstance(param.type, RecordList):
            records[param.name] = param.type
        else:
            params[param.name] = param.type if isinstance(param.type, ValueType) else None
    return params, records


def describe_operation(what: plans.Plan, catalog: Catalog) -> Operation:
    """Describe a plan."""
    if isinstance(what, plans.ReadPlan):
        reads: set[Touched] = set()
        for read in (what, *what.branches):
            _collect_reads((*read.steps, *read.late), catalog, reads)
        return Operation(tuple(map(_field, what.columns)), tuple(sorted(reads)), ())
    touches = _Touches(catalog)
    for statement in what.statements:
        touches.add(statement)
    if what.match is not None:
        _collect_reads((*what.match.steps, *what.match.late), catalog, touches.reads)
    returned = tuple(map(_field, what.returns))
    return Operation(returned, tuple(sorted(touches.reads)), tuple(sorted(touches.writes)))


def describe_params(query: ast.Query) -> tuple[ResultField, ...]:
    """What a query takes, as a client sees it; of an unknown type nothing is told."""
    return tuple(
        _scalar_field(param.name, param.type)
        if isinstance(param.type, ValueType)
        else ResultField(param.name, "list", param.type.nullable, item_kind="object")
        for param in query.params
        if isinstance(param.type, ValueType | RecordList)
    )


def _field(column: plans.Column) -> ResultField:
    value = column.value
    if isinstance(value, plans.NodeRef):
        return ResultField(column.name, "object", value.nullable)
    return _scalar_field(column.name, value.type)


def _scalar_field(name: str, type_: ValueType) -> ResultField:
    kind = "object" if type_.is_object else _KINDS[type_.scalar]
    if type_.is_list:
        return ResultField(name, "list", type_.nullable, item_kind=kind)
    return ResultField(name, kind, type_.nullable, vector_dim=type_.dimension)


def _collect_reads(steps: Iterable[plans.Step], catalog: Catalog, reads: set[Touched]) -> None:
    for step in steps:
        match step:
            case plans.Scan():
                _collect_nodes(step.node_type, catalog, reads)
            case plans.Expand():
                for edge_type in step.edge_types:
                    _collect_edge(edge_type, catalog, reads)
                if step.each is not None:
                    _collect_reads(step.each.steps, catalog, reads)
            case plans.Union(branches):
                for branch in branches:
                    _collect_reads(branch, catalog, reads)
            case plans.Filter() | plans.Let() | plans.ForEach() | plans.WalkWay():
                pass
            case plans.AntiJoin() | plans.SemiJoin() | plans.Fold() | plans.Optional():
                _collect_reads(step.steps, catalog, reads)


def _collect_edge(edge_type: str, catalog: Catalog, reads: set[Touched]) -> None:
    edge = catalog.edges[edge_type]
    reads.add(Touched(is_edge=True, type_name=edge_type))
    _collect_nodes(edge.source, catalog, reads)
    _collect_nodes(edge.target, catalog, reads)


def _collect_nodes(name: str, catalog: Catalog, reads: set[Touched]) -> None:
    for member in members_of(catalog.nodes_called(name)):
        reads.add(Touched(is_edge=False, type_name=member))


@dataclass(frozen=True, slots=True)
class _Touches:
    """Collects what the statements of a mutation touch."""

    catalog: Catalog
    reads: set[Touched] = field(default_factory=set)
    writes: set[Touched] = field(default_factory=set)

    def add(self, statement: plans.Statement) -> None:
        match statement:
            case plans.InsertNode() | plans.UpdateNodes():
                self._target(statement.node_type, is_edge=False)
            case plans.InsertEdge():
                self._target(statement.edge_type, is_edge=True)
                _collect_edge(statement.edge_type, self.catalog, self.reads)
            case plans.UpdateEdges() | plans.DeleteEdges():
                self._target(statement.edge_type, is_edge=True)
            case plans.DeleteNodes():
                self._target(statement.node_type, is_edge=False)
                for edge_type in statement.cascades:
                    self._target(edge_type, is_edge=True)
            case plans.UpdateMatched() | plans.DeleteMatched():
                is_edge = statement.entity.kind == "edge"
                for name in statement.entity.types:
                    self._target(name, is_edge=is_edge)
                    if isinstance(statement, plans.DeleteMatched) and not is_edge:
                        for edge in self.catalog.incident_edges(name):
                            self._target(edge.name, is_edge=True)

    def _target(self, type_name: str, *, is_edge: bool) -> None:
        touched = Touched(is_edge, type_name)
        self.reads.add(touched)
        self.writes.add(touched)
