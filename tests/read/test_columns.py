"""Columns in memory: comparing, grouping, ordering and aggregating whole arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.lang.expressions import AggregateName, CompareOp
from omnigraph.read.access import entities
from omnigraph.read.execute.aggregates import aggregate_by
from omnigraph.read.execute.grouping import group_rows
from omnigraph.read.execute.ordering import ordered_rows, ranks
from omnigraph.rows.comparisons import compare
from omnigraph.rows.conditions import repeated

MOMENT = pa.timestamp("ms", "UTC")
OPERATORS: dict[CompareOp, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EDGES = [
    *(
        sign * 2**power + step
        for power in (31, 32, 53, 63)
        for sign in (1, -1)
        for step in (-1, 0, 1)
    ),
    0,
    1,
    2**64 - 1,
]


def _integers(type_: pa.DataType) -> st.SearchStrategy[int | None]:
    low = 0 if pa.types.is_unsigned_integer(type_) else -(2 ** (type_.bit_width - 1))
    high = low + 2**type_.bit_width - 1
    known = [value for value in EDGES if low <= value <= high]
    return st.one_of(st.none(), st.sampled_from(known), st.integers(low, high))


def _floats(width: int) -> st.SearchStrategy[float | None]:
    known = [float(np.float32(value) if width == 32 else value) for value in EDGES]
    some = st.sampled_from([*known, 0.5, -0.5, -0.0, 2.7 if width == 64 else 2.5])
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=32 if width == 32 else 64)
    return st.one_of(st.none(), some, numbers)


KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    **{type_: _integers(type_) for type_ in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64())},
    pa.float32(): _floats(32),
    pa.float64(): _floats(64),
}
numbers = st.sampled_from(list(KINDS)).flatmap(
    lambda type_: st.tuples(st.just(type_), st.lists(KINDS[type_], min_size=6, max_size=6))
)


def _wanted(op: CompareOp, left: list[Any], right: list[Any]) -> list[bool | None]:
    return [
        None if one is None or other is None else OPERATORS[op](one, other)
        for one, other in zip(left, right, strict=True)
    ]


@given(numbers, numbers, st.sampled_from(list(OPERATORS)))
def test_numbers_compare_by_value(
    left: tuple[pa.DataType, list[Any]], right: tuple[pa.DataType, list[Any]], op: CompareOp
) -> None:
    one, other = (pa.array(values, type_) for type_, values in (left, right))
    wanted = _wanted(op, one.to_pylist(), other.to_pylist())
    assert compare(one, op, other).to_pylist() == wanted
    scalar = other[0]
    # A constant next to a narrow float is meant at its width; that is no comparison by value.
    if not (pa.types.is_float32(left[0]) and pa.types.is_float64(right[0])):
        against = _wanted(op, one.to_pylist(), [scalar.as_py()] * 6)
        assert compare(one, op, scalar).to_pylist() == against


@given(
    st.lists(st.tuples(st.none() | st.booleans(), st.none() | st.booleans())),
    st.sampled_from(list(OPERATORS)),
)
def test_false_is_less_than_true(pairs: list[tuple[Any, Any]], op: CompareOp) -> None:
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = compare(pa.array(left, pa.bool_()), op, pa.array(right, pa.bool_()))
    assert found.to_pylist() == _wanted(op, left, right)


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3))))
def test_texts_compare_by_code_point(pairs: list[tuple[str, str]]) -> None:
    pairs.append(("\ufb00", "\U0001d518"))
    left, right = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    found = compare(pa.array(left), "<", pa.array(right))
    assert found.to_pylist() == _wanted("<", left, right)


# -- grouping --------------------------------------------------------------------------------

keys = st.one_of(
    st.lists(st.sampled_from(["a", "b", None]), min_size=5, max_size=5).map(
        lambda values: pa.array(values, pa.string())
    ),
    st.lists(st.sampled_from([0.0, -0.0, 1.5, None]), min_size=5, max_size=5).map(
        lambda values: pa.array(values, pa.float64())
    ),
    st.lists(st.sampled_from([[1], [1, 2], [], None]), min_size=5, max_size=5).map(
        lambda values: pa.array(values, pa.list_(pa.int64()))
    ),
    st.lists(st.sampled_from([True, False, None]), min_size=5, max_size=5).map(
        lambda values: pa.array(values, pa.bool_())
    ),
)


@given(st.lists(keys, min_size=1, max_size=3))
def test_groups_come_in_the_order_they_are_seen(columns: list[pa.Array]) -> None:
    rows = [repr(tuple(map(_plain, row))) for row in zip(*columns, strict=True)]
    seen = list(dict.fromkeys(rows))
    groups = group_rows(columns, 5)
    assert groups.of_row.tolist() == [seen.index(row) for row in rows]
    assert groups.first_rows.tolist() == [rows.index(row) for row in seen]


def _plain(value: pa.Scalar) -> Any:
    plain = value.as_py()
    return plain + 0.0 if isinstance(plain, float) else plain


def test_nodes_group_by_position() -> None:
    groups = group_rows([np.array([7, -1, 7, 3, -1])], 5)
    assert groups.of_row.tolist() == [0, 1, 0, 2, 1]


def test_without_keys_there_is_one_group() -> None:
    assert group_rows([], 3).of_row.tolist() == [0, 0, 0]


# -- ordering --------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([None, 0.0, -0.0, -1.5, 2.5])), st.booleans())
def test_null_is_smallest_and_zeros_are_equal(values: list[float | None], descending: bool) -> None:
    found = ranks(pa.array(values, pa.float64()), descending=descending)
    for one, mine in zip(values, found, strict=True):
        for other, theirs in zip(values, found, strict=True):
            wanted = _below(one, other) if not descending else _below(other, one)
            assert bool(mine < theirs) == wanted


def _below(one: float | None, other: float | None) -> bool:
    return (one is not None, one or 0.0) < (other is not None, other or 0.0)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.text("ab", max_size=1))),
    st.none() | st.integers(0, 5),
)
def test_keys_then_ties_then_the_cut(rows: list[tuple[int, int, str]], wanted: int | None) -> None:
    first, second = (np.array([row[n] for row in rows], dtype=np.int64) for n in (0, 1))
    names = pa.array([row[2] for row in rows], pa.string())
    found = ordered_rows(
        [first, second], [lambda chosen: names.take(pa.array(chosen))], len(rows), wanted
    )
    assert [rows[place] for place in found] == sorted(rows)[:wanted]


# -- aggregates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        ("count", [2, 0, 1]),
        ("sum", [3.0, None, 5.0]),
        ("avg", [1.5, None, 5.0]),
        ("min", [1, None, 5]),
        ("max", [2, None, 5]),
    ],
)
def test_aggregates_skip_nulls(function: AggregateName, wanted: list[Any]) -> None:
    groups = np.array([0, 0, 1, 2, 0])
    values = pa.array([1, 2, None, 5, None], pa.int32())
    assert aggregate_by(function, groups, values, 3).to_pylist() == wanted


@pytest.mark.parametrize("type_", [pa.string(), pa.bool_(), pa.date32(), MOMENT, pa.uint64()])
def test_extremes_of_nothing_keep_the_type(type_: pa.DataType) -> None:
    nothing = np.empty(0, dtype=np.int64)
    found = aggregate_by("max", nothing, pa.array([], type_), 1)
    assert (found.type, found.to_pylist()) == (type_, [None])


def test_constants_are_repeated_even_no_times() -> None:
    for scalar in (pa.scalar([1, 2]), pa.scalar("a"), pa.scalar(None, pa.int64())):
        for count in (0, 2):
            assert repeated(scalar, count).to_pylist() == [scalar.as_py()] * count
    nothing = np.empty(0, dtype=np.int64)
    assert aggregate_by("count", nothing, pa.scalar([1]), 1).to_pylist() == [0]


# -- results ---------------------------------------------------------------------------------

FLOATS = """\
node Measure { name: String @key  f: F64?  g: F32?  fs: [F64]?  gs: [F32]? }
"""


@pytest.fixture(scope="module")
def measures(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("floats") / "graph", FLOATS)
    rows = {
        "minus": (-0.0, -0.0),
        "plus": (0.0, 0.0),
        "large": (2.0**53, 2.0**24),
        "tenth": (0.1, 0.1),
    }
    graph.load(
        [
            {"type": "Measure", "data": {"name": name, "f": f, "g": g, "fs": [f], "gs": [g]}}
            for name, (f, g) in rows.items()
        ],
        mode="append",
    )
    return graph


def _names(graph: og.Graph, clause: str) -> set[str]:
    text = f"query q() {{ match {{ $m: Measure {clause} }} return {{ $m.name }} }}"
    return {row["m.name"] for row in graph.query(text).rows}


def test_both_zeros_are_one_value(measures: og.Graph) -> None:
    for clause in (
        "$m.f = 0",
        "$m.f = -0.0",
        "$m.g = 0.0",
        "$m.fs contains 0",
        "$m.gs contains -0.0",
    ):
        assert _names(measures, clause) == {"minus", "plus"}, clause
    assert _names(measures, "$m.f < 0.0") == set()
    text = "query q() { match { $m: Measure $m.f = 0 } return { $m.name } order { $m.f desc } }"
    assert [row["m.name"] for row in measures.query(text)] == ["minus", "plus"]
    text = "query q() { match { $m: Measure $m.f = 0 } return { $m.f, count($m) as n } }"
    assert [row["n"] for row in measures.query(text)] == [2]


def test_both_zeros_are_one_choice(measures: og.Graph) -> None:
    assert _names(measures, "$m.f in [0]") == {"minus", "plus"}
    assert _names(measures, "$m.g in [-0.0]") == {"minus", "plus"}


@pytest.mark.parametrize(
    ("clause", "wanted"),
    [
        ("$m.f = 9007199254740993", set()),
        ("$m.f >= 9007199254740993", set()),
        ("$m.f in [9007199254740993]", set()),
        ("$m.fs contains 9007199254740993", set()),
        ("$m.g = 16777217", set()),
        ("$m.g >= 16777217", set()),
        ("$m.gs contains 16777217", set()),
    ],
)
def test_an_integer_that_no_float_equals(measures: og.Graph, clause: str, wanted: set[str]) -> None:
    assert _names(measures, clause) == wanted


def test_narrow_floats_are_shown_at_their_width(measures: og.Graph) -> None:
    text = 'query q() { match { $m: Measure { name: "tenth" } } return { $m.f, $m.g, $m.gs } }'
    (row,) = measures.query(text).rows
    assert row == {"m.f": 0.1, "m.g": 0.1, "m.gs": [0.1]}


def test_column_types_survive_an_empty_result(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "graph",
        "node N { a: I32?  b: [Date]?  c: DateTime?  d: F32? }\nedge E: N -> N { x: U64? }\n",
    )
    match = "query q() { match { $n: N $n $e:e $m }"
    found = graph.query(
        f"{match} return {{ $n.a, $n.b, $n.c, $n.d, $e.x, [1.5] as l, $n }} }}"
    ).table
    assert found.num_rows == 0
    wanted = [pa.int32(), pa.list_(pa.date32()), MOMENT, pa.float32(), pa.uint64()]
    assert found.schema.types[:5] == wanted
    assert found.schema.field("l").type == pa.list_(pa.float64())
    assert pa.types.is_struct(found.schema.field("n").type)
    found = graph.query(
        f"{match} return {{ count($m) as k, min($n.c) as c, sum($n.a) as s }} }}"
    ).table
    assert found.to_pylist() == [{"k": 0, "c": None, "s": None}]
    assert found.schema.types == [pa.int64(), MOMENT, pa.int64()]


@pytest.mark.parametrize("type_", ["[U32]", "[U64]", "[DateTime]"])
def test_a_list_does_not_disturb_filters(
    type_: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = og.init(tmp_path / "graph", f"node N {{ name: String @key  x: I32?  l: {type_}? }}\n")
    graph.load([{"type": "N", "data": {"name": "a", "x": 1}}], mode="append")
    monkeypatch.setattr(entities, "MANY", -1)
    found = graph.query("query q() { match { $n: N $n.x = 1 } return { $n.name } }")
    assert found.rows == [{"n.name": "a"}]
    changed = graph.mutate("query q() { update N set { x: 2 } where x = 1 }")
    assert changed.affected_nodes == 1


def test_a_list_that_is_missing_next_to_one_that_disturbs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "node N { name: String @key  numbers: [I64]?  sizes: [U64]? }\n"
    graph = og.init(tmp_path / "graph", schema)
    graph.load([{"type": "N", "data": {"name": "a"}}], mode="append")
    monkeypatch.setattr(entities, "MANY", -1)
    found = graph.query("query q() { match { $n: N $n.numbers is null } return { $n.name } }")
    assert found.rows == [{"n.name": "a"}]
    changed = graph.mutate("query q() { delete N where numbers is null }")
    assert changed.affected_nodes == 1
