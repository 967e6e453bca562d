"""Filters of Spark as something a scan can evaluate.

Owns which of them mean exactly the same to both: Spark does not look again at a filter
that is accepted here, and evaluates all others itself. Values travel as typed scalars.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import datasource as spark

from omnigraph.lang.types import FLOATS, INTEGER_RANGE, INTEGERS, Scalar
from omnigraph.pipeline.source.selection import TypeSelection
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.storage.tables.table import is_filterable

# Lance cannot evaluate Arrow expressions about the others.
_PUSHABLE = frozenset(
    {
        Scalar.STRING,
        Scalar.BOOL,
        Scalar.I32,
        Scalar.I64,
        Scalar.F32,
        Scalar.F64,
        Scalar.DATE,
        Scalar.DATETIME,
    }
)


def expression_of(selection: TypeSelection, wanted: spark.Filter) -> pc.Expression | None:
    """The filter as an expression of its rows, or None if Spark has to evaluate it."""
    if not is_filterable(selection.table):
        return None
    scalars = {
        column.name: column.type.scalar
        for column in selection.columns
        if column.is_stored and column.type.is_plain and column.type.scalar in _PUSHABLE
    }
    if isinstance(wanted, spark.Not):
        # Its opposite is never null, which no expression here can say.
        if isinstance(wanted.child, spark.EqualNullSafe):
            return None
        positive = _positive(wanted.child, scalars)
        return None if positive is None else ~positive
    return _positive(wanted, scalars)


def _positive(wanted: Any, scalars: Mapping[str, Scalar]) -> pc.Expression | None:
    path: tuple[str, ...] = getattr(wanted, "attribute", ())
    if len(path) != 1 or path[0] not in scalars:
        return None
    scalar = scalars[path[0]]
    field = pc.field(path[0])
    match wanted:
        case spark.IsNull():
            return field.is_null()
        case spark.IsNotNull():
            return field.is_valid()
        case spark.In():
            return _among(field, scalar, wanted.value)
        case spark.StringStartsWith() | spark.StringEndsWith() | spark.StringContains():
            return _like(field, scalar, wanted)
        case spark.EqualNullSafe() if wanted.value is None:
            return field.is_null()
        case spark.EqualNullSafe() | spark.EqualTo():
            value = _typed(wanted.value, scalar)
            return None if value is None else field == value
    value = None if scalar is Scalar.BOOL else _typed(getattr(wanted, "value", None), scalar)
    if value is None:
        return None
    match wanted:
        case spark.GreaterThan():
            return field > value
        case spark.GreaterThanOrEqual():
            return field >= value
        case spark.LessThan():
            return field < value
        case spark.LessThanOrEqual():
            return field <= value
    return None


def _among(field: pc.Expression, scalar: Scalar, values: tuple[Any, ...]) -> pc.Expression | None:
    typed = [_typed(value, scalar) for value in values]
    if not typed or any(value is None for value in typed):
        return None
    if scalar in FLOATS and 0 in values:
        # A list tells them apart, Spark does not.
        typed += [pa.scalar(zero, SCALARS[scalar]) for zero in (0.0, -0.0)]
    return field.isin(pa.array(typed, SCALARS[scalar]))


def _like(field: pc.Expression, scalar: Scalar, wanted: Any) -> pc.Expression | None:
    if scalar is not Scalar.STRING or not isinstance(wanted.value, str):
        return None
    match wanted:
        case spark.StringStartsWith():
            return pc.starts_with(field, wanted.value)
        case spark.StringEndsWith():
            return pc.ends_with(field, wanted.value)
    return pc.match_substring(field, wanted.value)


def _typed(value: Any, scalar: Scalar) -> pa.Scalar | None:
    """A value in the type of its column; None if it has none that equals it."""
    fits = False
    if scalar in INTEGERS:
        least, most = INTEGER_RANGE[scalar]
        fits = type(value) is int and least <= value <= most
    elif scalar in FLOATS:
        fits = type(value) in (int, float) and _is_exact(value, scalar)
    elif scalar is Scalar.DATE:
        fits = isinstance(value, date) and not isinstance(value, datetime)
    elif scalar is Scalar.DATETIME:
        fits = isinstance(value, datetime) and _is_moment(value)
    elif scalar is Scalar.STRING:
        fits = isinstance(value, str)
    elif scalar is Scalar.BOOL:
        fits = isinstance(value, bool)
    return pa.scalar(value, SCALARS[scalar]) if fits else None


def _is_moment(value: datetime) -> bool:
    """Whether a time of Spark's, which knows microseconds, is one that a property can have."""
    return value.tzinfo is not None and value.microsecond % 1000 == 0


def _is_exact(value: float, scalar: Scalar) -> bool:
    try:
        wide = float(value)
        narrow = float(np.float32(wide)) if scalar is Scalar.F32 else wide
    except OverflowError:
        return False
    return math.isfinite(wide) and narrow == value
