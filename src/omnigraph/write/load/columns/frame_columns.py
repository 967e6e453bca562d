"""Frame columns: one column of a frame turned into the column that is stored.

Owns which Arrow types stand for which property types. Gives null for a cell that does
not fit; ValueTypeError for a column that cannot fit at all.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from omnigraph.lang.types import INTEGER_RANGE, INTEGERS, Scalar, ValueType
from omnigraph.write.load.columns import cells
from omnigraph.write.load.columns.texts import checked_texts, is_bytes, is_text
from omnigraph.write.load.ndjson.values import ValueTypeError


def convert_column(kind: ValueType, column: pa.Array, *, pandas: bool) -> pa.Array:
    """A column as it is stored; ``pandas`` allows whole floats where integers have nulls."""
    column = decoded(column)
    if pt.is_null(column.type):
        return column
    if kind.dimension is not None:
        return _vectors(kind, column)
    if not kind.is_list:
        return _scalars(kind, column, pandas=pandas)
    if not _is_list(column.type):
        raise _wrong(kind, column.type)
    return cells.in_lists(column, lambda flat: _elements(kind, flat, pandas=pandas))


def texts(name: str, column: pa.Array) -> pa.Array:
    """A structural column, which is always text; null where that is not UTF-8."""
    column = decoded(column)
    if pt.is_null(column.type):
        return column.cast(pa.string())
    if not is_text(column.type):
        raise ValueTypeError(f"'{name}' must be a column of strings, found {column.type}")
    return checked_texts(column)


def _elements(kind: ValueType, flat: pa.Array, *, pandas: bool) -> pa.Array:
    flat = decoded(flat)
    if pt.is_null(flat.type):
        return flat
    return _scalars(kind.element(), flat, pandas=pandas)


def _scalars(kind: ValueType, column: pa.Array, *, pandas: bool) -> pa.Array:
    scalar, type_ = kind.scalar, column.type
    if scalar in INTEGERS:
        return _integers(kind, column, pandas=pandas)
    if scalar is Scalar.STRING and is_text(type_):
        return checked_texts(column)
    if scalar is Scalar.BOOL and pt.is_boolean(type_):
        return column
    if scalar is Scalar.F64 and _is_number(type_):
        return column.cast(pa.float64(), safe=False)
    if scalar is Scalar.F32 and _is_number(type_):
        return _float32(column)
    if scalar is Scalar.DATE:
        return _dates(kind, column)
    if scalar is Scalar.DATETIME:
        return _moments(kind, column)
    if scalar is Scalar.BLOB and is_bytes(type_):
        return column.cast(pa.large_binary())
    raise _wrong(kind, type_)


def _float32(column: pa.Array) -> pa.Array:
    """Rounded; what becomes infinite by that does not fit."""
    wide = column.cast(pa.float64(), safe=False)
    narrow = wide.cast(pa.float32(), safe=False)
    lost = pc.and_(pc.is_finite(wide), pc.is_inf(narrow))
    return pc.if_else(lost, pa.scalar(None, pa.float32()), narrow)


def _integers(kind: ValueType, column: pa.Array, *, pandas: bool) -> pa.Array:
    least, most = INTEGER_RANGE[kind.scalar]
    if pandas and pt.is_floating(column.type) and column.null_count:
        # pandas keeps integers with gaps as floats; beyond 2^53 they are not what was written.
        whole = pc.and_(pc.equal(pc.floor(column), column), pc.less_equal(pc.abs(column), 2**53))
        column = pc.if_else(whole, column, pa.scalar(None, column.type)).cast(pa.int64())
    if not pt.is_integer(column.type):
        raise _wrong(kind, column.type)
    # Wide enough for any bound and any value but a U64, which only lies above.
    if pt.is_uint64(column.type):
        inside = pc.less_equal(column, pa.scalar(most, pa.uint64()))
    else:
        signed = column.cast(pa.int64())
        inside = pc.greater_equal(signed, least)
        if most < 2**63:
            inside = pc.and_(inside, pc.less_equal(signed, most))
    fitting = pc.if_else(inside, column, pa.scalar(None, column.type))
    return fitting.cast(_WIDTHS[kind.scalar])


def _dates(kind: ValueType, column: pa.Array) -> pa.Array:
    type_ = column.type
    if is_text(type_):
        return cells.days_of_texts(checked_texts(column))
    if pt.is_date32(type_):
        return cells.days_of_numbers(column.cast(pa.int32()))
    if pt.is_date64(type_):
        millis = column.cast(pa.int64())
        days = pc.divide(millis, 86_400_000)
        exact = pc.equal(pc.multiply(days, 86_400_000), millis)
        return cells.days_of_numbers(pc.if_else(exact, days, pa.scalar(None, pa.int64())))
    if pt.is_timestamp(type_) and type_.tz is None:
        # Midnight is how a frame without a type for days writes a day.
        midnight = pc.floor_temporal(column, unit="day")
        same = pc.if_else(pc.equal(midnight, column), column, pa.scalar(None, type_))
        return cells.days_of_numbers(same.cast(pa.date32()).cast(pa.int32()))
    if pt.is_integer(type_):
        return cells.days_of_numbers(column.cast(pa.int64()))
    raise _wrong(kind, type_)


def _moments(kind: ValueType, column: pa.Array) -> pa.Array:
    type_ = column.type
    if is_text(type_):
        return cells.moments_of_texts(checked_texts(column))
    if pt.is_timestamp(type_):
        if type_.tz is None:
            raise ValueTypeError(
                "the timestamps have no time zone; give them one, with"
                ' `tz_localize("UTC")` in pandas or `pc.assume_timezone` in Arrow'
            )
        millis = pc.floor_temporal(column.cast(pa.timestamp(type_.unit, "UTC")), unit="millisecond")
        return cells.moments_of_numbers(millis.cast(pa.timestamp("ms", "UTC")).cast(pa.int64()))
    if pt.is_date64(type_):
        return cells.moments_of_numbers(column.cast(pa.int64()))
    if pt.is_integer(type_):
        return cells.moments_of_numbers(column.cast(pa.int64()))
    raise _wrong(kind, type_)


def _vectors(kind: ValueType, column: pa.Array) -> pa.Array:
    if not _is_list(column.type) or not _is_number(column.type.value_type):
        raise _wrong(kind, column.type)
    return cells.vectors_of_lists(cells.in_lists(column, _float32), kind.dimension or 0)


def decoded(column: pa.Array) -> pa.Array:
    """A column without a dictionary."""
    type_ = column.type
    return column.cast(type_.value_type) if pt.is_dictionary(type_) else column


def _is_list(type_: pa.DataType) -> bool:
    return bool(pt.is_list(type_) or pt.is_large_list(type_) or pt.is_fixed_size_list(type_))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pt.is_integer(type_) or pt.is_floating(type_))


def _wrong(kind: ValueType, type_: pa.DataType) -> ValueTypeError:
    return ValueTypeError(f"a column of {type_} cannot hold {kind.without_null}")


_WIDTHS = {
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
}
