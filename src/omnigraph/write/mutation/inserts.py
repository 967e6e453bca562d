"""Inserts, creates and upserts: a batch of them, run into the pending rows of a type.

Owns what each verb does to a row that exists, and whom it asks about such rows. How the
statements of a batch add up is the business of the given rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.structural import ID
from omnigraph.rows.filters import RowFilter
from omnigraph.write.change.change_set import (
    EntityType,
    among,
    fresh_ids,
    key_ids,
    located_columns,
    no_located,
    row_columns,
    type_key,
    without,
)
from omnigraph.write.mutation.given_rows import (
    Assigned,
    Beginnings,
    GivenRows,
    fold,
    without_stale,
)
from omnigraph.write.mutation.pending import Pending
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import FilteredLookup, KeyLookup, ReadSet
from omnigraph.write.rules.uniqueness import EXISTS, KeyClash, refuse
from omnigraph.write.rules.violations import NoSource


def put_fresh(pending: Pending, given: Sequence[Assigned], ends: dict[str, pa.Array]) -> pa.Array:
    """Rows of a type without a key, for edges with their ends: each of them is new; their ids."""
    ids = fresh_ids(len(given))
    rows = _rows(pending.type, given, Beginnings.nothing(len(given)), {ID: ids, **ends})
    for name in embedded_properties(pending.type):
        pending.embed_later(name, ids)
    pending.put(rows, no_located(pending.type))
    return ids


def put_keyed(
    pending: Pending,
    given: Sequence[tuple[InsertVerb, Assigned]],
    ends: dict[str, pa.Array],
    base: Base,
    reads: ReadSet,
) -> pa.Array:
    """Rows of a type with a key, for edges with their ends: their ids say whether they exist."""
    type_, nothing = pending.type, Beginnings.nothing(len(given))
    assigned = [values for _, values in given]
    properties = (type_.properties[name] for name in type_.key if name not in ends)
    members = {one.name: nothing.given(one, assigned) for one in properties}
    ids = key_ids(type_, pa.table({**ends, **members}))
    named = zip(ids.to_pylist(), given, strict=True)
    batch = fold(type_, ((id_, *one) for id_, one in named))
    # Rows of one id have the same ends, which are part of it.
    firsts = pc.index_in(batch.ids, value_set=ids)
    own = {column: every.take(firsts) for column, every in ends.items()}
    _Batch(pending, batch, own, base, reads).put()
    return ids


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of statements that name rows of one type by their keys."""

    pending: Pending
    given: GivenRows
    ends: dict[str, pa.Array]
    base: Base
    reads: ReadSet

    @property
    def type(self) -> EntityType:
        return self.pending.type

    def put(self) -> None:
        ids, given = self.given.ids, list(self.given.rows.values())
        unknown = _except(ids, self.pending.touched.combine_chunks())
        replacing = self.given.replacing
        replaced = self.reads.hold(
            self.base,
            type_key(self.type),
            ID,
            _common(unknown, replacing),
            *located_columns(self.type),
        )
        changed = self._stored(_except(unknown, replacing))
        located = pa.concat_tables(
            found.select(no_located(self.type).column_names) for found in (replaced, changed)
        )
        self._refuse_existing(located)
        self._note_left_out(replaced, replacing)
        columns = row_columns(self.type)
        begins = Beginnings.of(
            ids,
            pa.concat_tables(
                [
                    without(among(self.pending.rows, ids), replacing),
                    changed.select(columns.names).cast(columns),
                ]
            ),
        )
        rows = _rows(self.type, [row.values for row in given], begins, {ID: ids, **self.ends})
        for name, embedding in embedded_properties(self.type).items():
            doubted = np.array([name in row.doubted for row in given])
            if doubted.any():
                before = begins.column(self.type.properties[embedding.source])
                rows = without_stale(rows, name, embedding.source, before, pa.array(doubted))
            self._embed_later(name, embedding.source, ids, begins)
        self.pending.put(rows, located)

    def _stored(self, ids: pa.Array) -> pa.Table:
        """The stored rows of which something stays."""
        lookup = FilteredLookup(KeyLookup(ID, ids, (ID,)), RowFilter())
        return self.reads.ask(self.base, type_key(self.type), lookup)

    def _refuse_existing(self, located: pa.Table) -> None:
        strict = pa.array(
            [id_ for id_, row in self.given.rows.items() if row.must_be_new], pa.string()
        )
        known = pa.concat_tables([self.pending.rows.select([ID]), located.select([ID])])
        found = _common(strict, known.column(ID).combine_chunks())
        clashing = pa.concat_arrays([found, pa.array(self.given.clashing, pa.string())])
        if len(clashing):
            every = np.arange(len(clashing))
            refuse(KeyClash(self.type, clashing, every, NoSource(), EXISTS))

    def _note_left_out(self, replaced: pa.Table, replacing: pa.Array) -> None:
        """What replaced rows may lose, and what all rows are given."""
        stored = [*replaced.column(ID).chunks, *self.pending.stored.chunks]
        losing = _common(pa.chunked_array(stored, pa.string()).combine_chunks(), replacing)
        left_out = self.pending.left_out
        for name, property_ in self.type.properties.items():
            if property_.type.nullable:
                having = self.given.having(name)
                left_out.give(name, having)
                left_out.leave_out(name, _except(losing, having))

    def _embed_later(self, name: str, source: str, ids: pa.Array, begins: Beginnings) -> None:
        """Of rows that are made, and of rows whose vector or text is given."""
        self.pending.embed_later(name, ids.filter(pa.array(begins.at < 0)))
        for given in (name, source):
            self.pending.embed_later(name, self.given.having(given))


def _rows(
    type_: EntityType, given: Sequence[Assigned], begins: Beginnings, columns: dict[str, pa.Array]
) -> pa.Table:
    for name, property_ in type_.properties.items():
        columns[name] = begins.given(property_, given)
    schema = row_columns(type_)
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _except(first: pa.Array, second: pa.Array) -> pa.Array:
    return first.filter(pc.invert(pc.is_in(first, value_set=second)))


def _common(first: pa.Array, second: pa.Array) -> pa.Array:
    return first.filter(pc.is_in(first, value_set=second))
