"""CSV cells: texts become values of their type, or their rows are marked."""

from __future__ import annotations

import base64
import json
import math
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.types import INTEGER_RANGE, Scalar, ValueType
from omnigraph.storage.tables.columns import arrow_field
from omnigraph.write.load.columns.csv_cells import misfit_text, parse_texts

KINDS: dict[str, ValueType] = {
    **{scalar.value: ValueType(scalar) for scalar in Scalar if scalar is not Scalar.VECTOR},
    **{
        f"[{scalar.value}]": ValueType(scalar, is_list=True)
        for scalar in Scalar
        if scalar not in (Scalar.VECTOR, Scalar.BLOB)
    },
    "Vector(2)": ValueType(Scalar.VECTOR, dimension=2),
    "enum": ValueType(Scalar.STRING, enum_values=("a", "b")),
}


def parse(kind: str, *texts: str | None) -> list[Any]:
    """The values; what does not fit is the word `bad`."""
    column, bad = parse_texts(KINDS[kind], pa.array(texts, pa.string()))
    assert len(column) == len(bad) == len(texts)
    assert bad.dtype == np.bool_
    if kind != "Blob":
        assert column.type == arrow_field("x", KINDS[kind]).type
    if kind == "DateTime":
        column = column.cast(pa.int64())
    return ["bad" if wrong else value for value, wrong in zip(column.to_pylist(), bad, strict=True)]


@pytest.mark.parametrize(
    ("kind", "good"),
    [
        ("String", {"": "", "a": "a", " 7 ": " 7 ", "null": "null"}),
        ("enum", {"a": "a", "z": "z"}),
        ("I32", {"0": 0, "-0": 0, "7": 7, "-2147483648": -(2**31), "2147483647": 2**31 - 1}),
        ("I64", {"-9223372036854775808": -(2**63), "9223372036854775807": 2**63 - 1}),
        ("U32", {"-0": 0, "4294967295": 2**32 - 1}),
        ("U64", {"-0": 0, "18446744073709551615": 2**64 - 1, "9": 9}),
        ("F64", {"1": 1.0, "-0.5": -0.5, "1e3": 1000.0, "1.5E-7": 1.5e-7, "1e-999": 0.0}),
        ("F32", {"0.1": float(np.float32(0.1)), "3e38": float(np.float32(3e38))}),
        ("Bool", {"true": True, "False": False, "TRUE": True, "false": False}),
        ("Date", {"2024-02-29": date(2024, 2, 29), "0001-01-01": date(1, 1, 1)}),
        (
            "DateTime",
            {
                "2024-05-01T12:00:00Z": 1_714_564_800_000,
                "2024-05-01 12:00:00.123456+02:00": 1_714_557_600_123,
            },
        ),
        ("Blob", {"base64:": b"", "base64:AAE=": b"\x00\x01"}),
        ("[String]", {"[]": [], '["a","b\\n"]': ["a", "b\n"], ' [ "]" ] ': ["]"]}),
        ("[I32]", {"[1,\n2]": [1, 2], "[-2147483648]": [-(2**31)]}),
        ("[U64]", {"[18446744073709551615]": [2**64 - 1]}),
        ("[F64]", {"[1,2.5]": [1.0, 2.5]}),
        ("[Bool]", {"[true,false]": [True, False]}),
        ("[Date]", {'["2024-02-29"]': [date(2024, 2, 29)], "[19782]": [date(2024, 2, 29)]}),
        ("Vector(2)", {"[1,-0.5]": [1.0, -0.5], "[1e3, 2]": [1000.0, 2.0]}),
    ],
)
def test_what_fits(kind: str, good: dict[str, Any]) -> None:
    assert dict(zip(good, parse(kind, *good), strict=True)) == good
    # One at a time, and with a row that does not fit and one that is absent beside it.
    for text, value in good.items():
        assert parse(kind, text) == [value]
        assert parse(kind, None, text, None) == [None, value, None]
    if kind not in ("String", "enum"):
        assert parse(kind, "?", *good, "") == ["bad", *good.values(), "bad"]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("I32", ["", " 1", "1 ", "+1", "01", "1.0", "1e3", "0x10", "1,000", "true", "2147483648"]),
        ("I32", ["-2147483649", "9" * 19, "9" * 5000, "٣", "1\n"]),
        ("I64", ["9223372036854775808", "-9223372036854775809", "1" * 40]),
        ("U32", ["-1", "4294967296"]),
        ("U64", ["-1", "18446744073709551616"]),
        ("F64", ["", "NaN", "inf", "Infinity", ".5", "5.", "1e999", "1,5", "0x1p3", " 1", "1_0"]),
        ("F32", ["3.5e38", "-1e39", "nan"]),
        ("Bool", ["", "1", "0", "yes", "t", "tRUE", " true"]),
        ("Date", ["", "2024-02-30", "2024", "19782", "2024-5-1", "2024-05-01T00:00:00Z"]),
        ("DateTime", ["", "2024-05-01", "2024-05-01T12:00:00", "1714567890000", "noon"]),
        ("Blob", ["", "AAE=", "base64:A", "s3://bucket/x", "base64:AAE"]),
        ("[String]", ["", "a", "[1]", '["a"', '["a",null]', "null", '{"a":[]}', '"a"']),
        ("[String]", ['["a"]} {"a":["b"]', '["a"],"b":1', '["a"]\n["b"]', '["\\ud800"]']),
        ("[I32]", ["[1.0]", "[2147483648]", '["1"]', "1", "[1,]", "[[1]]", "[01]"]),
        ("[F64]", ["[NaN]", "[1e999]", "[Infinity]"]),
        ("[Date]", ['["2024-02-30"]', "[true]"]),
        ("Vector(2)", ["[]", "[1]", "[1,2,3]", "[1,null]", '[1,"2"]', "[1e39,0]", "1,2", "null"]),
    ],
)
def test_what_does_not_fit(kind: str, wrong: list[str]) -> None:
    assert parse(kind, *wrong) == ["bad"] * len(wrong)
    for text in wrong:
        assert parse(kind, text) == ["bad"]
        assert misfit_text(KINDS[kind], text)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_nothing(kind: str) -> None:
    assert parse(kind) == []
    assert parse(kind, None, None) == [None, None]


def test_one_wrong_array_among_many() -> None:
    texts = [f"[{number}, 0.5]" for number in range(1000)]
    texts[700] = "[1, 2"
    found = parse("Vector(2)", *texts, None)
    assert found[700] == "bad"
    assert found[1000] is None
    found[700] = [700.0, 0.5]
    assert found[:1000] == [[float(number), 0.5] for number in range(1000)]


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), st.integers(-(2**65), 2**65)), max_size=20))
def test_integers_fit_their_range(numbers: list[int | None]) -> None:
    texts = [None if number is None else str(number) for number in numbers]
    for scalar, (least, most) in INTEGER_RANGE.items():
        expected = [
            None if number is None else number if least <= number <= most else "bad"
            for number in numbers
        ]
        assert parse(scalar.value, *texts) == expected


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_floats_come_back(numbers: list[float]) -> None:
    texts = [json.dumps(number) for number in numbers]
    assert parse("F64", *texts) == numbers
    with np.errstate(over="ignore"):
        narrow = [float(np.float32(text)) for text in texts]
    assert parse("F32", *texts) == ["bad" if math.isinf(one) else one for one in narrow]


@pytest.mark.slow
@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), max_size=10))
def test_lists_of_texts_come_back(lists: list[list[str]]) -> None:
    assert parse("[String]", *map(json.dumps, lists)) == lists
    assert parse("[String]", *(json.dumps(one, ensure_ascii=False) for one in lists)) == lists


@given(st.lists(st.binary(), max_size=10))
def test_blobs_come_back(contents: list[bytes]) -> None:
    texts = [f"base64:{base64.b64encode(content).decode()}" for content in contents]
    assert parse("Blob", *texts) == contents


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("I32", "12x", 'expected I32, found the string "12x"'),
        ("I32", "1.5", "expected I32, found the number 1.5; write it without a fraction"),
        ("I32", "3000000000", "3000000000 does not fit I32"),
        ("I32", " 5", '" 5" is no I32'),
        ("F64", "NaN", 'expected F64, found the string "NaN"'),
        ("Bool", "yes", 'expected Bool, found the string "yes"'),
        ("Date", "2024", "invalid Date literal '2024'; write YYYY-MM-DD"),
        ("Date", "", "an empty text is no Date; leave the value out to have none"),
        ("[I32]", "1;2", '"1;2" is no JSON array, which is how [I32] is written in CSV'),
        ("[I32]", '["a"]', 'element 1: expected I32, found the string "a"'),
        ("Vector(2)", "[1]", "expected 2 numbers, found 1"),
        ("Vector(2)", "null", "expected an array of 2 numbers, found null"),
    ],
)
def test_why_a_text_does_not_fit(kind: str, text: str, told: str) -> None:
    assert misfit_text(KINDS[kind], text).startswith(told)
