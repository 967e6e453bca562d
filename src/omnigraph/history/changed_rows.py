"""Changed rows: what two versions of one table say differently, in the order of the ids.

Owns when two stored values are equal, column by column, under one schema or under two. Never
reads a row whole that it can tell apart by its address, nor a column that both read from one
place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ChangeDiffRefused
from omnigraph.lang.structural import ID
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits, in_order, merge_join
from omnigraph.storage.tables.columns import is_blob, plain_blobs
from omnigraph.storage.tables.fragments import layout_of, stream_parts
from omnigraph.storage.tables.rows_in_place import ColumnPair, is_stored_once, rows_in_place
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, column_names
from omnigraph.storage.tables.version_diff import rows_among, rows_only_in

LOCATION = (ROW_ID, ROW_ADDRESS)
"""The columns that say where a row lies, which are never compared."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = pa.Array | pa.ChunkedArray
Rows: TypeAlias = pa.Table | pa.RecordBatch
Addresses: TypeAlias = npt.NDArray[np.uint64]
Column: TypeAlias = str | ColumnPair
NOWHERE: Addresses = np.empty(0, dtype=np.uint64)
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int32(): (pa.int64(), pa.float64()),
    pa.uint32(): (pa.uint64(), pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
}


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The changes of one range of ids; every table is in the order of the ids.

    ``before`` and ``after`` are the two sides of the updated rows, aligned. A blob is
    its bytes.
    """

    inserted: pa.Table
    before: pa.Table
    after: pa.Table
    deleted: pa.Table

    @property
    def count(self) -> int:
        """How many rows changed."""
        return int(self.inserted.num_rows + self.after.num_rows + self.deleted.num_rows)

    @property
    def ids(self) -> pa.Array:
        """The ids of all of them."""
        parts = (self.inserted, self.after, self.deleted)
        return pa.concat_arrays([rows.column(ID).combine_chunks() for rows in parts])


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many rows are new, different and gone."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def plus(self, step: ChangedRows) -> ChangeCounts:
        """With those of a range of ids."""
        return ChangeCounts(
            self.inserted + step.inserted.num_rows,
            self.updated + step.after.num_rows,
            self.deleted + step.deleted.num_rows,
        )


def changed_rows(
    before: Table,
    after: Table,
    columns: Sequence[Column] | None = None,
    *,
    located: bool = False,
    limits: SortLimits = DEFAULT_LIMITS,
) -> Iterator[ChangedRows]:
    """What changed between two versions of one table; ids ascend from step to step.

    Only the named columns are compared, `@id` among them; all of them without any. A name stands
    for a column of both, and what one of them does not have is null there. With ``located`` the
    rows have their row ids and addresses too.
    """
    pairs = _pairs_of(before, after, columns)
    if pairs:
        in_place = _changed_in_place(before, after, pairs)
        yield from _changed(before, after, pairs, in_place, located=located, limits=limits)


def count_changed(
    before: Table,
    after: Table,
    columns: Sequence[Column] | None = None,
    *,
    limits: SortLimits = DEFAULT_LIMITS,
) -> ChangeCounts:
    """How many rows changed; of those that are where they were, only what may differ is read."""
    pairs = _pairs_of(before, after, columns)
    if not pairs:
        return ChangeCounts()
    total = ChangeCounts(updated=len(_changed_in_place(before, after, pairs)))
    for step in _changed(before, after, pairs, NOWHERE, limits=limits):
        total = total.plus(step)
    return total


def _pairs_of(
    before: Table, after: Table, columns: Sequence[Column] | None
) -> tuple[ColumnPair, ...]:
    """What is to be compared, as it is stored; nothing at all if nothing can differ."""
    is_same = _is_whole(before, after) and (
        (before.location, before.pin.version) == (after.location, after.pin.version)
    )
    if columns is None and is_same and before.columns == after.columns:
        return ()
    pairs = paired(compared_columns(before, after) if columns is None else columns)
    if is_same and all(is_stored_once(before, after, pair) for pair in pairs):
        return ()
    old, new = column_names(before), column_names(after)
    stored = (
        ColumnPair(
            pair.before if pair.before in old else None, pair.after if pair.after in new else None
        )
        for pair in pairs
    )
    return tuple(pair for pair in stored if pair.before is not None or pair.after is not None)


def _changed_in_place(before: Table, after: Table, pairs: Sequence[ColumnPair]) -> Addresses:
    """The addresses of rows that are where they were and say something else, ascending."""
    found = [NOWHERE]
    if not _is_whole(before, after):
        return NOWHERE  # all rows are compared
    for rows in rows_in_place(before, after, pairs):
        mask = any_differs(rows.before, rows.after, rows.pairs)
        found.append(rows.addresses[mask])
    return np.sort(np.concatenate(found))


def _changed(
    before: Table,
    after: Table,
    pairs: Sequence[ColumnPair],
    in_place: Addresses,
    *,
    located: bool = False,
    limits: SortLimits,
) -> Iterator[ChangedRows]:
    old = [pair.before for pair in pairs if pair.before is not None]
    new = [pair.after for pair in pairs if pair.after is not None]
    sides = merge_join(
        [
            only_in(before, after, old, located=located, limits=limits, in_place=in_place),
            only_in(after, before, new, located=located, limits=limits, in_place=in_place),
        ]
    )
    for was, now in sides:
        found = compare(was, now, pairs)
        if found.count:
            yield found


def only_in(
    one: Table,
    other: Table,
    columns: Sequence[str],
    *,
    compared: Sequence[str] | None = None,
    located: bool = False,
    limits: SortLimits = DEFAULT_LIMITS,
    in_place: Addresses | None = None,
) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    """The rows of ``one`` that ``other`` has not, in order, and their schema.

    Those that lie elsewhere or nowhere in it, and those in the same place that differ in what
    the two have stored apart: of the ``compared`` columns, or of these. Where it is known which
    these are, they are ``in_place``. Blobs are their bytes.
    """
    names = [*columns, *LOCATION] if located else list(columns)
    schema = plain_blobs(pa.schema([one.schema.field(name) for name in columns]))
    if located:
        for name in LOCATION:
            schema = schema.append(pa.field(name, pa.uint64()))
    with_blobs = any(is_blob(one.schema.field(name)) for name in columns)

    def rows() -> Iterator[pa.RecordBatch]:
        if not _is_whole(one, other):
            yield from one.batches(columns, with_blobs=with_blobs)
            return
        yield from rows_only_in(one, other, names, with_blobs=with_blobs)
        found = in_place
        if found is None:
            found = _changed_in_place(one, other, paired(compared or columns))
        if len(found):
            yield from rows_among(one, found, names, with_blobs=with_blobs)

    return in_order((_conform(batch, schema) for batch in rows()), limits), schema


def every_row(
    table: Table, columns: Sequence[str], limits: SortLimits = DEFAULT_LIMITS
) -> Iterator[pa.Table]:
    """All rows of a version, in order and piece by piece; blobs are their bytes."""
    schema = plain_blobs(pa.schema([table.schema.field(name) for name in columns]))
    with_blobs = any(is_blob(table.schema.field(name)) for name in columns)
    rows: Iterator[pa.RecordBatch]
    if not table.is_whole:
        rows = table.batches(columns, with_blobs=with_blobs)
    else:
        parts = layout_of(table).parts
        rows = stream_parts(table, columns, parts, with_blobs=with_blobs) if parts else iter(())
    for batch in in_order((_conform(batch, schema) for batch in rows), limits):
        yield pa.Table.from_batches([batch])


def _is_whole(*tables: Table) -> bool:
    """Whether what is shown of them follows from their versions alone."""
    return all(table.is_whole for table in tables)


def compare(
    before: pa.Table,
    after: pa.Table,
    columns: Sequence[Column],
    complete: pa.Array | None = None,
) -> ChangedRows:
    """Tell apart what is new, gone and different; rows that say the same are left out.

    Where only some ids are ``complete``, the others are taken to be different.
    """
    old_ids = before.column(ID).combine_chunks()
    places = pc.index_in(after.column(ID), value_set=old_ids).combine_chunks()
    known = places.is_valid()
    was = before.take(places.drop_null())
    now = after.filter(known)
    others = [pair for pair in paired(columns) if pair.after != ID]
    different = pa.array(any_differs(was, now, others))
    if complete is not None:
        unknown = pc.invert(pc.is_in(now.column(ID), value_set=complete)).combine_chunks()
        different = pc.or_(different, unknown)
    gone = np.ones(before.num_rows, dtype=bool)
    gone[places.drop_null().to_numpy()] = False
    return ChangedRows(
        after.filter(pc.invert(known)),
        was.filter(different),
        now.filter(different),
        before.filter(pa.array(gone)),
    )


def compared_columns(before: Table, after: Table) -> list[str]:
    """The columns of both versions; refuses two that have not the same."""
    old, new = before.schema, after.schema
    if old.names != new.names or old.types != new.types:
        raise ChangeDiffRefused(
            f"the columns of {before.location} changed in between: its rows cannot be compared",
            details={"reason": "schema_boundary"},
        )
    names: list[str] = new.names
    return names


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with this very schema: what Lance returns differs in metadata."""
    return pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def paired(columns: Sequence[Column]) -> list[ColumnPair]:
    """What stands for a column of both by one name, with that name on both sides."""
    return [ColumnPair(found, found) if isinstance(found, str) else found for found in columns]


def any_differs(first: Rows, second: Rows, columns: Sequence[Column]) -> Mask:
    """Which of the rows differ in any of the columns."""
    found = np.zeros(first.num_rows, dtype=bool)
    for pair in paired(columns):
        found |= pair_differs(first, second, pair)
    return found


def pair_differs(first: Rows, second: Rows, pair: ColumnPair) -> Mask:
    """Which of the rows differ in a column; one that is not there is null."""
    if pair.before is None or pair.after is None:
        rows, name = (second, pair.after) if pair.before is None else (first, pair.before)
        if name is None:
            return np.zeros(first.num_rows, dtype=bool)
        return _mask(_array(rows.column(name)).is_valid())
    return differing(first.column(pair.before), second.column(pair.after))


def differing(first: Values, second: Values) -> Mask:
    """Which of the values are not the same; both columns are of one length.

    A number is the same however wide its type. Values of types that have nothing in common
    are the same where there are none.
    """
    one, other = _widened(_array(first), _array(second))
    if _is_list(one) and _is_list(other):
        return _differing_lists(one, other)
    if one.type == other.type:
        return _differing_scalars(one, other)
    return _mask(one.is_valid()) | _mask(other.is_valid())


def _is_list(values: pa.Array) -> bool:
    return bool(pa.types.is_list(values.type) or pa.types.is_fixed_size_list(values.type))


def _widened(one: pa.Array, other: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Both values in the wider one of their types, where every value of the other fits it."""
    if other.type in _WIDER.get(one.type, ()):
        return one.cast(other.type), other
    if one.type in _WIDER.get(other.type, ()):
        return one, other.cast(one.type)
    return one, other


def _differing_scalars(one: pa.Array, other: pa.Array) -> Mask:
    if (bits := _BITS.get(one.type)) is not None:
        one, other = one.view(bits), other.view(bits)
    unequal = pc.not_equal(one, other).fill_null(fill_value=False)
    return _mask(pc.or_(unequal, pc.xor(one.is_valid(), other.is_valid())))


def _differing_lists(one: pa.Array, other: pa.Array) -> Mask:
    lengths = [pc.list_value_length(values).cast(pa.int64()) for values in (one, other)]
    found = _differing_scalars(*lengths)
    alike = np.flatnonzero(~found & _mask(one.is_valid()))
    if not len(alike):
        return found
    picked = pa.array(alike)
    first, second = one.take(picked), other.take(picked)
    items = differing(pc.list_flatten(first), pc.list_flatten(second))
    counts = pc.list_value_length(first).to_numpy(zero_copy_only=False)
    found[np.repeat(alike, counts)[items]] = True
    return found


def _array(values: Values) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _mask(values: pa.Array) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False).astype(bool)
    return mask
