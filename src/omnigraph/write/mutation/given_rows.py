"""Given rows: what inserts, creates and upserts that follow one another give to one type.

Owns that a batch of them does what they would do one by one: what is given to one row in
several statements, and the columns that come of it. Never looks at what is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.embed.fill import embedded_properties
from omnigraph.lang.query.plan import Constant
from omnigraph.lang.query.terms import InsertVerb
from omnigraph.lang.schema.catalog import PropertyDef
from omnigraph.lang.structural import ID
from omnigraph.write.change.change_set import EntityType, Rows
from omnigraph.write.mutation.values import absent_array, property_array

Assigned = dict[str, Constant]
"""The values of properties, by name."""


@dataclass(slots=True)
class GivenRow:
    """What statements give to one row, one after the other.

    ``replaces`` says that nothing is left of a row that exists, ``must_be_new`` that there may
    be none. ``doubted`` are the vectors that stay only if the text they were made of does.
    """

    values: Assigned
    replaces: bool
    must_be_new: bool
    doubted: set[str] = field(default_factory=set)

    def change(self, type_: EntityType, values: Assigned) -> None:
        """What a further upsert gives."""
        for name, embedding in embedded_properties(type_).items():
            source = embedding.source
            if name in values:
                self.doubted.discard(name)
            elif source in values:
                if source not in self.values and not self.replaces:
                    self.doubted.add(name)
                elif values[source] != self.values.get(source, type_.properties[source].default):
                    self.doubted.discard(name)
                    self.values[name] = None
        self.values |= values


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The rows of a batch by id, and the ids that are created although they were given before."""

    rows: dict[str, GivenRow]
    clashing: list[str]

    @property
    def ids(self) -> pa.Array:
        """Their ids, each of them once."""
        return pa.array(self.rows, pa.string())

    @property
    def replacing(self) -> pa.Array:
        """The ids of the rows of which nothing is left that was there before."""
        return pa.array([id_ for id_, row in self.rows.items() if row.replaces], pa.string())

    def having(self, name: str) -> pa.Array:
        """The ids of the rows that are given a value of a property."""
        return pa.array([id_ for id_, row in self.rows.items() if name in row.values], pa.string())


def fold(type_: EntityType, given: Iterable[tuple[str, InsertVerb, Assigned]]) -> GivenRows:
    """What is given to each id in the end."""
    rows: dict[str, GivenRow] = {}
    clashing: list[str] = []
    for id_, verb, values in given:
        known = rows.get(id_)
        if known is not None and verb == "create":
            clashing.append(id_)
        if known is not None and verb == "upsert":
            known.change(type_, values)
            continue
        must_be_new = verb == "create" if known is None else known.must_be_new
        rows[id_] = row = GivenRow({}, verb != "upsert", must_be_new)
        if verb == "upsert":
            row.change(type_, values)
        else:
            row.values = dict(values)
    return GivenRows(rows, clashing)


@dataclass(frozen=True, slots=True)
class Beginnings:
    """What rows are before something is given to them: a row there is, or nothing but defaults.

    ``at`` says where among ``rows`` each begins, below zero for nothing.
    """

    at: Rows
    rows: pa.Table | None = None

    @classmethod
    def of(cls, ids: pa.Array, rows: pa.Table) -> Beginnings:
        """The rows that have these ids."""
        known = rows.column(ID).combine_chunks()
        at = pc.fill_null(pc.index_in(ids, value_set=known), -1)
        return cls(at.to_numpy(zero_copy_only=False).astype(np.int64), rows)

    @classmethod
    def nothing(cls, count: int) -> Beginnings:
        """No row at all."""
        return cls(np.full(count, -1, dtype=np.int64))

    def column(self, property_: PropertyDef) -> pa.Array:
        """What each of them is before."""
        return self.given(property_, [{}] * len(self.at))

    def given(self, property_: PropertyDef, values: Sequence[Mapping[str, Constant]]) -> pa.Array:
        """What each of them is after these values."""
        name = property_.name
        at = [row for row, some in enumerate(values) if name in some]
        new = property_array([values[row][name] for row in at], property_)
        if len(at) == len(values):
            return new
        old = [absent_array(property_)]
        if self.rows is not None:
            old += self.rows.column(name).chunks
        places = self.at + 1
        places[at] = sum(map(len, old)) + np.arange(len(at))
        return pa.chunked_array([*old, new], new.type).combine_chunks().take(pa.array(places))


def without_stale(
    rows: pa.Table, name: str, source: str, before: pa.Array | pa.ChunkedArray, doubted: pa.Array
) -> pa.Table:
    """The rows without the doubted vectors of texts that they do not have any more."""
    now = rows.column(source)
    both_null = pc.and_(now.is_null(), before.is_null())
    is_stale = pc.and_(doubted, pc.invert(pc.coalesce(pc.equal(now, before), both_null)))
    position = rows.schema.get_field_index(name)
    column = rows.schema.field(position)
    none = pa.nulls(rows.num_rows, column.type)
    return rows.set_column(position, column, pc.if_else(is_stale, none, rows.column(name)))
