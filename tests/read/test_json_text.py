"""The text of every type, held against Python's own JSON module."""

from __future__ import annotations

import base64
import json
import math
import struct
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.output.json_text import join_texts, json_text
from omnigraph.rows.value_texts import TEXT

MOMENT = pa.timestamp("ms", "UTC")
DATES = st.dates(date(1, 1, 1), date(9999, 12, 31))
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLIS = st.integers(-62135596800000, 253402300799999)


def texts(values: list[Any], type_: pa.DataType) -> list[str]:
    found = join_texts(json_text(pa.array(values, type_)))
    assert found.type == TEXT
    result: list[str] = found.to_pylist()
    return result


def read_back(values: list[Any], type_: pa.DataType) -> list[Any]:
    return [json.loads(text) for text in texts(values, type_)]


def moment_text(millis: int) -> str:
    return (EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds")[:-6] + "Z"


# -- exact texts -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (pa.string(), 'a "b" \\ / \n\t\r\b\f\x00\x1f\x7f', None),
        (pa.string(), "żółw 🐢 \u2028", None),
        (pa.string(), "", '""'),
        (pa.bool_(), True, "true"),
        (pa.bool_(), False, "false"),
        (pa.int32(), -(2**31), "-2147483648"),
        (pa.int64(), -(2**63), "-9223372036854775808"),
        (pa.int64(), 2**63 - 1, "9223372036854775807"),
        (pa.uint32(), 2**32 - 1, "4294967295"),
        (pa.uint64(), 2**64 - 1, "18446744073709551615"),
        (pa.float32(), 0.1, "0.1"),
        (pa.float64(), 0.1, "0.1"),
        (pa.float64(), 1.0, "1.0"),
        (pa.float64(), -0.0, "-0.0"),
        (pa.float64(), 1e300, "1e+300"),
        (pa.float64(), 5e-324, "5e-324"),
        (pa.float32(), 16777216.0, "16777216.0"),
        (pa.float64(), math.nan, "null"),
        (pa.float32(), math.inf, "null"),
        (pa.float64(), -math.inf, "null"),
        (pa.date32(), date(2020, 5, 1), '"2020-05-01"'),
        (pa.date32(), date(1, 1, 1), '"0001-01-01"'),
        (pa.date32(), date(9999, 12, 31), '"9999-12-31"'),
        (MOMENT, 0, '"1970-01-01T00:00:00.000Z"'),
        (MOMENT, -1, '"1969-12-31T23:59:59.999Z"'),
        (MOMENT, 253402300799999, '"9999-12-31T23:59:59.999Z"'),
        (pa.list_(pa.string()), [], "[]"),
        (pa.list_(pa.string()), ["a", 'b"'], '["a","b\\""]'),
        (pa.list_(pa.date32()), [date(2020, 5, 1)], '["2020-05-01"]'),
        (pa.list_(pa.float64()), [1.5, math.nan], "[1.5,null]"),
        (pa.list_(pa.int64()), [1, None, 3], "[1,null,3]"),
        (pa.list_(pa.float32(), 2), [0.1, -2.0], "[0.1,-2.0]"),
        (pa.large_binary(), b"hello", '"base64:aGVsbG8="'),
        (pa.binary(), b"\xfb\xff", '"base64:+/8="'),
        (pa.large_binary(), b"", '"base64:"'),
        (pa.null(), None, "null"),
    ],
)
def test_spelling(type_: pa.DataType, value: Any, text: str | None) -> None:
    wanted = json.dumps(value, ensure_ascii=False) if text is None else text
    assert texts([value], type_) == [wanted]
    assert texts([None, value, None], type_) == ["null", wanted, "null"]


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.bool_(),
        pa.int64(),
        pa.float32(),
        pa.date32(),
        MOMENT,
        pa.large_binary(),
        pa.list_(pa.string()),
        pa.list_(pa.float32(), 3),
    ],
)
def test_nothing_and_only_nulls(type_: pa.DataType) -> None:
    assert texts([], type_) == []
    assert texts([None, None], type_) == ["null", "null"]


def test_a_slice_is_a_column_of_its_own() -> None:
    lists = pa.array([["x"], None, ["a", "b"], [], ["y"]], pa.list_(pa.string()))
    assert join_texts(json_text(lists.slice(1, 3))).to_pylist() == ["null", '["a","b"]', "[]"]
    vectors = pa.array([[1, 2], [3, 4], None, [5, 6]], pa.list_(pa.float32(), 2))
    assert join_texts(json_text(vectors.slice(1, 2))).to_pylist() == ["[3.0,4.0]", "null"]
    words = pa.array(['"', "plain", "words", '"'])
    assert json_text(words.slice(1, 2)).to_pylist() == ['"plain"', '"words"']


def test_a_type_without_a_spelling_is_refused() -> None:
    for type_ in (pa.time32("s"), pa.date64(), pa.timestamp("ms"), pa.timestamp("us", "UTC")):
        with pytest.raises(TypeError, match="has no JSON text"):
            json_text(pa.array([1], type_))


# -- any value ---------------------------------------------------------------------


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))))
def test_any_text(values: list[str | None]) -> None:
    assert texts(values, pa.string()) == [json.dumps(v, ensure_ascii=False) for v in values]


@given(st.lists(st.none() | st.floats()))
def test_any_double(values: list[float | None]) -> None:
    wanted = [None if v is None or not math.isfinite(v) else v for v in values]
    found = read_back(values, pa.float64())
    assert [repr(v) for v in found] == [repr(v) for v in wanted]
    finite = [v for v in wanted if v is not None]
    for text, value in zip(texts(finite, pa.float64()), finite, strict=True):
        # As many digits as the shortest text has; only the exponent may be spelled otherwise.
        assert digits(text) == digits(repr(value))


def digits(text: str) -> str:
    mantissa = text.lower().partition("e")[0].replace("-", "").replace(".", "")
    return mantissa.strip("0")


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_any_single(values: list[float]) -> None:
    for text, value in zip(texts(values, pa.float32()), values, strict=True):
        assert struct.pack("f", json.loads(text)) == struct.pack("f", value)
        assert len(digits(text)) <= 9


@given(st.lists(st.none() | st.integers(0, 2**64 - 1)), st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_any_integer(unsigned: list[int | None], signed: list[int]) -> None:
    assert read_back(unsigned, pa.uint64()) == unsigned
    assert read_back(signed, pa.int64()) == signed


@given(st.lists(st.none() | DATES), st.lists(MILLIS))
def test_any_time(days: list[date | None], moments: list[int]) -> None:
    assert read_back(days, pa.date32()) == [None if day is None else str(day) for day in days]
    assert read_back(moments, MOMENT) == [moment_text(moment) for moment in moments]


@given(st.lists(st.none() | st.binary()))
def test_any_bytes(values: list[bytes | None]) -> None:
    wanted = [None if v is None else "base64:" + base64.b64encode(v).decode() for v in values]
    assert read_back(values, pa.large_binary()) == wanted


@given(
    st.lists(st.none() | st.lists(st.text(st.characters(exclude_categories=["Cs"])))),
    st.lists(st.none() | st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3)),
    st.integers(0, 5),
)
def test_any_list(
    words: list[list[str] | None], vectors: list[list[float] | None], start: int
) -> None:
    assert read_back(words, pa.list_(pa.string())) == words
    column = pa.array(vectors, pa.list_(pa.float32(), 3)).slice(start)
    found = [json.loads(text) for text in join_texts(json_text(column)).to_pylist()]
    assert pa.array(found, pa.list_(pa.float32(), 3)).to_pylist() == column.to_pylist()
