"""Mutations: running the statements of a query into one change set.

Owns the order of statements, each of which sees what those before it did, and the question that
a where clause asks of a table. Rules are checked once, at the end, on what is left then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from omnigraph.embed.fill import embedded_properties
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.expressions import is_fixed
from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.rows.evaluation import values_of
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.rows.key_predicates import anchor
from omnigraph.rows.table_rows import TableRows
from omnigraph.storage.budget import name_operator, need, took
from omnigraph.write.change.change_set import (
    ChangeSet,
    EntityType,
    located_columns,
    row_columns,
    type_key,
)
from omnigraph.write.change.results import EmptiedProperties
from omnigraph.write.mutation.fed import FedStatements
from omnigraph.write.mutation.named_rows import BatchLookup, NamedRows, assign
from omnigraph.write.mutation.run import MutationRun
from omnigraph.write.mutation.values import fitting_array, property_array
from omnigraph.write.publish.read_set import (
    BaseQuery,
    FilteredLookup,
    FilterScan,
    KeyLookup,
)
from omnigraph.write.rules.violations import Violations


@dataclass(frozen=True, slots=True)
class MutationChanges:
    """What a mutation does, and how many nodes and edges its statements affected."""

    changes: ChangeSet
    affected_nodes: int
    affected_edges: int
    warnings: tuple[EmptiedProperties, ...]
    returned: pa.Table | None = None


def run_mutation(
    mutation: plan.MutationPlan,
    run: MutationRun,
    embedder: Embedder,
    matched: pa.Table | None = None,
) -> MutationChanges:
    """Run every statement, in order; those of one kind that follow one another as one batch.

    Statements that are fed run for each of the ``matched`` rows.
    """
    plain = _Statements(run)
    fed = FedStatements.of(run, matched) if mutation.is_fed else None
    for kind, statements in groupby(
        mutation.statements, lambda one: _kind(one, is_fed=fed is not None)
    ):
        if kind == "fed" and fed is not None:
            for one in statements:
                fed.execute(one)
        else:
            plain.execute(list(statements))
    name_operator("mutation")
    repeatable = all(isinstance(one, _Insert) for one in mutation.statements)
    pending = dict(sorted(run.pending.items()))
    violations = Violations()
    for one_type in pending.values():
        one_type.check_required(violations)
    violations.raise_if_any()
    types = {key: one_type.change(embedder) for key, one_type in pending.items()}
    lost = (
        pending[key].left_out.lost(change, run.base, run.reads) for key, change in types.items()
    )
    returned = None
    if mutation.returns and fed is not None:
        returned = fed.returned(mutation.returns, mutation.shown, types)
    return MutationChanges(
        ChangeSet(types, repeatable),
        run.affected_nodes,
        run.affected_edges,
        tuple(one for one in lost if one is not None),
        returned,
    )


_Insert = plan.InsertNode | plan.InsertEdge
_Update = plan.UpdateNodes | plan.UpdateEdges
_Delete = plan.DeleteNodes | plan.DeleteEdges


def _kind(statement: plan.Statement, *, is_fed: bool) -> str:
    if isinstance(statement, _Update):
        return "update"
    if isinstance(statement, _Delete):
        return "delete"
    return "fed" if is_fed else "insert"


def _by_key(end: plan.End) -> plan.NodeByKey:
    if isinstance(end, plan.BoundNode):
        raise AssertionError(f"${end.variable} is bound for a statement that is fed")
    return end


@dataclass(frozen=True, slots=True)
class _Change:
    """One update: what it assigns to which rows; ``named`` if it says no more than their texts."""

    type: EntityType
    assigned: dict[str, pa.Array]
    computed: dict[str, plan.Expression]
    filter: RowFilter
    question: FilteredLookup | FilterScan
    named: NamedRows | None

    @property
    def batch(self) -> str | None:
        """The column of texts by which it can be run with others; None if it runs alone.

        Which vectors go stale is a matter of what a row was right before.
        """
        if self.computed or self.named is None or not isinstance(self.question, FilteredLookup):
            return None
        for name, embedding in embedded_properties(self.type).items():
            if self.assigned.keys() & {name, embedding.source}:
                return None
        return self.question.anchor.column


@dataclass(frozen=True, slots=True)
class _Statements:
    """Running the statements that look at no match."""

    run: MutationRun

    def execute(self, statements: Sequence[plan.Statement]) -> None:
        """Statements of one kind that follow one another."""
        if inserts := [one for one in statements if isinstance(one, _Insert)]:
            self.give(inserts)
        elif updates := [one for one in statements if isinstance(one, _Update)]:
            self._update_all(updates)
        else:
            self._delete_all([one for one in statements if isinstance(one, _Delete)])

    # -- inserting -------------------------------------------------------------------

    def give(self, statements: Sequence[plan.InsertNode | plan.InsertEdge]) -> None:
        """Statements that read no row but their own: type by type, all rows at once."""
        name_operator("insert")
        nodes: dict[str, list[plan.InsertNode]] = {}
        edges: dict[str, list[plan.InsertEdge]] = {}
        for statement in statements:
            if isinstance(statement, plan.InsertNode):
                nodes.setdefault(statement.node_type, []).append(statement)
            else:
                edges.setdefault(statement.edge_type, []).append(statement)
        for name, some in nodes.items():
            self._give_nodes(self.run.base.catalog.nodes[name], some)
        for name, others in edges.items():
            self._give_edges(self.run.base.catalog.edges[name], others)

    def _give_nodes(self, node: NodeType, statements: Sequence[plan.InsertNode]) -> None:
        given = [(one.verb, self.run.assigned(node, one.assignments)) for one in statements]
        self.run.give(node, given, {})

    def _give_edges(self, edge: EdgeType, statements: Sequence[plan.InsertEdge]) -> None:
        given = [(one.verb, self.run.assigned(edge, one.assignments)) for one in statements]
        named = self.run.ends
        ends = {
            SRC: named.of(edge, SRC, [_by_key(one.source) for one in statements]),
            DST: named.of(edge, DST, [_by_key(one.target) for one in statements]),
        }
        self.run.give(edge, given, ends)

    # -- updating --------------------------------------------------------------------

    def _update_all(self, statements: Sequence[plan.UpdateNodes | plan.UpdateEdges]) -> None:
        """Type by type, in order; those at once that follow one another and name their rows."""
        by_type: dict[str, list[_Change]] = {}
        for one in statements:
            type_ = self._type(one)
            fixed = [item for item in one.assignments if is_fixed(item.value)]
            assigned = {
                name: property_array((value,), type_.properties[name])
                for name, value in self.run.assigned(type_, fixed).items()
            }
            computed = {item.property: item.value for item in one.assignments if item not in fixed}
            where = self._where(one)
            filter_, question = self._selected(type_, where)
            named = None
            if len(where) == 1 and isinstance(question, FilteredLookup):
                named = NamedRows.of(question, is_exact=True)
            change = _Change(type_, assigned, computed, filter_, question, named)
            by_type.setdefault(type_key(type_), []).append(change)
        for changes in by_type.values():
            name_operator(f"update {changes[0].type.name}")
            for together, some in groupby(changes, lambda one: one.batch):
                if together is None:
                    for change in some:
                        self._update(change)
                else:
                    self._update_named(together, list(some))

    def _update(self, change: _Change) -> None:
        type_, assigned = change.type, change.assigned
        stored, matched = self._matched(type_, change.question, change.filter.select)
        if not matched.num_rows:
            return
        need(matched.num_rows * sum(value.nbytes for value in assigned.values()))
        first = pa.array(np.zeros(matched.num_rows, dtype=np.int64))
        given = {name: value.take(first) for name, value in assigned.items()}
        seen = TableRows(matched, self.run.values.of, needing=need)
        for name, expression in change.computed.items():
            given[name] = fitting_array(values_of(expression, seen), type_.properties[name])
        self.run.put_updated(type_, matched, given, stored)

    def _update_named(self, column: str, changes: Sequence[_Change]) -> None:
        """Statements that say nothing but which rows they are about, one after the other."""
        type_ = changes[0].type
        parts = tuple(one.named for one in changes if one.named is not None)
        question = BatchLookup(column, parts)
        stored, matched = self._matched(type_, question, question.select)
        if not matched.num_rows:
            return
        pending, hits = self.run.of(type_), question.hits(took(matched))
        matched, given = assign(matched, [one.assigned for one in changes], hits)
        for name, rows in given.items():
            pending.left_out.give(name, matched.column(ID).filter(rows))
        pending.put(matched, stored)
        self.run.count(type_, len(hits[0]))

    def _matched(
        self,
        type_: EntityType,
        question: BaseQuery,
        select: Callable[[pa.Table], pa.Table],
    ) -> tuple[pa.Table, pa.Table]:
        """The stored rows that nobody has touched, and these and pending ones as they are now."""
        pending, columns = self.run.of(type_), row_columns(type_)
        stored = pending.untouched(self.run.reads.ask(self.run.base, type_key(type_), question))
        rows = [select(pending.rows), stored.select(columns.names).cast(columns)]
        return stored, pa.concat_tables(rows)

    # -- deleting --------------------------------------------------------------------

    def _delete_all(self, statements: Sequence[plan.DeleteNodes | plan.DeleteEdges]) -> None:
        """What any of the statements chooses, and the edges of nodes: each row goes once."""
        batches: dict[tuple[str, str], list[NamedRows]] = {}
        types: dict[str, EntityType] = {}
        cascades: dict[str, tuple[str, ...]] = {}
        gone: dict[str, list[pa.Array]] = {}
        for one in statements:
            type_ = self._type(one)
            key = type_key(type_)
            types[key] = type_
            gone.setdefault(key, [])
            if isinstance(one, plan.DeleteNodes):
                cascades[key] = one.cascades
            where = self._where(one)
            filter_, question = self._selected(type_, where, located_columns(type_))
            if isinstance(question, FilteredLookup):
                named = NamedRows.of(question, is_exact=len(where) == 1)
                batches.setdefault((key, question.anchor.column), []).append(named)
            else:
                gone[key].append(self._delete(type_, question, filter_.select))
        for (key, column), parts in batches.items():
            named_rows = BatchLookup(column, tuple(parts), located_columns(types[key]))
            gone[key].append(self._delete(types[key], named_rows, named_rows.select))
        for key, edges in cascades.items():
            self.run.cascade(types[key].name, edges, pa.concat_arrays(gone[key]))

    def _delete(
        self, type_: EntityType, question: BaseQuery, select: Callable[[pa.Table], pa.Table]
    ) -> pa.Array:
        """Delete the rows that a question finds; says which these are."""
        name_operator(f"delete {type_.name}")
        stored = self.run.reads.ask(self.run.base, type_key(type_), question)
        return self.run.remove(type_, stored, select(self.run.of(type_).rows))

    def _filter(self, type_: EntityType, where: tuple[plan.Predicate, ...]) -> RowFilter:
        names = self.run.base.table(type_key(type_)).table.columns
        return row_filter(where, self.run.values.of, names)

    # -- keeping track ---------------------------------------------------------------

    def _type(
        self, one: plan.UpdateNodes | plan.UpdateEdges | plan.DeleteNodes | plan.DeleteEdges
    ) -> EntityType:
        if isinstance(one, plan.UpdateNodes | plan.DeleteNodes):
            return self.run.base.catalog.nodes[one.node_type]
        return self.run.base.catalog.edges[one.edge_type]

    def _where(self, one: _Update | _Delete) -> tuple[plan.Predicate, ...]:
        """The conditions of a statement; a node at an end is told by what edges call it."""
        if not isinstance(one, plan.UpdateEdges | plan.DeleteEdges) or not one.ends:
            return one.where
        edge = self.run.base.catalog.edges[one.edge_type]
        ends = self.run.ends
        return (*one.where, *(ends.condition(edge, end) for end in one.ends))

    def _selected(
        self,
        type_: EntityType,
        where: tuple[plan.Predicate, ...],
        columns: tuple[str, ...] | None = None,
    ) -> tuple[RowFilter, FilteredLookup | FilterScan]:
        """What a where clause chooses, and the question that finds it."""
        filter_ = self._filter(type_, where)
        return filter_, selection(type_, where, filter_, self.run.values, columns)


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
