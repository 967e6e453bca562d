"""Row limits: how large one row may be, the same on every way in.

Owns the bounds, their setting and the measuring. A row is as large as its line of an export, so
that whatever a graph has taken can be exported and loaded again. Never changes a row.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.errors import ResourceLimit
from omnigraph.lang.structural import ID
from omnigraph.storage.memory import size_of_setting
from omnigraph.write.change.change_set import EntityType, type_key

ROW_BYTES = 268_435_456
SETTING = "OMNIGRAPH_ROW_BYTES"
LINE_BYTES, LINE_SLOTS = "graph_batch_line_bytes", "graph_batch_json_structural_slots"
_BYTES_A_SLOT = 64
"""About what one value takes in memory while a line is looked at closely."""

# What the JSON of a value takes at most: of a byte of text, a byte of a blob, anything else.
_TEXT, _BLOB, _OTHER = 6, 2, 32
_ENVELOPE = 256
_ENVELOPE_SLOTS = 16

Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RowLimits:
    """The most bytes of a line, and the most structural characters (`{}[],:`) in it, plus one."""

    line_bytes: int
    slots: int

    def refuse_bytes(self, size: int, what: str) -> None:
        """Raise if something has more bytes than a line may have."""
        if size > self.line_bytes:
            raise _limit(LINE_BYTES, self.line_bytes, size, f"{what} has {size} bytes")

    def refuse_slots(self, slots: int, what: str) -> None:
        """Raise if something has more structural characters than a line may have."""
        if slots > self.slots:
            said = f"{what} has {slots} structural characters"
            raise _limit(LINE_SLOTS, self.slots, slots, said)


def row_limits() -> RowLimits:
    """The limits that hold; the environment may name others."""
    size = size_of_setting(SETTING, os.environ.get(SETTING, ""), ROW_BYTES)
    return RowLimits(size, size // _BYTES_A_SLOT)


def _limit(resource: str, limit: int, actual: int, said: str) -> ResourceLimit:
    return ResourceLimit(
        f"{resource}: {said}, at most {limit} are allowed; {SETTING} allows more",
        details={"resource": resource, "limit": limit, "actual": actual},
    )


def check_sizes(type_: EntityType, rows: pa.Table) -> None:
    """Refuse rows whose line of an export would be larger than one that can be loaded."""
    limits = row_limits()
    # First as if one row had the largest value of every column, which settles nearly everything.
    most_bytes = _ENVELOPE + sum(_most_bytes(column) for column in rows.columns)
    most_slots = _ENVELOPE_SLOTS + sum(_most_items(column) + 4 for column in rows.columns)
    names = sum(len(name.encode()) + 4 for name in rows.column_names)
    if most_bytes + names > limits.line_bytes:
        _check_bytes(type_, rows, limits)
    if most_slots > limits.slots:
        items: Sizes = np.sum([_items(column) for column in rows.columns], axis=0)
        slots = _ENVELOPE_SLOTS + 4 * rows.num_columns + items
        at = int(np.argmax(slots))
        limits.refuse_slots(int(slots[at]), _row_name(type_, rows, at))


def _check_bytes(type_: EntityType, rows: pa.Table, limits: RowLimits) -> None:
    names = sum(len(name.encode()) + 4 for name in rows.column_names)
    bounds: Sizes = np.sum([_bounds(column) for column in rows.columns], axis=0)
    for at in np.flatnonzero(bounds > limits.line_bytes - _ENVELOPE - names).tolist():
        (row,) = rows.slice(at, 1).to_pylist()
        # Every blob has a word before it.
        written = len(msgspec.json.encode(row, enc_hook=str)) + _ENVELOPE + 8 * len(row)
        limits.refuse_bytes(written, _row_name(type_, rows, at))


def _row_name(type_: EntityType, rows: pa.Table, at: int) -> str:
    return f"the line of {type_key(type_)} '{rows.column(ID)[at].as_py()}' in an export"


# -- columns -----------------------------------------------------------------------


def _most_bytes(column: pa.ChunkedArray) -> int:
    """No value of a column takes more bytes as JSON."""
    if _is_nested(column.type):
        is_text = _factor(column.type.value_type) is not None
        item = _most_bytes(pc.list_flatten(column)) if is_text else _OTHER
        return _most_items(column) * (item + 1) + 2
    factor = _factor(column.type)
    longest = 0 if factor is None else pc.max(pc.binary_length(column)).as_py() or 0
    return _OTHER + longest * (factor or 0)


def _bounds(column: pa.ChunkedArray) -> Sizes:
    """The same for every row."""
    if not _is_nested(column.type):
        factor = _factor(column.type)
        if factor is None:
            return np.full(len(column), _OTHER, dtype=np.int64)
        return _OTHER + factor * _numbers(pc.binary_length(column))
    ends = np.cumsum(_items(column))
    before = np.concatenate([[0], np.cumsum(_bounds(pc.list_flatten(column)) + 1)])
    found: Sizes = np.diff(before[np.concatenate([[0], ends])])
    return found + 2


def _most_items(column: pa.ChunkedArray) -> int:
    if not _is_nested(column.type):
        return 0
    if pt.is_fixed_size_list(column.type):
        return int(column.type.list_size)
    return pc.max(pc.list_value_length(column)).as_py() or 0


def _items(column: pa.ChunkedArray) -> Sizes:
    if not _is_nested(column.type):
        return np.zeros(len(column), dtype=np.int64)
    return _numbers(pc.list_value_length(column))


def _numbers(lengths: pa.ChunkedArray) -> Sizes:
    found: Sizes = pc.fill_null(lengths, 0).to_numpy().astype(np.int64)
    return found


def _factor(type_: pa.DataType) -> int | None:
    if pt.is_string(type_) or pt.is_large_string(type_):
        return _TEXT
    return _BLOB if pt.is_binary(type_) or pt.is_large_binary(type_) else None


def _is_nested(type_: pa.DataType) -> bool:
    return bool(pt.is_list(type_) or pt.is_fixed_size_list(type_))
