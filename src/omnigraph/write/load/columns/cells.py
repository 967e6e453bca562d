"""Cells: columns as they were written, turned into the columns that are stored.

Owns the conversion of whole columns. Every function gives null for a cell that does
not fit, and never says why: the caller compares what went in with what came out.
"""

from __future__ import annotations

from binascii import Error, a2b_base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.literals import epoch_days, epoch_millis, parse_date, parse_datetime
from omnigraph.lang.types import Scalar
from omnigraph.rows.arrow_types import SCALARS

_MOMENT = SCALARS[Scalar.DATETIME]

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31."""
FIRST_MILLI, LAST_MILLI = FIRST_DAY * 86_400_000, (LAST_DAY + 1) * 86_400_000 - 1

BASE64 = "base64:"

_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?"
    r"(Z|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])$"
)
"""The spellings that Arrow reads exactly as the language does; others are read one by one."""


def days_of_texts(texts: pa.Array) -> pa.Array:
    """Dates from their text."""
    if _all_match(texts, _DATE):
        try:
            return days_of_numbers(texts.cast(pa.date32()).cast(pa.int32()))
        except pa.ArrowInvalid:
            pass
    return days_of_numbers(_by_text(texts, read_date, pa.int32()))


def days_of_numbers(numbers: pa.Array) -> pa.Array:
    """Dates from days since 1970, of the years 1 to 9999."""
    return _within(numbers, FIRST_DAY, LAST_DAY).cast(pa.int32()).cast(pa.date32())


def moments_of_texts(texts: pa.Array) -> pa.Array:
    """Times from their text."""
    if _all_match(texts, _DATETIME):
        try:
            return moments_of_numbers(texts.cast(_MOMENT).cast(pa.int64()))
        except pa.ArrowInvalid:
            pass
    return moments_of_numbers(_by_text(texts, read_datetime, pa.int64()))


def moments_of_numbers(numbers: pa.Array) -> pa.Array:
    """Times from milliseconds since 1970, of the years 1 to 9999."""
    return _within(numbers, FIRST_MILLI, LAST_MILLI).cast(pa.int64()).cast(_MOMENT)


def blobs_of_texts(texts: pa.Array) -> pa.Array:
    """Bytes from `base64:` and their text."""
    contents = map(read_blob, texts.to_pylist())
    return pa.array(contents, pa.large_binary())


def vectors_of_lists(lists: pa.Array, dimension: int) -> pa.Array:
    """Vectors from lists of float32 of exactly so many numbers."""
    lengths = pc.list_value_length(lists)
    fits = pc.fill_null(pc.equal(lengths, dimension), fill_value=False)
    item = pa.field("item", pa.float32())
    if pc.all(fits, min_count=0).as_py():
        flat = pc.list_flatten(lists).cast(pa.float32())
        return pa.FixedSizeListArray.from_arrays(flat, type=pa.list_(item, dimension))
    keep = fits.to_numpy(zero_copy_only=False)
    kept = pc.list_flatten(lists.filter(fits)).cast(pa.float32())
    # A null vector still has its numbers: they are there and nobody reads them.
    source = np.zeros(len(lists), dtype=np.int64)
    source[keep] = np.arange(np.count_nonzero(keep))
    at = (source[:, None] * dimension + np.arange(dimension)).ravel()
    if len(kept) == 0:
        kept = pa.array(np.zeros(dimension, dtype=np.float32))
    return pa.FixedSizeListArray.from_arrays(
        kept.take(pa.array(at)), type=pa.list_(item, dimension), mask=pa.array(~keep)
    )


def in_lists(lists: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Lists with converted elements; an element that does not fit becomes null."""
    flat = convert(pc.list_flatten(lists))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pa.array(offsets),
        flat,
        type=pa.list_(pa.field("item", flat.type)),
        mask=lists.is_null() if lists.null_count else None,
    )


def read_date(text: str) -> int | None:
    """Days since 1970 of a text, or None if it is no date."""
    try:
        return epoch_days(parse_date(text))
    except ValueError:
        return None


def read_datetime(text: str) -> int | None:
    """Milliseconds since 1970 of a text, or None if it is no time."""
    try:
        return epoch_millis(parse_datetime(text))
    except ValueError:
        return None


def read_blob(text: str | None) -> bytes | None:
    """The bytes a `base64:` text stands for, or None if it is none."""
    if text is None or not text.startswith(BASE64):
        return None
    try:
        return a2b_base64(text[len(BASE64) :].encode(), strict_mode=True)
    except Error:
        return None


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py() is not False


def _by_text(texts: pa.Array, read: Callable[[str], Any], type_: pa.DataType) -> pa.Array:
    """One reading for each distinct text."""
    encoded = texts.dictionary_encode()
    values = pa.array(map(read, encoded.dictionary.to_pylist()), type_)
    return values.take(encoded.indices)


def _within(numbers: pa.Array, least: int, most: int) -> pa.Array:
    inside = pc.and_(pc.greater_equal(numbers, least), pc.less_equal(numbers, most))
    if pc.all(inside, min_count=0).as_py() is not False:
        return numbers
    return pc.if_else(inside, numbers, pa.scalar(None, numbers.type))
