"""The functions between kinds: what a text names, and how a value is spelled.

Owns which texts are numbers and times. A text that is none gives null, never an error.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.functions.call import Call, Flags, Integers, Kernel, floats, is_true, numbers
from omnigraph.rows.functions.integers import whole_numbers
from omnigraph.rows.functions.times import (
    DAY,
    FIRST_DAY,
    LAST_DAY,
    days_column,
    moments_column,
    to_days,
    to_moments,
)
from omnigraph.rows.value_texts import float_texts, moment_texts

_INTEGER = r"\A[+-]?[0-9]+\z"
_FLOAT = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_DAY = r"\A(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_DATE = rf"{_DAY}\z"
_MOMENT = (
    rf"{_DAY}(?:[Tt ](?P<hour>[0-9]{{2}}):(?P<minute>[0-9]{{2}})"
    r"(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]+))?)?"
    r"(?:[Zz]|(?P<sign>[+-])(?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})))?\z"
)
_MOST = str(2**63)
_DAY_MS = 86_400_000


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def _only(values: pa.Array, chosen: pa.Array) -> pa.Array:
    return pc.if_else(chosen, values, pa.scalar(None, values.type))


def _to_int(call: Call) -> pa.Array:
    values = call.column(0)
    if _is_text(values):
        return _integers(values)
    if pa.types.is_floating(values.type):
        return whole_numbers(np.trunc(floats(values)), call.name)
    return values if pa.types.is_uint64(values.type) else values.cast(pa.int64())


def _integers(texts: pa.Array) -> pa.Array:
    """The integers of 64 bits that texts name."""
    texts = _only(texts, pc.match_substring_regex(texts, _INTEGER))
    negative = pc.starts_with(texts, "-")
    digits = pc.utf8_ltrim(texts, characters="+-0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    length = pc.binary_length(digits)
    # Digits of one length are in the order of their numbers.
    limit = pc.if_else(negative, _MOST, str(2**63 - 1))
    fits = pc.or_(
        pc.less(length, len(_MOST)),
        pc.and_(pc.equal(length, len(_MOST)), pc.less_equal(digits, limit)),
    )
    kept = _only(digits, fits)
    signed = pc.if_else(negative, pc.binary_join_element_wise("-", kept, ""), kept)
    return signed.cast(pa.int64())


def _to_float(call: Call) -> pa.Array:
    values = call.column(0)
    if not _is_text(values):
        return numbers(floats(values.cast(pa.int8()) if _is_bool(values) else values))
    written = _only(values, pc.match_substring_regex(values, _FLOAT))
    return numbers(floats(pc.utf8_ltrim(written, characters="+")))


def _is_bool(values: pa.Array) -> bool:
    return bool(pa.types.is_boolean(values.type))


def _to_string(call: Call) -> pa.Array:
    values = call.column(0)
    if _is_text(values):
        return values
    if pa.types.is_floating(values.type):
        return float_texts(values).cast(pa.string())
    if pa.types.is_timestamp(values.type):
        return moment_texts(values).cast(pa.string())
    return values.cast(pa.string())


def _to_bool(call: Call) -> pa.Array:
    values = call.column(0)
    if not _is_text(values):
        return values
    is_one = pc.is_in(values, pa.array(["true", "false"]))
    return _only(pc.equal(values, "true"), is_one)


# -- times ---------------------------------------------------------------------------


def _to_date(call: Call) -> pa.Array:
    texts = call.column(0)
    if not _is_text(texts):
        return to_days(call)
    parts = pc.extract_regex(texts, _DATE)
    days, is_day = _days(parts)
    return days_column(days, is_day, call.name).cast(DAY)


def _to_datetime(call: Call) -> pa.Array:
    texts = call.column(0)
    if not _is_text(texts):
        return to_moments(call)
    parts = pc.extract_regex(texts, _MOMENT)
    days, is_moment = _days(parts)
    hour, minute, second = (_number(parts, name) for name in ("hour", "minute", "second"))
    hours, minutes = _number(parts, "hours"), _number(parts, "minutes")
    fraction = pc.utf8_slice_codeunits(_field(parts, "fraction"), 0, 3)
    millis = _whole(pc.utf8_rpad(fraction, 3, padding="0"))
    is_west = is_true(pc.equal(_field(parts, "sign"), "-"))
    offset = (hours * 60 + minutes) * np.where(is_west, -60_000, 60_000)
    is_moment &= (hour < 24) & (minute < 60) & (second < 60) & (hours < 24) & (minutes < 60)
    moments = days * _DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + millis - offset
    is_moment &= (moments >= FIRST_DAY * _DAY_MS) & (moments < (LAST_DAY + 1) * _DAY_MS)
    return moments_column(moments, is_moment, call.name)


def _days(parts: pa.Array) -> tuple[Integers, Flags]:
    """Days since 1970, and which of them are in the calendar."""
    year, month, day = (_number(parts, name) for name in ("year", "month", "day"))
    is_month = (year >= 1) & (month >= 1) & (month <= 12)
    months = np.where(is_month, (year - 1970) * 12 + month - 1, 0)
    first, after = (_first_day(months), _first_day(months + 1))
    is_valid = is_month & (day >= 1) & (day <= after - first)
    return first + day - 1, is_valid


def _first_day(months: Integers) -> Integers:
    days = months.astype("datetime64[M]").astype("datetime64[D]")
    found: Integers = days.astype(np.int64)
    return found


def _field(parts: pa.Array, name: str) -> pa.Array:
    return pc.struct_field(parts, name)


def _number(parts: pa.Array, name: str) -> Integers:
    return _whole(_field(parts, name))


def _whole(digits: pa.Array) -> Integers:
    """Numbers of a few digits; 0 where there are none."""
    given = pc.if_else(pc.equal(digits, ""), "0", digits)
    found: Integers = given.cast(pa.int64()).fill_null(0).to_numpy()
    return found


KERNELS: Mapping[str, Kernel] = {
    "to_int": _to_int,
    "to_float": _to_float,
    "to_string": _to_string,
    "to_bool": _to_bool,
    "to_date": _to_date,
    "to_datetime": _to_datetime,
}
