"""Changed rows: what two versions of one table say differently, in the order of the ids.

Owns when two stored values are equal, column by column. Never reads a row whole that it can
tell apart by its address.
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
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table
from omnigraph.storage.tables.version_diff import rows_only_in

LOCATION = (ROW_ID, ROW_ADDRESS)
"""The columns that say where a row lies, which are never compared."""

Mask: TypeAlias = npt.NDArray[np.bool_]
Values: TypeAlias = pa.Array | pa.ChunkedArray
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}


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


def changed_rows(
    before: Table,
    after: Table,
    columns: Sequence[str] | None = None,
    *,
    located: bool = False,
    limits: SortLimits = DEFAULT_LIMITS,
) -> Iterator[ChangedRows]:
    """What changed between two versions of one table; ids ascend from step to step.

    Only the named columns are compared, `@id` among them; all of them without any.
    With ``located`` the rows have their row ids and addresses too.
    """
    if before.pin.version == after.pin.version:
        return
    names = compared_columns(before, after) if columns is None else list(columns)
    sides = merge_join(
        [
            only_in(before, after, names, located=located, limits=limits),
            only_in(after, before, names, located=located, limits=limits),
        ]
    )
    for old, new in sides:
        found = compare(old, new, names)
        if found.count:
            yield found


def only_in(
    one: Table,
    other: Table,
    columns: Sequence[str],
    *,
    located: bool = False,
    limits: SortLimits = DEFAULT_LIMITS,
) -> tuple[Iterator[pa.RecordBatch], pa.Schema]:
    """The rows of ``one`` that lie elsewhere or nowhere in ``other``, in order, and their schema.

    Blobs are their bytes.
    """
    names = [*columns, *LOCATION] if located else list(columns)
    schema = plain_blobs(pa.schema([one.schema.field(name) for name in columns]))
    if located:
        for name in LOCATION:
            schema = schema.append(pa.field(name, pa.uint64()))
    with_blobs = any(is_blob(one.schema.field(name)) for name in columns)
    rows = rows_only_in(one, other, names, with_blobs=with_blobs)
    return in_order((_conform(batch, schema) for batch in rows), limits), schema


def compare(
    before: pa.Table,
    after: pa.Table,
    columns: Sequence[str],
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
    different = pa.array(any_differs(was, now, [name for name in columns if name != ID]))
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


def differing(first: Values, second: Values) -> Mask:
    """Which of the values are not the same; both columns are of one type and length."""
    one, other = _array(first), _array(second)
    is_list = pa.types.is_list(one.type) or pa.types.is_fixed_size_list(one.type)
    return _differing_lists(one, other) if is_list else _differing_scalars(one, other)


def any_differs(first: pa.Table, second: pa.Table, columns: list[str]) -> Mask:
    """Which of the rows differ in any of the columns."""
    found = np.zeros(first.num_rows, dtype=bool)
    for name in columns:
        found |= differing(first.column(name), second.column(name))
    return found


def _differing_scalars(one: pa.Array, other: pa.Array) -> Mask:
    if (bits := _BITS.get(one.type)) is not None:
        one, other = one.view(bits), other.view(bits)
    unequal = pc.not_equal(one, other).fill_null(fill_value=False)
    return _mask(pc.or_(unequal, pc.xor(one.is_valid(), other.is_valid())))


def _differing_lists(one: pa.Array, other: pa.Array) -> Mask:
    found = _differing_scalars(pc.list_value_length(one), pc.list_value_length(other))
    alike = np.flatnonzero(~found & _mask(one.is_valid()))
    if not len(alike):
        return found
    picked = pa.array(alike)
    first, second = one.take(picked), other.take(picked)
    items = differing(pc.list_flatten(first), pc.list_flatten(second))
    lengths = pc.list_value_length(first).to_numpy(zero_copy_only=False)
    found[np.repeat(alike, lengths)[items]] = True
    return found


def _array(values: Values) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _mask(values: pa.Array) -> Mask:
    mask: Mask = values.to_numpy(zero_copy_only=False).astype(bool)
    return mask
