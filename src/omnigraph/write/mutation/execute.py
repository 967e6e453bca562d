"""Mutations: running the statements of a query into one change set.

Owns the order of statements, each of which sees what those before it did, and the question that
a where clause asks of a table. Rules are checked once, at the end, on what is left then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.embed.protocol import Embedder
from omnigraph.lang.query import plan
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import DST, ID, SRC
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
from omnigraph.write.mutation.edge_ends import EdgeEnds
from omnigraph.write.mutation.given_rows import Assigned, without_stale
from omnigraph.write.mutation.inserts import put_fresh, put_keyed
from omnigraph.write.mutation.named_rows import BatchLookup, NamedRows, assign
from omnigraph.write.mutation.pending import Pending
from omnigraph.write.mutation.values import property_array
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import (
    BaseQuery,
    FilteredLookup,
    FilterScan,
    KeyLookup,
    ReadSet,
)
from omnigraph.write.rules.edges import named_by
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
    """Run every statement, in order; those of one kind that follow one another as one batch."""
    run = _Run(base, reads, values)
    for _, statements in groupby(mutation.statements, _kind):
        run.execute(list(statements))
    name_operator("mutation")
    repeatable = all(isinstance(one, _Insert) for one in mutation.statements)
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
_Update = plan.UpdateNodes | plan.UpdateEdges
_Delete = plan.DeleteNodes | plan.DeleteEdges


def _kind(statement: plan.Statement) -> str:
    if isinstance(statement, _Insert):
        return "insert"
    return "update" if isinstance(statement, _Update) else "delete"


@dataclass(frozen=True, slots=True)
class _Change:
    """One update: what it assigns to which rows; ``named`` if it says no more than their texts."""

    type: EntityType
    assigned: dict[str, pa.Array]
    filter: RowFilter
    question: FilteredLookup | FilterScan
    named: NamedRows | None

    @property
    def batch(self) -> str | None:
        """The column of texts by which it can be run with others; None if it runs alone.

        Which vectors go stale is a matter of what a row was right before.
        """
        if self.named is None or not isinstance(self.question, FilteredLookup):
            return None
        for name, embedding in embedded_properties(self.type).items():
            if self.assigned.keys() & {name, embedding.source}:
                return None
        return self.question.anchor.column


@dataclass(slots=True)
class _Run:
    """One run of a mutation."""

    base: Base
    reads: ReadSet
    values: Values
    pending: dict[str, Pending] = field(default_factory=dict)
    affected_nodes: int = 0
    affected_edges: int = 0

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
            self._give_nodes(self.base.catalog.nodes[name], some)
        for name, others in edges.items():
            self._give_edges(self.base.catalog.edges[name], others)

    def _give_nodes(self, node: NodeType, statements: Sequence[plan.InsertNode]) -> None:
        given = [(one.verb, self._assigned(node, one.assignments)) for one in statements]
        self._give(node, given, {})
        self.affected_nodes += len(statements)

    def _give_edges(self, edge: EdgeType, statements: Sequence[plan.InsertEdge]) -> None:
        given = [(one.verb, self._assigned(edge, one.assignments)) for one in statements]
        named = EdgeEnds(self.base, self.reads, self.values, self.pending)
        ends = {
            SRC: named.of(edge, SRC, [one.source for one in statements]),
            DST: named.of(edge, DST, [one.target for one in statements]),
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

    # -- updating --------------------------------------------------------------------

    def _update_all(self, statements: Sequence[plan.UpdateNodes | plan.UpdateEdges]) -> None:
        """Type by type, in order; those at once that follow one another and name their rows."""
        by_type: dict[str, list[_Change]] = {}
        for one in statements:
            type_ = self._type(one)
            assigned = {
                name: property_array((value,), type_.properties[name])
                for name, value in self._assigned(type_, one.assignments).items()
            }
            where = self._where(one)
            filter_, question = self._selected(type_, where)
            named = None
            if len(where) == 1 and isinstance(question, FilteredLookup):
                named = NamedRows.of(question, is_exact=True)
            change = _Change(type_, assigned, filter_, question, named)
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
        type_, assigned, columns = change.type, change.assigned, row_columns(change.type)
        stored, matched = self._matched(type_, change.question, change.filter.select)
        if not matched.num_rows:
            return
        pending = self._of(type_)
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

    def _update_named(self, column: str, changes: Sequence[_Change]) -> None:
        """Statements that say nothing but which rows they are about, one after the other."""
        type_ = changes[0].type
        parts = tuple(one.named for one in changes if one.named is not None)
        question = BatchLookup(column, parts)
        stored, matched = self._matched(type_, question, question.select)
        if not matched.num_rows:
            return
        pending, hits = self._of(type_), question.hits(took(matched))
        matched, given = assign(matched, [one.assigned for one in changes], hits)
        for name, rows in given.items():
            pending.left_out.give(name, matched.column(ID).filter(rows))
        pending.put(matched, stored)
        self._count(type_, len(hits[0]))

    def _matched(
        self,
        type_: EntityType,
        question: BaseQuery,
        select: Callable[[pa.Table], pa.Table],
    ) -> tuple[pa.Table, pa.Table]:
        """The stored rows that nobody has touched, and these and pending ones as they are now."""
        pending, columns = self._of(type_), row_columns(type_)
        stored = pending.untouched(self.reads.ask(self.base, type_key(type_), question))
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
            self._cascade(types[key].name, edges, pa.concat_arrays(gone[key]))

    def _cascade(self, node: str, edges: tuple[str, ...], ids: pa.Array) -> None:
        if not len(ids):
            return
        catalog = self.base.catalog
        for name in edges:
            edge = catalog.edges[name]
            for column in (SRC, DST):
                for found in catalog.nodes_at(edge, column):
                    if found.name == node:
                        self._delete_at(edge, column, named_by(edge, column, found, ids))

    def _delete(
        self, type_: EntityType, question: BaseQuery, select: Callable[[pa.Table], pa.Table]
    ) -> pa.Array:
        """Delete the rows that a question finds; says which these are."""
        name_operator(f"delete {type_.name}")
        stored = self.reads.ask(self.base, type_key(type_), question)
        return self._remove(type_, stored, select(self._of(type_).rows))

    def _filter(self, type_: EntityType, where: tuple[plan.Predicate, ...]) -> RowFilter:
        names = self.base.table(type_key(type_)).table.columns
        return row_filter(where, self.values.of, names)

    def _delete_at(self, edge: EdgeType, column: str, nodes: pa.Array) -> None:
        """Delete the edges that have one of these nodes, as they call them, at an end."""
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

    def _type(
        self, one: plan.UpdateNodes | plan.UpdateEdges | plan.DeleteNodes | plan.DeleteEdges
    ) -> EntityType:
        if isinstance(one, plan.UpdateNodes | plan.DeleteNodes):
            return self.base.catalog.nodes[one.node_type]
        return self.base.catalog.edges[one.edge_type]

    def _where(self, one: _Update | _Delete) -> tuple[plan.Predicate, ...]:
        """The conditions of a statement; a node at an end is told by what edges call it."""
        if not isinstance(one, plan.UpdateEdges | plan.DeleteEdges) or not one.ends:
            return one.where
        edge = self.base.catalog.edges[one.edge_type]
        ends = EdgeEnds(self.base, self.reads, self.values, self.pending)
        return (*one.where, *(ends.condition(edge, end) for end in one.ends))

    def _selected(
        self,
        type_: EntityType,
        where: tuple[plan.Predicate, ...],
        columns: tuple[str, ...] | None = None,
    ) -> tuple[RowFilter, FilteredLookup | FilterScan]:
        """What a where clause chooses, and the question that finds it."""
        filter_ = self._filter(type_, where)
        return filter_, selection(type_, where, filter_, self.values, columns)

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
