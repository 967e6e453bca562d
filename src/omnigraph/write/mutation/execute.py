"""Mutations: running the statements of a query into one change set.

Owns the order of statements, each of which sees what those before it did, and the question that
a where clause asks of a table. Rules are checked once, at the end, on what is left then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.embed.protocol import Embedder
from omnigraph.errors import ValidationError
from omnigraph.lang.query import plan
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import DST, ENDPOINTS, ID, SRC
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.rows.key_predicates import anchor
from omnigraph.storage.budget import name_operator, need, took
from omnigraph.write.change.change_set import (
    ChangeSet,
    EntityType,
    located_columns,
    row_columns,
    type_key,
)
from omnigraph.write.change.results import EmptiedProperties
from omnigraph.write.mutation.given_rows import Assigned, without_stale
from omnigraph.write.mutation.inserts import put_fresh, put_keyed
from omnigraph.write.mutation.pending import Pending
from omnigraph.write.mutation.values import property_array
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import FilteredLookup, FilterScan, KeyLookup, ReadSet
from omnigraph.write.rules.row_rules import required_text
from omnigraph.write.rules.violations import Violation, Violations


@dataclass(frozen=True, slots=True)
class MutationChanges:
    """What a mutation does, and how many nodes and edges its statements affected."""

    changes: ChangeSet
    affected_nodes: int
    affected_edges: int
    warnings: tuple[EmptiedProperties, ...]


def run_mutation(
    mutation: plan.MutationPlan, values: Values, base: Base, reads: ReadSet, embedder: Embedder
) -> MutationChanges:
    """Run every statement, in order; inserts that follow one another as one batch."""
    run = _Run(base, reads, values)
    repeatable = True
    for gives_rows, statements in groupby(mutation.statements, _gives_rows):
        if gives_rows:
            name_operator("insert")
            run.give([one for one in statements if isinstance(one, _Insert)])
            continue
        repeatable = False
        for statement in statements:
            name_operator(_described(statement))
            run.execute(statement)
    name_operator("mutation")
    pending = dict(sorted(run.pending.items()))
    violations = Violations()
    for one in pending.values():
        one.check_required(violations)
    violations.raise_if_any()
    types = {key: one.change(embedder) for key, one in pending.items()}
    lost = (pending[key].left_out.lost(change, base, reads) for key, change in types.items())
    return MutationChanges(
        ChangeSet(types, repeatable),
        run.affected_nodes,
        run.affected_edges,
        tuple(one for one in lost if one is not None),
    )


_Insert = plan.InsertNode | plan.InsertEdge


def _gives_rows(statement: plan.Statement) -> bool:
    return isinstance(statement, _Insert)


def _described(statement: plan.Statement) -> str:
    """A statement in few words."""
    match statement:
        case plan.UpdateNodes(node_type=name) | plan.UpdateEdges(edge_type=name):
            return f"update {name}"
        case plan.DeleteNodes(node_type=name) | plan.DeleteEdges(edge_type=name):
            return f"delete {name}"
    return "insert"


@dataclass(slots=True)
class _Run:
    """One run of a mutation."""

    base: Base
    reads: ReadSet
    values: Values
    pending: dict[str, Pending] = field(default_factory=dict)
    affected_nodes: int = 0
    affected_edges: int = 0

    def execute(self, statement: plan.Statement) -> None:
        catalog = self.base.catalog
        match statement:
            case plan.UpdateNodes(name, assignments, where):
                self._update(catalog.nodes[name], assignments, where)
            case plan.UpdateEdges(name, assignments, where):
                self._update(catalog.edges[name], assignments, where)
            case plan.DeleteNodes(name, where, cascades):
                self._delete_nodes(catalog.nodes[name], where, cascades)
            case plan.DeleteEdges(name, where):
                self._delete(catalog.edges[name], where)
            case plan.InsertNode() | plan.InsertEdge():
                self.give([statement])

    # -- inserting -------------------------------------------------------------------

    def give(self, statements: Sequence[plan.InsertNode | plan.InsertEdge]) -> None:
        """Statements that read no row but their own: type by type, all rows at once."""
        nodes: dict[str, list[plan.InsertNode]] = {}
        edges: dict[str, list[plan.InsertEdge]] = {}
        for statement in statements:
            if isinstance(statement, plan.InsertNode):
                nodes.setdefault(statement.node_type, []).append(statement)
            else:
                edges.setdefault(statement.edge_type, []).append(statement)
        for name, some in nodes.items():
            self._give_nodes(self.base.catalog.nodes[name], some)
        for name, others in edges.items():
            self._give_edges(self.base.catalog.edges[name], others)

    def _give_nodes(self, node: NodeType, statements: Sequence[plan.InsertNode]) -> None:
        given = [(one.verb, self._assigned(node, one.assignments)) for one in statements]
        self._give(node, given, {})
        self.affected_nodes += len(statements)

    def _give_edges(self, edge: EdgeType, statements: Sequence[plan.InsertEdge]) -> None:
        given = [(one.verb, self._assigned(edge, one.assignments)) for one in statements]
        ends = {
            SRC: self._ends(SRC, [one.source for one in statements]),
            DST: self._ends(DST, [one.target for one in statements]),
        }
        self._give(edge, given, ends)
        self.affected_edges += len(statements)

    def _give(
        self,
        type_: EntityType,
        given: Sequence[tuple[InsertVerb, Assigned]],
        ends: dict[str, pa.Array],
    ) -> None:
        if type_.key:
            put_keyed(self._of(type_), given, ends, self.base, self.reads)
        else:
            put_fresh(self._of(type_), [values for _, values in given], ends)

    def _ends(self, column: str, values: Sequence[plan.Scalarish]) -> pa.Array:
        ends = pa.array([self.values.of(value) for value in values], pa.string())
        if ends.null_count:
            raise ValidationError(f"endpoint '{ENDPOINTS[column]}' is null", rule="required")
        return ends

    def _assigned(self, type_: EntityType, assignments: Iterable[plan.Assignment]) -> Assigned:
        """The values of a statement; a null is refused where it can only be wrong."""
        assigned = {item.property: self.values.of(item.value) for item in assignments}
        violations = Violations()
        for name, value in assigned.items():
            found = type_.properties[name]
            if value is None and not found.type.nullable and found.embedding is None:
                text = required_text(name)
                violations.add(Violation("required", text, type_key(type_), name))
        violations.raise_if_any()
        return assigned

    # -- updating and deleting -------------------------------------------------------

    def _update(
        self,
        type_: EntityType,
        assignments: Iterable[plan.Assignment],
        where: tuple[plan.Predicate, ...],
    ) -> None:
        assigned = {
            name: property_array((value,), type_.properties[name])
            for name, value in self._assigned(type_, assignments).items()
        }
        pending = self._of(type_)
        wanted = self._filter(type_, where)
        question = selection(type_, where, wanted, self.values)
        stored = pending.untouched(self.reads.ask(self.base, type_key(type_), question))
        columns = row_columns(type_)
        matched = pa.concat_tables(
            [wanted.select(pending.rows), stored.select(columns.names).cast(columns)]
        )
        if not matched.num_rows:
            return
        before = took(matched)
        need(matched.num_rows * sum(value.nbytes for value in assigned.values()))
        for name, value in assigned.items():
            repeated = value.take(pa.array(np.zeros(matched.num_rows, dtype=np.int64)))
            position = columns.get_field_index(name)
            matched = matched.set_column(position, columns.field(position), repeated)
        every = pa.array(np.ones(matched.num_rows, dtype=bool))
        for name, embedding in embedded_properties(type_).items():
            source = embedding.source
            if source in assigned and name not in assigned:
                matched = without_stale(matched, name, source, before.column(source), every)
            if assigned.keys() & {name, source}:
                pending.embed_later(name, matched.column(ID))
        for name in assigned:
            pending.left_out.give(name, matched.column(ID))
        pending.put(matched, stored)
        self._count(type_, matched.num_rows)

    def _delete_nodes(
        self, node: NodeType, where: tuple[plan.Predicate, ...], cascades: tuple[str, ...]
    ) -> None:
        ids = self._delete(node, where)
        if not len(ids):
            return
        for name in cascades:
            edge = self.base.catalog.edges[name]
            ends = [(SRC, edge.source), (DST, edge.target)]
            for column, end in ends:
                if end == node.name:
                    self._delete_at(edge, column, ids)

    def _delete(self, type_: EntityType, where: tuple[plan.Predicate, ...]) -> pa.Array:
        """Delete the rows that a where clause chooses; says which these are."""
        wanted = self._filter(type_, where)
        question = selection(type_, where, wanted, self.values, located_columns(type_))
        stored = self.reads.ask(self.base, type_key(type_), question)
        return self._remove(type_, stored, wanted.select(self._of(type_).rows))

    def _filter(self, type_: EntityType, where: tuple[plan.Predicate, ...]) -> RowFilter:
        names = self.base.table(type_key(type_)).table.columns
        return row_filter(where, self.values.of, names)

    def _delete_at(self, edge: EdgeType, column: str, nodes: pa.Array) -> None:
        """Delete the edges that have one of these nodes at an end."""
        key = type_key(edge)
        stored = self.reads.hold(self.base, key, column, nodes, *located_columns(edge))
        pending = self._of(edge).rows
        self._remove(
            edge, stored, pending.filter(pc.is_in(pending.column(column), value_set=nodes))
        )

    def _remove(self, type_: EntityType, stored: pa.Table, written: pa.Table) -> pa.Array:
        """Delete stored rows, so far as they are untouched, and rows that were written before."""
        pending = self._of(type_)
        stored = pending.untouched(stored)
        pending.delete(stored, written.column(ID))
        self._count(type_, stored.num_rows + written.num_rows)
        gone = pa.concat_tables([stored.select([ID]), written.select([ID])])
        return gone.column(ID).combine_chunks()

    # -- keeping track ---------------------------------------------------------------

    def _of(self, type_: EntityType) -> Pending:
        key = type_key(type_)
        if key not in self.pending:
            self.pending[key] = Pending(type_)
        return self.pending[key]

    def _count(self, type_: EntityType, rows: int) -> None:
        if isinstance(type_, NodeType):
            self.affected_nodes += rows
        else:
            self.affected_edges += rows


def selection(
    type_: EntityType,
    where: tuple[plan.Predicate, ...],
    filter_: RowFilter,
    values: Values,
    wanted: tuple[str, ...] | None = None,
) -> FilteredLookup | FilterScan:
    """The rows of a type that a where clause chooses; ``wanted`` columns of them, or all."""
    named = anchor(type_.key, where, values.of)
    if named is None:
        return FilterScan(filter_, wanted)
    return FilteredLookup(KeyLookup(named.column, named.texts, (named.column,)), filter_, wanted)
