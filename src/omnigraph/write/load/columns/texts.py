"""Texts: columns of text whose bytes are known to be UTF-8, which Arrow itself never asks.

Owns finding the cells that are not, and showing them to people. Gives null for such a cell;
never repairs one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.errors import BadRequest

NOT_UTF8 = "the text is not UTF-8"
_FEW = 256
_LISTS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pt.is_list, pa.list_),
    (pt.is_large_list, pa.large_list),
    (pt.is_fixed_size_list, pa.list_),
)


def is_text(type_: pa.DataType) -> bool:
    """Whether a column of a type is text."""
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Whether a column of a type is bytes."""
    tests = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)
    return any(test(type_) for test in tests)


def checked_texts(column: pa.Array) -> pa.Array:
    """A column of text as strings; null where the bytes are no UTF-8."""
    texts = column.cast(pa.string())
    if _is_utf8(texts):
        return texts
    return pc.if_else(pa.array(_which_are_utf8(texts)), texts, pa.scalar(None, pa.string()))


def _is_utf8(texts: pa.Array) -> bool:
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _which_are_utf8(texts: pa.Array) -> np.ndarray:
    """Around the few that are not in smaller and smaller parts, and these one by one."""
    if _is_utf8(texts):
        return np.ones(len(texts), dtype=bool)
    if len(texts) <= _FEW:
        every = map(_decodes, texts.cast(pa.binary()).to_pylist())
        return np.fromiter(every, dtype=bool, count=len(texts))
    half = len(texts) // 2
    parts = (texts.slice(0, half), texts.slice(half))
    return np.concatenate([_which_are_utf8(part) for part in parts])


def _decodes(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def without_views(table: pa.Table) -> pa.Table:
    """A table whose rows can be chosen, which Arrow does not do with views."""
    columns = [column.cast(_plain_type(column.type)) for column in table.columns]
    return pa.Table.from_arrays(columns, names=table.column_names)


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pt.is_string_view(type_):
        return pa.large_string()
    if pt.is_binary_view(type_):
        return pa.large_binary()
    for is_kind, of in _LISTS:
        if is_kind(type_) and (inner := _plain_type(type_.value_type)) != type_.value_type:
            return of(inner)
    return type_


def require_readable_names(schema: pa.Schema, where: str) -> None:
    """Refuse columns whose names are no text."""
    for at in range(len(schema)):
        try:
            schema.field(at).name  # noqa: B018 - decoded when it is asked for
        except UnicodeDecodeError:
            raise BadRequest(f"the name of column {at + 1} of {where} is not UTF-8") from None


def shown_row(table: pa.Table, row: int) -> dict[str, Any]:
    """One row as Python has it, its texts with a mark for what is no UTF-8."""
    return {name: _shown(table.column(at), row) for at, name in enumerate(table.column_names)}


def _shown(column: pa.ChunkedArray, row: int) -> Any:
    try:
        return column[row].as_py()
    except UnicodeDecodeError:
        one = column.slice(row, 1)
        return _marked(one.cast(_as_bytes(one.type))[0].as_py())


def _as_bytes(type_: pa.DataType) -> pa.DataType:
    """The type of a column of text, or of lists of it, as bytes."""
    for is_kind, of in _LISTS:
        if is_kind(type_):
            return of(_as_bytes(type_.value_type))
    return pa.large_binary()


def _marked(value: Any) -> Any:
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value
