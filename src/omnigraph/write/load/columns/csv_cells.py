"""CSV cells: a column of texts turned into the column that is stored.

Owns how the values of each type are written in CSV. Gives null for a text that does not fit
and marks its row; never guesses at what was meant.

A number is written as in JSON, a Bool as `true` or `false` (also `True`, `TRUE`), a Date or
DateTime as its text and never as a number, which could as well be a year or seconds. A list
or a Vector is a JSON array, a Blob `base64:` and its text. An absent value is null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.cursor import shorten
from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.write.load.columns import cells
from omnigraph.write.load.ndjson.json_text import BadLineError, Decimal, Integer, read_json
from omnigraph.write.load.ndjson.values import ValueTypeError, column_of, convert

_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_TEMPORAL: dict[Scalar, Callable[[pa.Array], pa.Array]] = {
    Scalar.DATE: cells.days_of_texts,
    Scalar.DATETIME: cells.moments_of_texts,
}
_FEW_DIGITS = 18
"""So many digits fit every 64-bit integer."""
_FEW_ARRAYS = 32


def parse_texts(type_: ValueType, column: pa.Array) -> tuple[pa.Array, np.ndarray]:
    """A column of strings as it is stored, and a mask of the rows whose text does not fit."""
    if type_.is_list or type_.is_vector:
        parsed = _arrays(type_, column)
    elif type_.scalar in INTEGERS:
        parsed = _integers(type_.scalar, column)
    elif type_.scalar in FLOATS:
        parsed = _floats(type_.scalar, column)
    else:
        parsed = _OTHERS[type_.scalar](column)
    bad: np.ndarray = pc.and_(column.is_valid(), parsed.is_null()).to_numpy(zero_copy_only=False)
    return parsed, bad


def misfit_text(type_: ValueType, text: str) -> str:
    """Why a text does not fit a type, for a person."""
    kind = type_.without_null
    try:
        if type_.is_list or type_.is_vector:
            convert(type_, read_json(text.encode()))
        elif type_.scalar in INTEGERS | FLOATS or type_.scalar is Scalar.BOOL:
            convert(type_, _plain(text))
        elif not text:
            return f"an empty text is no {kind}; leave the value out to have none"
        else:
            convert(type_, text)
    except ValueTypeError as misfit:
        return misfit.text
    except (BadLineError, UnicodeEncodeError):
        said = f"{_quoted(text)} is no JSON array"
        return f"{said}, which is how {kind} is written in CSV"
    return f"{_quoted(text)} is no {kind}"


def _plain(text: str) -> Any:
    """A text as the JSON value it would be without quotes."""
    try:
        value = read_json(text.encode())
    except (BadLineError, UnicodeEncodeError):
        return text
    return value if isinstance(value, (Integer, Decimal)) else text


def _quoted(text: str) -> str:
    return shorten(json.dumps(text, ensure_ascii=False))


# -- single values -----------------------------------------------------------------


def _integers(scalar: Scalar, column: pa.Array) -> pa.Array:
    stored = SCALARS[scalar]
    written = _matching(column, _INTEGER)
    try:
        # Does not read `-0` as an unsigned number, nor what is out of range.
        return written.cast(stored)
    except pa.ArrowInvalid:
        pass
    is_short = pc.less_equal(pc.binary_length(written), _FEW_DIGITS)
    least, most = INTEGER_RANGE[scalar]
    short = _or_null(is_short, written).cast(pa.int64())
    fits = pc.and_(pc.greater_equal(short, least), _at_most(short, most))
    read = _or_null(fits, short).cast(stored)
    long = pc.and_(pc.invert(is_short), written.is_valid())
    if not pc.any(long).as_py():
        return read
    texts = written.filter(long).to_pylist()
    numbers = [_within(text, least, most) for text in texts]
    return pc.replace_with_mask(read, pc.fill_null(long, False), pa.array(numbers, stored))  # noqa: FBT003


def _within(text: str, least: int, most: int) -> int | None:
    number = int(text) if len(text) <= 40 else None
    return number if number is not None and least <= number <= most else None


def _at_most(numbers: pa.Array, most: int) -> pa.Array:
    return pc.less_equal(numbers, min(most, 2**63 - 1))


def _floats(scalar: Scalar, column: pa.Array) -> pa.Array:
    # From the text at once: a F32 that is rounded twice may be another one.
    read = _matching(column, _NUMBER).cast(SCALARS[scalar])
    return _or_null(pc.is_finite(read), read)


def _bools(column: pa.Array) -> pa.Array:
    is_true = pc.is_in(column, pa.array(_TRUE))
    is_false = pc.is_in(column, pa.array(_FALSE))
    return _or_null(pc.or_(is_true, is_false), is_true)


def _strings(column: pa.Array) -> pa.Array:
    return column.cast(pa.string())


_OTHERS: dict[Scalar, Callable[[pa.Array], pa.Array]] = {
    Scalar.STRING: _strings,
    Scalar.BOOL: _bools,
    Scalar.BLOB: cells.blobs_of_texts,
    **_TEMPORAL,
}


def _matching(column: pa.Array, pattern: str) -> pa.Array:
    return _or_null(pc.match_substring_regex(column, pattern), column)


def _or_null(keep: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(keep, column, pa.scalar(None, column.type))


# -- arrays ------------------------------------------------------------------------


def _arrays(type_: ValueType, column: pa.Array) -> pa.Array:
    """Lists and vectors from JSON arrays."""
    parsed = _given_arrays(type_, column.drop_null())
    if not column.null_count:
        return parsed
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    return parsed.take(pa.array(np.cumsum(~is_null) - 1, mask=is_null))


def _given_arrays(type_: ValueType, given: pa.Array) -> pa.Array:
    """All at once; around what is unusual in smaller parts, and that one by one."""
    parsed = _arrays_at_once(type_, given)
    if parsed is not None:
        return parsed
    half = len(given) // 2
    if half < _FEW_ARRAYS:
        return _arrays_one_by_one(type_, given.to_pylist())
    parts = (given.slice(0, half), given.slice(half))
    return pa.concat_arrays([_given_arrays(type_, part) for part in parts])


def _arrays_at_once(type_: ValueType, given: pa.Array) -> pa.Array | None:
    """The arrays if every text is one and fits, else None."""
    import pyarrow.json as pj

    if not len(given):
        return None
    rows = pc.binary_join_element_wise('{"a":', given, "}", "")
    joined = pc.binary_join(
        pa.ListArray.from_arrays(pa.array([0, len(rows)], pa.int32()), rows), "\n"
    )
    text = joined[0].as_buffer()
    element = pa.string() if type_.scalar in _TEMPORAL else _element(type_)
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=text.size + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([("a", pa.list_(element))]),
                unexpected_field_behavior="error",
            ),
        )
    except pa.ArrowInvalid:
        return None
    # A text with a line end or a brace of its own could be more than one row, never less.
    if table.num_rows != len(given) or table["a"].null_count:
        return None
    lists = pa.concat_arrays(table["a"].chunks)
    parsed = _converted(type_, lists)
    inside = pc.list_flatten(parsed)
    if parsed.null_count or inside.null_count:
        return None
    is_float = pa.types.is_floating(inside.type)
    if is_float and not pc.all(pc.is_finite(inside), min_count=0).as_py():
        return None
    return parsed


def _element(type_: ValueType) -> pa.DataType:
    return pa.float32() if type_.is_vector else SCALARS[type_.scalar]


def _converted(type_: ValueType, lists: pa.Array) -> pa.Array:
    if type_.dimension is not None:
        return cells.vectors_of_lists(lists, type_.dimension)
    temporal = _TEMPORAL.get(type_.scalar)
    return cells.in_lists(lists, temporal or (lambda flat: flat))


def _arrays_one_by_one(type_: ValueType, texts: Sequence[str]) -> pa.Array:
    values = [_array(type_, text) for text in texts]
    size = -1 if type_.dimension is None else type_.dimension
    stored = pa.list_(pa.field("item", _element(type_)), size)
    return column_of(type_, values, stored)


def _array(type_: ValueType, text: str) -> Any:
    try:
        return convert(type_, read_json(text.encode()))
    except (ValueTypeError, BadLineError):
        return None
