"""The operation descriptor: what a query returns, reads and writes.

Owns the mapping from plans to the kinds a client sees. Derived from the plan
alone, so it can never disagree with what runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from omnigraph.lang.operation import Operation, ResultField, Touched
from omnigraph.lang.query import plan
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import Scalar, ValueType

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


def describe_operation(what: plan.Plan, catalog: Catalog) -> Operation:
    """Describe a plan."""
    if isinstance(what, plan.ReadPlan):
        reads: set[Touched] = set()
        _collect_reads(what.steps, catalog, reads)
        return Operation(tuple(map(_field, what.columns)), tuple(sorted(reads)), ())
    touches = _Touches(catalog)
    for statement in what.statements:
        touches.add(statement)
    return Operation((), tuple(sorted(touches.reads)), tuple(sorted(touches.writes)))


def _field(column: plan.Column) -> ResultField:
    value = column.value
    if isinstance(value, plan.NodeRef):
        return ResultField(column.name, "object", value.nullable)
    return _scalar_field(column.name, value.type)


def _scalar_field(name: str, type_: ValueType) -> ResultField:
    kind = _KINDS[type_.scalar]
    if type_.is_list:
        return ResultField(name, "list", type_.nullable, item_kind=kind)
    return ResultField(name, kind, type_.nullable, vector_dim=type_.dimension)


def _collect_reads(steps: Iterable[plan.Step], catalog: Catalog, reads: set[Touched]) -> None:
    for step in steps:
        match step:
            case plan.Scan():
                reads.add(Touched(is_edge=False, type_name=step.node_type))
            case plan.Expand():
                _collect_edge(step.edge_type, catalog, reads)
            case plan.Union(branches):
                for branch in branches:
                    _collect_reads(branch, catalog, reads)
            case plan.Filter():
                pass
            case plan.AntiJoin() | plan.SemiJoin() | plan.CountJoin() | plan.Optional():
                _collect_reads(step.steps, catalog, reads)


def _collect_edge(edge_type: str, catalog: Catalog, reads: set[Touched]) -> None:
    edge = catalog.edges[edge_type]
    reads.add(Touched(is_edge=True, type_name=edge_type))
    reads.add(Touched(is_edge=False, type_name=edge.source))
    reads.add(Touched(is_edge=False, type_name=edge.target))


@dataclass(frozen=True, slots=True)
class _Touches:
    """Collects what the statements of a mutation touch."""

    catalog: Catalog
    reads: set[Touched] = field(default_factory=set)
    writes: set[Touched] = field(default_factory=set)

    def add(self, statement: plan.Statement) -> None:
        match statement:
            case plan.InsertNode() | plan.UpdateNodes():
                self._target(statement.node_type, is_edge=False)
            case plan.InsertEdge():
                self._target(statement.edge_type, is_edge=True)
                _collect_edge(statement.edge_type, self.catalog, self.reads)
            case plan.UpdateEdges() | plan.DeleteEdges():
                self._target(statement.edge_type, is_edge=True)
            case plan.DeleteNodes():
                self._target(statement.node_type, is_edge=False)
                for edge_type in statement.cascades:
                    self._target(edge_type, is_edge=True)

    def _target(self, type_name: str, *, is_edge: bool) -> None:
        touched = Touched(is_edge, type_name)
        self.reads.add(touched)
        self.writes.add(touched)
