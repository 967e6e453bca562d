"""The functions of the language over columns, against what each means of single values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import QueryError
from omnigraph.lang.functions.of_times import UNITS
from omnigraph.lang.functions.registry import FUNCTIONS, STATEMENT
from omnigraph.lang.functions.signature import judge
from omnigraph.lang.types import INTEGERS, Scalar, ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.rows.functions.evaluate import KERNELS, evaluate
from tests import profile
from tests.rows.function_model import TooLarge, meaning

I64, U64, I32 = ValueType(Scalar.I64), ValueType(Scalar.U64), ValueType(Scalar.I32)
F64, F32 = ValueType(Scalar.F64), ValueType(Scalar.F32)
TEXT, BOOL = ValueType(Scalar.STRING), ValueType(Scalar.BOOL)
DAY, MOMENT = ValueType(Scalar.DATE), ValueType(Scalar.DATETIME)
TEXTS, NUMBERS = ValueType(Scalar.STRING, is_list=True), ValueType(Scalar.I64, is_list=True)
FLOATS = ValueType(Scalar.F64, is_list=True)
VECTOR = ValueType(Scalar.VECTOR, dimension=2)

# Letters with one upper and one lower case each, of one to four bytes, and what patterns are of.
LETTERS = st.text("ab Z.é€𝄞%_\\\n0-", max_size=6)
SHORT = st.integers(-3, 5)
AMOUNT = st.one_of(SHORT, st.integers(-(2**62), 2**62))
TENTHS = st.integers(-10_000, 10_000).map(lambda n: n / 8)
WHOLE = st.one_of(SHORT, st.integers(-(2**63), 2**63 - 1), st.sampled_from([-(2**63), 2**63 - 1]))
VALUES: Mapping[ValueType, st.SearchStrategy[Any]] = {
    I64: WHOLE,
    I32: st.integers(-(2**31), 2**31 - 1),
    U64: st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)),
    F64: st.one_of(TENTHS, st.floats(-1e15, 1e15), st.sampled_from([0.5, -0.5, 2.5, -2.5, 0.0])),
    F32: TENTHS,
    TEXT: LETTERS,
    BOOL: st.booleans(),
    DAY: st.dates(date(1, 1, 1), date(9999, 12, 31)),
    MOMENT: st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001 - below
        lambda d: d.replace(microsecond=d.microsecond // 1000 * 1000, tzinfo=UTC)
    ),
    TEXTS: st.lists(LETTERS, max_size=4),
    NUMBERS: st.lists(st.one_of(SHORT, WHOLE), max_size=4),
    FLOATS: st.lists(TENTHS, max_size=4),
    VECTOR: st.lists(TENTHS, min_size=2, max_size=2),
}
# Some of what stands in a place, where not any value of the type will do.
SMALL, NEAR = (I64, SHORT), (I64, AMOUNT)
PATTERN = (TEXT, st.sampled_from(["a", "^a", "b$", "[ab]+", "é.", "a|Z", "", r"\."]))
FORMAT = (TEXT, st.sampled_from(["%Y-%m-%d", "%H:%M:%S", "%j %G-%V-%u", "%y %a %A %b %B", "%F%%"]))
DIGITS = (TEXT, st.one_of(st.from_regex(r"\A[+-]?0{0,2}[0-9]{1,21}\Z"), LETTERS))
FLOAT_TEXT = (
    TEXT,
    st.one_of(st.floats().map(str), DIGITS[1], st.sampled_from(["1.", ".5", "1e9"])),
)
DAY_TEXT = (
    TEXT,
    st.one_of(
        st.dates().map(str), st.from_regex(r"\A[0-9]{3}[0-9]-[01][0-9]-[0-3][0-9]\Z"), LETTERS
    ),
)
MOMENT_TEXT = (
    TEXT,
    st.one_of(
        st.datetimes().map(lambda d: f"{d.isoformat().rjust(19, '0')}+05:30"),
        st.from_regex(
            r"\A20[0-9]{2}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]"
            r"(:[0-6][0-9](\.[0-9]{1,5})?)?(Z|z|[+-][0-2][0-9]:?[0-6][0-9])\Z"
        ),
        DAY_TEXT[1],
    ),
)
Place = ValueType | tuple[ValueType, st.SearchStrategy[Any]]
CALLS: Mapping[str, list[tuple[Place, ...]]] = {
    "coalesce": [(I64, I64), (TEXT, TEXT, TEXT), (I32, F64), (NUMBERS, NUMBERS), (DAY, DAY)],
    "if": [(BOOL, I64, I64), (BOOL, TEXT, TEXT), (BOOL, I64, F64), (BOOL, VECTOR, VECTOR)],
    "abs": [(I64,), (U64,), (F64,), (I32,), (F32,)],
    "floor": [(F64,), (I64,), (F32,)],
    "ceil": [(F64,), (U64,)],
    "round": [(F64,), (I64,), ((F64, TENTHS), (I64, st.integers(-5, 4)))],
    "sqrt": [(F64,), (I64,)],
    "exp": [(F64,)],
    "ln": [(F64,), (U64,)],
    "log10": [(F64,)],
    "pow": [(F64, F64), (I32, SMALL)],
    "sign": [(F64,), (I64,), (U64,)],
    "div": [(I64, I64), (U64, I64), (I64, U64), ((I64, SHORT), SMALL), ((F64, TENTHS), SMALL)],
    "min_of": [(I64, I64), (U64, I64, I64), (F64, I32), (TEXT, TEXT), (DAY, DAY), (BOOL, BOOL)],
    "max_of": [(I64, I64), (U64, I64), (F64, F64, F64), (TEXT, TEXT), (MOMENT, MOMENT)],
    "length": [(TEXT,)],
    "lower": [(TEXT,)],
    "upper": [(TEXT,)],
    "trim": [(TEXT,)],
    "replace": [(TEXT, (TEXT, st.sampled_from(["a", "", "é", "ab"])), TEXT)],
    "substring": [(TEXT, SMALL), (TEXT, SMALL, SMALL), (TEXT, NEAR, NEAR)],
    "split": [(TEXT, (TEXT, st.sampled_from(["a", "", "é", "0-"])))],
    "join": [(TEXTS, TEXT)],
    "concat": [(TEXT,), (TEXT, TEXT, TEXT)],
    "repeat": [(TEXT, SMALL)],
    "reverse": [(TEXT,)],
    "left": [(TEXT, SMALL), (TEXT, NEAR)],
    "right": [(TEXT, SMALL), (TEXT, NEAR)],
    "pad_left": [(TEXT, SMALL), (TEXT, (I64, st.integers(0, 12)), TEXT)],
    "pad_right": [(TEXT, SMALL), (TEXT, (I64, st.integers(0, 12)), TEXT)],
    "contains": [(TEXT, (TEXT, st.text("aé", max_size=2))), (NUMBERS, SMALL), (TEXTS, TEXT)],
    "starts_with": [(TEXT, (TEXT, st.text("aé", max_size=2)))],
    "ends_with": [(TEXT, (TEXT, st.text("aé", max_size=2)))],
    "matches": [(TEXT, PATTERN)],
    "like": [(TEXT, TEXT), (TEXT, (TEXT, st.text("ab%_\\é", max_size=4)))],
    **{name: [(DAY,), (MOMENT,)] for name in ("year", "month", "day", "week", "weekday")},
    **{name: [(MOMENT,)] for name in ("hour", "minute", "second")},
    "day_of_year": [(DAY,), (MOMENT,)],
    "date": [(MOMENT,), (DAY,)],
    "datetime": [(MOMENT,), (DAY,)],
    "truncate": [
        ((DAY, st.dates(date(1, 1, 8))), (TEXT, st.sampled_from(UNITS[:5]))),
        ((MOMENT, VALUES[MOMENT].filter(lambda d: d.year > 1)), (TEXT, st.sampled_from(UNITS))),
    ],
    "plus_days": [(DAY, NEAR), (MOMENT, SMALL)],
    "plus_months": [(DAY, SMALL), (MOMENT, NEAR)],
    "plus_years": [(DAY, SMALL), (MOMENT, SMALL), (DAY, NEAR)],
    **{f"plus_{unit}s": [(MOMENT, SMALL), (MOMENT, NEAR)] for unit in ("hour", "minute", "second")},
    **{
        f"{unit}s_between": [(DAY, DAY), (MOMENT, MOMENT), (DAY, MOMENT)]
        for unit in ("day", "hour", "minute", "second", "month")
    },
    "epoch_ms": [(MOMENT,), (DAY,)],
    "from_epoch_ms": [((I64, st.integers(-(2**40), 2**40)),), (NEAR,)],
    "format": [(DAY, FORMAT), (MOMENT, FORMAT)],
    "size": [(TEXTS,), (NUMBERS,)],
    "first": [(TEXTS,), (NUMBERS,)],
    "last": [(TEXTS,), (FLOATS,)],
    "at": [(NUMBERS, SMALL), (TEXTS, NEAR)],
    "slice": [(NUMBERS, SMALL), (TEXTS, SMALL, SMALL), (NUMBERS, NEAR, NEAR)],
    "sort": [(NUMBERS,), (TEXTS,), (FLOATS,)],
    "unique": [(NUMBERS,), (TEXTS,), (FLOATS,)],
    "sum_of": [(NUMBERS,), (FLOATS,)],
    "range": [(SMALL, SMALL)],
    "to_int": [(DIGITS,), ((F64, TENTHS),), (F64,), (BOOL,), (U64,), (I32,)],
    "to_float": [(FLOAT_TEXT,), (I64,), (BOOL,)],
    "to_string": [(I64,), ((F64, TENTHS),), (BOOL,), (DAY,), (MOMENT,), (TEXT,)],
    "to_bool": [((TEXT, st.sampled_from(["true", "false", "True", ""])),), (BOOL,)],
    "to_date": [(DAY_TEXT,), (MOMENT,)],
    "to_datetime": [(MOMENT_TEXT,), (DAY,)],
    "cosine": [(VECTOR, VECTOR)],
    "dot": [(VECTOR, VECTOR)],
    "l2": [(VECTOR, VECTOR)],
    "distance_km": [(F64, F64, F64, F64)],
}


@st.composite
def calls(draw: st.DrawFn, places: tuple[Place, ...]) -> list[tuple[ValueType, Any, bool]]:
    """Arguments: their types, their values, and whether one value stands for all rows."""
    count = draw(st.integers(0, 5))
    found = []
    for place in places:
        type_, values = place if isinstance(place, tuple) else (place, VALUES[place])
        fixed = draw(st.booleans())
        size = 1 if fixed else count
        some = st.lists(st.one_of(values, values, st.none()), min_size=size, max_size=size)
        found.append((type_, draw(some), fixed))
    return found


def is_same(found: Any, meant: Any) -> bool:
    if isinstance(meant, float) and isinstance(found, float):
        return math.isclose(found, meant, rel_tol=1e-9, abs_tol=1e-6)
    return type(found) is type(meant) and bool(found == meant)


@pytest.mark.parametrize(
    ("name", "places"),
    [(name, places) for name, several in CALLS.items() for places in several],
    ids=lambda value: value if isinstance(value, str) else "",
)
@profile.dear
@given(data=st.data())
def test_a_function_over_columns_is_what_it_means(
    name: str, places: tuple[Place, ...], data: st.DataObject
) -> None:
    arguments = data.draw(calls(places))
    types = [type_.or_null() for type_, _, _ in arguments]
    result = judge(FUNCTIONS[name], types)
    assert isinstance(result, ValueType)
    given_ = [
        pa.scalar(values[0], arrow_type(type_)) if fixed else pa.array(values, arrow_type(type_))
        for type_, values, fixed in arguments
    ]
    is_constant = all(fixed for _, _, fixed in arguments)
    count = next((len(values) for _, values, fixed in arguments if not fixed), 1)
    rows = [
        tuple(values[0 if fixed else row] for _, values, fixed in arguments) for row in range(count)
    ]
    try:
        meant = [meaning(name, row) for row in rows]
    except TooLarge:
        with pytest.raises(QueryError):
            evaluate(name, given_, count, result)
        return
    if result.scalar is Scalar.F64 and not result.is_list:
        meant = [None if value is None else float(value) for value in meant]
    if _mixed(meant):
        return
    found = evaluate(name, given_, count, result)
    assert isinstance(found, pa.Scalar) == is_constant
    expected = arrow_type(result)
    assert found.type == expected or (result.scalar in INTEGERS and pa.types.is_integer(found.type))
    values = [found.as_py()] if is_constant else found.to_pylist()
    assert len(values) == len(meant)
    for one, other, row in zip(values, meant, rows, strict=True):
        assert is_same(one, other), (row, one, other)


def _mixed(values: list[Any]) -> bool:
    """Whether no column of integers holds them all."""
    numbers = [value for value in values if isinstance(value, int)]
    return any(value < 0 for value in numbers) and any(value >= 2**63 for value in numbers)


def test_every_function_has_a_kernel_and_is_tested() -> None:
    assert set(KERNELS) == set(FUNCTIONS) - STATEMENT == set(CALLS)
