"""Mutations: running the statements of a query into one change set.

Owns the order of statements, each of which sees what those before it did, and the question that
a where clause asks of a table. Checks nothing: that is done once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import Marks, embedded_properties, fill_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.errors import ValidationError
from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import ENDPOINTS, EdgeType, NodeType
from omnigraph.rows.filters import RowFilter, row_filter
from omnigraph.rows.key_predicates import anchor
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID
from omnigraph.write.change.change_set import (
    ChangeSet,
    EntityType,
    TypeBatch,
    TypeChange,
    last_of_each_id,
    located_columns,
    no_located,
    row_columns,
    type_key,
    without,
)
from omnigraph.write.change.row_ids import fresh_ids, key_ids
from omnigraph.write.mutation.values import absent_array, assigned_arrays, property_array
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import FilteredLookup, FilterScan, KeyLookup, ReadSet
from omnigraph.write.rules.row_rules import check_required
from omnigraph.write.rules.violations import NoSource, Violations


@dataclass(frozen=True, slots=True)
class MutationChanges:
    """What a mutation does, and how many nodes and edges its statements affected."""

    changes: ChangeSet
    affected_nodes: int
    affected_edges: int


def run_mutation(
    mutation: plan.MutationPlan, values: Values, base: Base, reads: ReadSet, embedder: Embedder
) -> MutationChanges:
    """Run every statement, in order."""
    run = _Run(base, reads, values)
    for statement in mutation.statements:
        run.execute(statement)
    repeatable = all(
        isinstance(statement, plan.InsertNode | plan.InsertEdge)
        for statement in mutation.statements
    )
    types = {key: pending.change(embedder) for key, pending in sorted(run.pending.items())}
    changes = ChangeSet(types, repeatable)
    return MutationChanges(changes, run.affected_nodes, run.affected_edges)


class _Pending:
    """What has happened to one type so far."""

    def __init__(self, type_: EntityType) -> None:
        self.type = type_
        self.rows = row_columns(type_).empty_table()
        self.existing = no_located(type_)
        self.deleted = no_located(type_)
        self.batches: list[TypeBatch] = []
        # The ids of the rows whose vectors may be computed. A row that is written for another
        # reason keeps its vector, and its lack of one.
        self._to_embed: dict[str, list[pa.ChunkedArray]] = {
            name: [] for name in embedded_properties(type_)
        }

    def put(self, rows: pa.Table, *, fresh: bool) -> None:
        """Rows that are inserted or replaced; the last of one id stays."""
        together = pa.concat_tables([self.rows, rows])
        kept = last_of_each_id(together)
        self.rows = together if kept is None else together.take(pa.array(kept))
        marks = pa.array([fresh] * rows.num_rows)
        self.batches.append(TypeBatch(self.type, rows, marks))

    def embed_later(self, name: str, rows: pa.Table) -> None:
        """Have a vector of these rows computed, should it still be empty in the end."""
        self._to_embed[name].append(rows.column("id"))

    def change(self, embedder: Embedder) -> TypeChange:
        """The final image."""
        among = {name: self._among(ids) for name, ids in self._to_embed.items()}
        rows = fill_vectors(self.rows, self.type, embedder, among)
        return TypeChange(self.type, rows, self.existing, self.deleted, tuple(self.batches))

    def _among(self, ids: list[pa.ChunkedArray]) -> Marks:
        chunks = [chunk for some in ids for chunk in some.chunks]
        known = pa.chunked_array(chunks, pa.string()).combine_chunks()
        marks: Marks = pc.is_in(self.rows.column("id"), value_set=known).to_numpy()
        return marks


@dataclass(slots=True)
class _Run:
    """One run of a mutation."""

    base: Base
    reads: ReadSet
    values: Values
    pending: dict[str, _Pending] = field(default_factory=dict)
    affected_nodes: int = 0
    affected_edges: int = 0

    def execute(self, statement: plan.Statement) -> None:
        catalog = self.base.catalog
        match statement:
            case plan.InsertNode(name, assignments):
                self._insert_node(catalog.nodes[name], assignments)
            case plan.InsertEdge():
                self._insert_edge(catalog.edges[statement.edge_type], statement)
            case plan.UpdateNodes(name, assignments, where):
                self._update(catalog.nodes[name], assignments, where)
            case plan.UpdateEdges(name, assignments, where):
                self._update(catalog.edges[name], assignments, where)
            case plan.DeleteNodes(name, where, cascades):
                self._delete_nodes(catalog.nodes[name], where, cascades)
            case plan.DeleteEdges(name, where):
                edge = catalog.edges[name]
                self.affected_edges += self._delete(edge, self._matching(edge, where))

    # -- inserting -------------------------------------------------------------------

    def _insert_node(self, node: NodeType, assignments: Iterable[plan.Assignment]) -> None:
        row = self._new_row(node, assignments)
        row["id"] = key_ids(node, pa.table(row)) if node.key else fresh_ids(1)
        self._put_new(node, row, fresh=not node.key)
        self.affected_nodes += 1

    def _insert_edge(self, edge: EdgeType, statement: plan.InsertEdge) -> None:
        row = self._new_row(edge, statement.assignments)
        ends = zip(ENDPOINTS.items(), (statement.source, statement.target), strict=True)
        for (column, spelled), value in ends:
            end = self.values.of(value)
            if end is None:
                raise ValidationError(f"endpoint '{spelled}' is null", rule="required")
            row[column] = pa.array([end], pa.string())
        row["id"] = fresh_ids(1)
        self._put_new(edge, row, fresh=True)
        self.affected_edges += 1

    def _new_row(
        self, type_: EntityType, assignments: Iterable[plan.Assignment]
    ) -> dict[str, pa.Array]:
        assigned = {item.property: self.values.of(item.value) for item in assignments}
        row = {
            name: property_array(assigned[name], found) if name in assigned else absent_array(found)
            for name, found in type_.properties.items()
        }
        # It has no id yet; what is wrong with it is told without one.
        self._require(type_, pa.table({"id": pa.nulls(1, pa.string()), **row}))
        return row

    def _put_new(self, type_: EntityType, row: dict[str, pa.Array], *, fresh: bool) -> None:
        columns = row_columns(type_)
        rows = pa.table([row[name] for name in columns.names], schema=columns)
        pending = self._of(type_)
        pending.put(rows, fresh=fresh)
        for name in embedded_properties(type_):
            pending.embed_later(name, rows)
        if not fresh:
            self._locate(pending, rows.column("id"))

    def _locate(self, pending: _Pending, ids: pa.ChunkedArray) -> None:
        """Find the stored rows that new ones replace."""
        known = pending.existing
        found = self.reads.hold(
            self.base,
            type_key(pending.type),
            "id",
            ids.combine_chunks(),
            *located_columns(pending.type),
        )
        pending.existing = _joined(known, without(found, known.column("id")))

    # -- updating and deleting -------------------------------------------------------

    def _update(
        self,
        type_: EntityType,
        assignments: Iterable[plan.Assignment],
        where: tuple[plan.Predicate, ...],
    ) -> None:
        assigned = assigned_arrays(type_, assignments, self.values)
        pending = self._of(type_)
        wanted = row_filter(where, self.values.of)
        question = selection(type_, where, wanted, self.values)
        stored = self.reads.ask(self.base, type_key(type_), question)
        stored = without(stored, pending.rows.column("id"))
        located = stored.select([*located_columns(type_), ROW_ID, ROW_ADDRESS])
        columns = row_columns(type_)
        matched = pa.concat_tables(
            [wanted.select(pending.rows), stored.select(columns.names).cast(columns)]
        )
        if not matched.num_rows:
            return
        before = matched
        for name, value in assigned.items():
            repeated = value.take(pa.array(np.zeros(matched.num_rows, dtype=np.int64)))
            position = columns.get_field_index(name)
            matched = matched.set_column(position, columns.field(position), repeated)
        for name, embedding in embedded_properties(type_).items():
            if embedding.source in assigned and name not in assigned:
                matched = _without_stale(matched, name, embedding.source, before)
            if assigned.keys() & {name, embedding.source}:
                pending.embed_later(name, matched)
        self._require(type_, matched)
        pending.existing = _joined(pending.existing, located)
        pending.put(matched, fresh=False)
        self._count(type_, matched.num_rows)

    def _delete_nodes(
        self, node: NodeType, where: tuple[plan.Predicate, ...], cascades: tuple[str, ...]
    ) -> None:
        matched = self._matching(node, where)
        self.affected_nodes += self._delete(node, matched)
        ids = matched.column("id").combine_chunks()
        if not len(ids):
            return
        for name in cascades:
            edge = self.base.catalog.edges[name]
            ends = [("src", edge.source), ("dst", edge.target)]
            for column, end in ends:
                if end == node.name:
                    touching = self.reads.hold(
                        self.base, type_key(edge), column, ids, *located_columns(edge)
                    )
                    self.affected_edges += self._delete(edge, touching)

    def _matching(self, type_: EntityType, where: tuple[plan.Predicate, ...]) -> pa.Table:
        wanted = row_filter(where, self.values.of)
        question = selection(type_, where, wanted, self.values, located_columns(type_))
        return self.reads.ask(self.base, type_key(type_), question)

    def _delete(self, type_: EntityType, matched: pa.Table) -> int:
        """Delete stored rows that are not deleted yet; says how many those are."""
        pending = self._of(type_)
        new = without(matched, pending.deleted.column("id"))
        pending.deleted = _joined(pending.deleted, new)
        return int(new.num_rows)

    # -- keeping track ---------------------------------------------------------------

    def _of(self, type_: EntityType) -> _Pending:
        return self.pending.setdefault(type_key(type_), _Pending(type_))

    def _count(self, type_: EntityType, rows: int) -> None:
        if isinstance(type_, NodeType):
            self.affected_nodes += rows
        else:
            self.affected_edges += rows

    def _require(self, type_: EntityType, rows: pa.Table) -> None:
        violations = Violations()
        check_required(type_, rows, violations, NoSource(), before_embedding=True)
        violations.raise_if_any()


def _joined(first: pa.Table, second: pa.Table) -> pa.Table:
    return pa.concat_tables([first, second.select(first.column_names).cast(first.schema)])


def _without_stale(rows: pa.Table, name: str, source: str, before: pa.Table) -> pa.Table:
    """The rows without the vectors of texts that they do not have any more."""
    now, then = rows.column(source), before.column(source)
    is_same = pc.coalesce(pc.equal(now, then), pc.and_(now.is_null(), then.is_null()))
    position = rows.schema.get_field_index(name)
    field = rows.schema.field(position)
    none = pa.nulls(rows.num_rows, field.type)
    return rows.set_column(position, field, pc.if_else(is_same, rows.column(name), none))


def selection(
    type_: EntityType,
    where: tuple[plan.Predicate, ...],
    filter_: RowFilter,
    values: Values,
    wanted: tuple[str, ...] | None = None,
) -> FilteredLookup | FilterScan:
    """The rows of a type that a where clause chooses; ``wanted`` columns of them, or all."""
    key = type_.key if isinstance(type_, NodeType) else ()
    named = anchor(key, where, values.of)
    if named is None:
        return FilterScan(filter_, wanted)
    return FilteredLookup(KeyLookup(named.column, named.texts, (named.column,)), filter_, wanted)
