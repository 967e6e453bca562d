"""What the functions refuse, what they hold, and the corners that the model leaves out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import QueryError, ResourceLimit
from omnigraph.lang.functions.registry import FUNCTIONS
from omnigraph.lang.functions.signature import judge
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.rows.functions.evaluate import evaluate

_SCALARS = {
    pa.int64(): Scalar.I64,
    pa.uint64(): Scalar.U64,
    pa.float64(): Scalar.F64,
    pa.string(): Scalar.STRING,
    pa.date32(): Scalar.DATE,
    pa.timestamp("ms", "UTC"): Scalar.DATETIME,
}


def _type(value: pa.Array | pa.Scalar) -> ValueType:
    if pa.types.is_list(value.type):
        return ValueType(_SCALARS[value.type.value_type], is_list=True)
    return ValueType(_SCALARS[value.type])


def call(name: str, *arguments: Any, count: int = 1, **bounds: Any) -> Any:
    given = [one if isinstance(one, pa.Array) else pa.scalar(one) for one in arguments]
    result = judge(FUNCTIONS[name], [_type(one) for one in given])
    assert isinstance(result, ValueType)
    return evaluate(name, given, count, result, **bounds)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("floor", [1e30], "the result of floor is too large for an integer of 64 bits"),
        ("sum_of", [[2**62, 2**62, 2**62, 2**62]], "the result of sum_of is too large"),
        ("matches", ["a", "(" * 3], "`(((` is no regular expression: missing )"),
        ("truncate", [pa.scalar(0, pa.date32()), "moon"], "truncate knows no unit `moon`"),
        ("format", [pa.scalar(0, pa.date32()), "%Y %Q"], "format does not know `%Q`"),
        ("plus_years", [pa.scalar(0, pa.date32()), 8030], "outside of the years 1 to 9999"),
        ("dot", [[1.0], [1.0, 2.0]], "dot needs two vectors of as many numbers, found 1 and 2"),
    ],
)
def test_what_has_no_result_is_an_error(name: str, arguments: list[Any], message: str) -> None:
    given = [one if isinstance(one, pa.Scalar) else pa.scalar(one) for one in arguments]
    types = [_type(one) for one in given]
    with pytest.raises(QueryError) as refused:
        evaluate(name, given, 1, ValueType(Scalar.STRING, nullable=bool(types)))
    assert message in refused.value.message
    assert refused.value.code == "query_error"


def test_integers_beyond_the_signed_ones_are_unsigned() -> None:
    least = pa.array([-(2**63), 5], pa.int64())
    assert call("abs", least, count=2).to_pylist() == [2**63, 5]
    assert call("abs", least, count=2).type == pa.uint64()
    assert call("div", -(2**63), -1).as_py() == 2**63
    assert call("sum_of", [2**62, 2**62, 2**62]).as_py() == 3 * 2**62


def test_a_column_of_both_kinds_of_large_integers_is_refused() -> None:
    with pytest.raises(QueryError, match="too large"):
        call("div", pa.array([-(2**63), 4], pa.int64()), pa.array([-1, -1]), count=2)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("repeat", ["ab", 10**12]),
        ("pad_left", ["ab", 10**12]),
        ("range", [0, 10**12]),
        ("replace", ["a" * 70_000, "a", "b" * 70_000]),
    ],
)
def test_what_no_column_holds_is_not_made(name: str, arguments: list[Any]) -> None:
    with pytest.raises(ResourceLimit):
        call(name, *arguments)


class _Little:
    """Bounds that allow next to nothing, and count how often somebody looks."""

    looks = 0

    def look(self) -> None:
        self.looks += 1

    def need(self, more: int, /) -> None:
        if more > 1000:
            raise ResourceLimit("too much")


def test_memory_is_asked_for_before_it_is_taken() -> None:
    with pytest.raises(ResourceLimit, match="too much"):
        call("range", 0, 1000, bounds=_Little())


def test_somebody_looks_between_batches() -> None:
    bounds = _Little()
    patterns = pa.array([f"a{number}" for number in range(50)])
    call("matches", patterns, patterns, count=50, bounds=bounds)
    assert bounds.looks >= 50


def test_a_null_constant_makes_nothing_but_nulls() -> None:
    result = ValueType(Scalar.I64, nullable=True)
    found = evaluate("length", [pa.scalar(None, pa.string())], 3, result)
    assert isinstance(found, pa.Scalar)
    assert found.as_py() is None
    some = [pa.array(["a", "b"]), pa.scalar(None, pa.string())]
    assert evaluate("concat", some, 2, ValueType(Scalar.STRING)).to_pylist() == [None, None]


def test_columns_that_are_slices_are_read_where_they_begin() -> None:
    texts = pa.array(["zé", "abcd", None, "éaé", "xy"]).slice(1, 3)
    starts = pa.array([9, 1, 2, 1, 9]).slice(1, 3)
    assert call("substring", texts, starts, count=3).to_pylist() == ["bcd", None, "aé"]
    lists = pa.array([[9], [3, 1], None, [2], [8]]).slice(1, 3)
    assert call("sort", lists, count=3).to_pylist() == [[1, 3], None, [2]]
    assert call("sum_of", lists, count=3).to_pylist() == [4, None, 2]


def test_an_empty_text_is_found_nowhere() -> None:
    texts = pa.array(["aé", None, "", "b"])
    assert call("split", texts, "", count=4).to_pylist() == [["a", "é"], None, [], ["b"]]
    assert call("split", texts.slice(2), "", count=2).to_pylist() == [[], ["b"]]
    assert call("replace", texts, "", "x", count=4).to_pylist() == ["aé", None, "", "b"]


def test_texts_are_cut_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.rows.functions.ragged._BATCH", 7)
    texts = pa.array(["abcdefghij", "é", None, "", "xyz", "uvw"])
    ends = pa.array([3, 1, 1, 1, 2, 9])
    assert call("left", texts, ends, count=6).to_pylist() == ["abc", "é", None, "", "xy", "uvw"]


def test_lists_in_results_may_hold_nulls() -> None:
    lists = pa.array([[3, None, 1, None], [None]], pa.list_(pa.int64()))
    assert call("sort", lists, count=2).to_pylist() == [[1, 3, None, None], [None]]
    assert call("unique", lists, count=2).to_pylist() == [[3, None, 1], [None]]
    assert call("sum_of", lists, count=2).to_pylist() == [4, None]
    assert call("contains", lists, 3, count=2).to_pylist() == [True, False]
    assert call("first", lists.slice(1), count=1).to_pylist() == [None]


def test_distances_are_those_of_the_globe() -> None:
    assert round(call("distance_km", 0.0, 0.0, 0.0, 180.0).as_py(), 3) == 20015.114
    assert call("distance_km", 90.0, 0.0, 90.0, 77.0).as_py() < 1e-9
