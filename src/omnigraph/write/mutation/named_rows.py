"""Named rows: many statements that name their rows by a text, and the one question for all of them.

Owns that asking once finds what asking for each statement would find, and which statement is
about which row. Rows are named by their id, which is their key, or by an end: nothing that a
statement changes. Knows nothing of what is done to them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.filters import RowFilter
from omnigraph.storage.budget import need
from omnigraph.storage.tables.row_lookup import MAX_LISTED, find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.write.publish.read_set import FilteredLookup, has_blobs

Places = npt.NDArray[np.int64]
_AT = "@at"
"""No property has this name: where a row stands among others."""


@dataclass(frozen=True, slots=True)
class NamedRows:
    """What one statement is about: the rows with these texts, and what else has to hold of them."""

    texts: pa.Array
    filter: RowFilter | None = None

    @classmethod
    def of(cls, selected: FilteredLookup, *, is_exact: bool) -> NamedRows:
        """What a where clause chooses; exactly so, if it says nothing but the texts."""
        return cls(selected.anchor.texts, None if is_exact else selected.filter)


@dataclass(frozen=True)
class BatchLookup:
    """The rows that any of some statements is about; ``wanted`` columns of them, or all."""

    column: str
    parts: tuple[NamedRows, ...]
    wanted: tuple[str, ...] | None = None

    @cached_property
    def texts(self) -> pa.Array:
        """Every text once."""
        return pa.chunked_array([part.texts for part in self.parts], pa.string()).unique()

    @cached_property
    def columns(self) -> Sequence[str]:
        """The text column, and what the filters look at."""
        filters = [part.filter for part in self.parts if part.filter is not None]
        return tuple(dict.fromkeys([self.column, *(c for one in filters for c in one.columns)]))

    @property
    def is_small(self) -> bool:
        """Few texts are looked up at once."""
        return len(self.texts) <= MAX_LISTED

    def ask(self, table: Table) -> pa.Table:
        """Find the rows through the maps of texts, then filter them in memory."""
        wanted = self.wanted or tuple(table.schema.names)
        read = tuple(dict.fromkeys([*wanted, *self.columns]))
        with_blobs = self.wanted is None and has_blobs(table.schema)
        rows = find_rows(table, self.column, self.texts, read, with_blobs=with_blobs)
        return self.select(rows).select([*wanted, ROW_ID, ROW_ADDRESS])

    def select(self, rows: pa.Table) -> pa.Table:
        """The rows that a statement is about, in their order."""
        exact = [part.texts for part in self.parts if part.filter is None]
        chosen = np.array(pc.is_in(rows.column(self.column), value_set=_joined(exact)))
        for part, places in zip(self.parts, self._named(rows), strict=True):
            if part.filter is not None and len(places):
                some = rows.take(pa.array(places)).append_column(_AT, pa.array(places))
                chosen[part.filter.select(some).column(_AT)] = True
        return rows.filter(pa.array(chosen))

    def _named(self, rows: pa.Table) -> list[Places]:
        """Where the rows stand that have a text of each statement."""
        statements, places = self.hits(rows)
        return np.split(places, np.searchsorted(statements, np.arange(1, len(self.parts))))

    def hits(self, rows: pa.Table) -> tuple[Places, Places]:
        """Each statement with each row that has one of its texts, by the order of statements."""
        known = rows.column(self.column).combine_chunks().dictionary_encode()
        sizes = [len(part.texts) for part in self.parts]
        statements = np.repeat(np.arange(len(self.parts)), sizes)
        texts = pa.chunked_array([part.texts for part in self.parts], pa.string())
        codes = pc.index_in(texts, value_set=known.dictionary)
        is_known = codes.is_valid().to_numpy()
        codes = codes.drop_null().to_numpy().astype(np.int64)
        # A list may name a row twice, and means it once.
        named = np.unique(np.stack([statements[is_known], codes]), axis=1)
        row_codes = known.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        order = np.argsort(row_codes, kind="stable")
        starts = np.searchsorted(row_codes, named[1], side="left", sorter=order)
        counts = np.searchsorted(row_codes, named[1], side="right", sorter=order) - starts
        before = np.cumsum(counts) - counts
        positions = np.arange(counts.sum()) + np.repeat(starts - before, counts)
        return np.repeat(named[0], counts), order[positions]


def assign(
    rows: pa.Table, values: Sequence[Mapping[str, pa.Array]], hits: tuple[Places, Places]
) -> tuple[pa.Table, dict[str, pa.Array]]:
    """Rows with the values that statements give them, the last one counts; and which rows.

    Of each statement the values of one row, by property; ``hits`` say which rows it is about.
    """
    statements, places = hits
    given: dict[str, pa.Array] = {}
    for name in dict.fromkeys(name for some in values for name in some):
        giving = [number for number, some in enumerate(values) if name in some]
        # The place of a statement's value; those that give none come first.
        at = np.full(len(values), -1, dtype=np.int64)
        at[giving] = np.arange(len(giving))
        is_given = at[statements] >= 0
        chosen = np.full(rows.num_rows, -1, dtype=np.int64)
        # Where a row is named more than once, the last of them is what stays.
        chosen[places[is_given]] = at[statements[is_given]]
        new = pa.concat_arrays([values[number][name] for number in giving])
        position = rows.schema.get_field_index(name)
        field, old = rows.schema.field(position), rows.column(position)
        need(old.nbytes + _repeated(new, chosen[chosen >= 0]))
        joined = pa.chunked_array([*old.chunks, new], field.type).combine_chunks()
        taken = np.where(chosen < 0, np.arange(rows.num_rows), rows.num_rows + chosen)
        rows = rows.set_column(position, field, joined.take(pa.array(taken)))
        given[name] = pa.array(chosen >= 0)
    return rows, given


def _repeated(values: pa.Array, places: Places) -> int:
    """The bytes of values that are taken as often as their places say, roughly."""
    times = np.bincount(places, minlength=1)
    return int(times.max()) * int(values.nbytes)


def _joined(texts: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(texts, pa.string()).combine_chunks()
