"""One run of a mutation: what its statements have done so far, and what all kinds of them share.

Owns giving rows to a type, taking rows away with their edges, and counting. Which rows, and which
values they get, is for the kinds of statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.lang.query import plan
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.rows.evaluation import constant_of
from omnigraph.storage.budget import took
from omnigraph.write.change.change_set import (
    EntityType,
    located_columns,
    row_columns,
    type_key,
)
from omnigraph.write.mutation.edge_ends import EdgeEnds
from omnigraph.write.mutation.given_rows import Assigned, without_stale
from omnigraph.write.mutation.inserts import put_fresh, put_keyed
from omnigraph.write.mutation.pending import Pending
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet
from omnigraph.write.rules.edges import named_by
from omnigraph.write.rules.row_rules import required_text
from omnigraph.write.rules.violations import Violation, Violations

Given = Sequence[tuple[InsertVerb, Assigned]]


@dataclass(slots=True)
class MutationRun:
    """One run of a mutation."""

    base: Base
    reads: ReadSet
    values: Values
    pending: dict[str, Pending] = field(default_factory=dict)
    affected_nodes: int = 0
    affected_edges: int = 0

    # -- giving ----------------------------------------------------------------------

    def give(self, type_: EntityType, given: Given, ends: dict[str, pa.Array]) -> pa.Array:
        """Rows for a type, for edges with their ends; the id of each."""
        if type_.key:
            ids = put_keyed(self.of(type_), given, ends, self.base, self.reads)
        else:
            ids = put_fresh(self.of(type_), [values for _, values in given], ends)
        self.count(type_, len(given))
        return ids

    def assigned(self, type_: EntityType, assignments: Iterable[plan.Assignment]) -> Assigned:
        """The values of a statement that looks at no row."""
        given = {one.property: constant_of(one.value, self.values.of) for one in assignments}
        require_values(type_, given)
        return given

    @property
    def ends(self) -> EdgeEnds:
        """How to find the nodes that statements name."""
        return EdgeEnds(self.base, self.reads, self.values, self.pending)

    def put_updated(
        self,
        type_: EntityType,
        before: pa.Table,
        assigned: Mapping[str, pa.Array],
        stored: pa.Table,
    ) -> None:
        """Rows as they were with a value for each of some properties; some are ``stored``."""
        columns, rows, pending = row_columns(type_), took(before), self.of(type_)
        for name, value in assigned.items():
            position = columns.get_field_index(name)
            rows = rows.set_column(position, columns.field(position), value)
        every = pa.array(np.ones(rows.num_rows, dtype=bool))
        for name, embedding in embedded_properties(type_).items():
            source = embedding.source
            if source in assigned and name not in assigned:
                rows = without_stale(rows, name, source, before.column(source), every)
            if assigned.keys() & {name, source}:
                pending.embed_later(name, rows.column(ID))
        for name in assigned:
            pending.left_out.give(name, rows.column(ID))
        pending.put(rows, stored)
        self.count(type_, rows.num_rows)

    # -- taking away -----------------------------------------------------------------

    def remove(self, type_: EntityType, stored: pa.Table, written: pa.Table) -> pa.Array:
        """Delete stored rows, so far as they are untouched, and rows that were written before."""
        pending = self.of(type_)
        stored = pending.untouched(stored)
        pending.delete(stored, written.column(ID))
        self.count(type_, stored.num_rows + written.num_rows)
        gone = pa.concat_tables([stored.select([ID]), written.select([ID])])
        return gone.column(ID).combine_chunks()

    def cascade(self, node: str, edges: tuple[str, ...], ids: pa.Array) -> None:
        """The edges of nodes that are gone go with them."""
        if not len(ids):
            return
        catalog = self.base.catalog
        for name in edges:
            edge = catalog.edges[name]
            for column in (SRC, DST):
                for found in catalog.nodes_at(edge, column):
                    if found.name == node:
                        self._delete_at(edge, column, named_by(edge, column, found, ids))

    def _delete_at(self, edge: EdgeType, column: str, nodes: pa.Array) -> None:
        """Delete the edges that have one of these nodes, as they call them, at an end."""
        key = type_key(edge)
        stored = self.reads.hold(self.base, key, column, nodes, *located_columns(edge))
        pending = self.of(edge).rows
        self.remove(edge, stored, pending.filter(pc.is_in(pending.column(column), value_set=nodes)))

    # -- keeping track ---------------------------------------------------------------

    def of(self, type_: EntityType) -> Pending:
        """What has happened to a type so far."""
        key = type_key(type_)
        if key not in self.pending:
            self.pending[key] = Pending(type_)
        return self.pending[key]

    def count(self, type_: EntityType, rows: int) -> None:
        """So many rows of a type were affected."""
        if isinstance(type_, NodeType):
            self.affected_nodes += rows
        else:
            self.affected_edges += rows


def require_values(type_: EntityType, given: Assigned) -> None:
    """Refuse a null where it can only be wrong."""
    violations = Violations()
    for name, value in given.items():
        found = type_.properties[name]
        if value is None and not found.type.nullable and found.embedding is None:
            text = required_text(name)
            violations.add(Violation("required", text, type_key(type_), name))
    violations.raise_if_any()
