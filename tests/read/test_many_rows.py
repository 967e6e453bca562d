"""Rows that are many for what they hold: computed once a value, marked off, or cut early."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.read.execute.aggregates import aggregate_by
from omnigraph.read.execute.grouping import NULL, group_rows, small_codes
from omnigraph.read.execute.ordering import that_may_lead
from omnigraph.read.execute.sorting import stable_order
from omnigraph.rows.functions import times
from omnigraph.rows.functions.call import Call, Unbounded

SCHEMA = """
node N { name: String @key  town: String?  level: I32?  born: Date? }
edge E: N -> N { weight: F64?  since: Date? }
"""
NODES, EDGES = 120, 4_000
FIRST = date(2019, 11, 20)

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> tuple[list[Row], list[Row]]:
    rng = Random(11)  # noqa: S311 - for tests, not for secrets
    days = [None, *(FIRST + timedelta(days=number) for number in range(100))]
    nodes = [
        {
            "name": f"n{number:03}",
            "town": rng.choice((None, "Ayr", "Bute", "Crail")),
            "level": rng.choice((None, -3, 0, 7)),
            "born": rng.choice(days),
        }
        for number in range(NODES)
    ]
    edges = [
        {
            "from": rng.choice(nodes)["name"],
            "to": rng.choice(nodes)["name"],
            "weight": rng.choice((None, -1.5, 0.25, 2.0, 3.0)),
            "since": rng.choice(days),
        }
        for _ in range(EDGES)
    ]
    return nodes, edges


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, rows: tuple[list[Row], list[Row]]) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("many") / "graph", SCHEMA)
    nodes, edges = rows
    made.load(
        [{"type": "N", "data": node} for node in nodes] + list(_enveloped(edges)), mode="append"
    )
    return made


def _enveloped(edges: list[Row]) -> Iterator[Row]:
    for edge in edges:
        data = {name: edge[name] for name in ("weight", "since")}
        yield {"edge": "E", "from": edge["from"], "to": edge["to"], "data": data}


def ask(graph: og.Graph, text: str) -> list[tuple[Any, ...]]:
    """The same whether columns are at hand already or not."""
    first, second = (graph.query(f"query q() {{ {text} }}").to_dicts() for _ in range(2))
    if "order {" not in text:
        # Rows without an order come as they are found.
        first, second = (sorted(rows, key=repr) for rows in (first, second))
    assert first == second
    return [tuple(row.values()) for row in first]


@pytest.mark.parametrize("order", ["", "order { m, y }"])
def test_edges_are_grouped_by_what_is_computed_of_a_day(
    graph: og.Graph, rows: tuple[list[Row], list[Row]], order: str
) -> None:
    found = ask(
        graph,
        "match { $a: N  $a $e:e $b } return { year($e.since) as y, month($e.since) as m,"
        f" count(*) as c, sum($e.weight) as w }} {order}",
    )
    wanted: dict[Any, list[Row]] = defaultdict(list)
    for edge in rows[1]:
        day = edge["since"]
        wanted[(day and day.year, day and day.month)].append(edge)
    assert len(found) == len(wanted) == 5
    for year, month, count, weight in found:
        group = wanted[(year, month)]
        weights = [edge["weight"] for edge in group if edge["weight"] is not None]
        assert (count, weight) == (len(group), sum(weights))


@pytest.mark.parametrize("direction", ["$a $e:e $b", "$b $e:e $a"])
def test_every_edge_is_told_with_its_own_ends(
    graph: og.Graph, rows: tuple[list[Row], list[Row]], direction: str
) -> None:
    found = ask(
        graph,
        f"match {{ $a: N  {direction}  month($e.since) = 12  $e.weight > 0.0 }}"
        " return { $a.name, $b.name, $e.weight, $e.since }",
    )
    chosen = [
        edge
        for edge in rows[1]
        if edge["since"] and edge["since"].month == 12 and (edge["weight"] or 0) > 0
    ]
    ends = ("from", "to") if direction.startswith("$a") else ("to", "from")
    wanted = [(edge[ends[0]], edge[ends[1]], edge["weight"], edge["since"]) for edge in chosen]
    assert Counter(found) == Counter(wanted)


def test_distinct_values_are_counted_by_group(
    graph: og.Graph, rows: tuple[list[Row], list[Row]]
) -> None:
    found = ask(
        graph,
        "match { $a: N  $a $e:e $b } return { $a.town, count(distinct $b) as nodes,"
        " count(distinct $b.town) as towns, count(distinct $e.@id) as edges,"
        " count(distinct $b.level + 1) as levels, count($b.born) as born }",
    )
    nodes = {node["name"]: node for node in rows[0]}
    by_town: dict[Any, list[Row]] = defaultdict(list)
    for edge in rows[1]:
        by_town[nodes[edge["from"]]["town"]].append(edge)
    wanted = {
        (
            town,
            len({edge["to"] for edge in group}),
            len({nodes[edge["to"]]["town"] for edge in group} - {None}),
            len(group),
            len({nodes[edge["to"]]["level"] for edge in group} - {None}),
            sum(nodes[edge["to"]]["born"] is not None for edge in group),
        )
        for town, group in by_town.items()
    }
    assert set(found) == wanted


@pytest.mark.parametrize("order", ["$a.level desc", "$a.level", "$a.level desc nulls first"])
@pytest.mark.parametrize(
    "cut",
    ["limit 3 per { $a.town }", "limit 5", "limit 2 per { $a.town } limit 4 offset 1"],
)
def test_the_first_of_each_group(
    graph: og.Graph, rows: tuple[list[Row], list[Row]], order: str, cut: str
) -> None:
    found = ask(
        graph,
        f"match {{ $a: N }} return {{ $a.town, $a.name, $a.level }}"
        f" order {{ {order}, $a.name desc }} {cut}",
    )
    nodes = sorted(rows[0], key=lambda node: node["name"], reverse=True)
    is_last = "desc" in order and "nulls first" not in order
    sign = -1 if "desc" in order else 1
    nodes.sort(
        key=lambda node: (
            (node["level"] is None) == is_last,
            sign * (node["level"] or 0),
        )
    )
    if "per" in cut:
        most, seen, kept = int(cut.split()[1]), Counter[Any](), []
        for node in nodes:
            seen[node["town"]] += 1
            if seen[node["town"]] <= most:
                kept.append(node)
        nodes = kept[1:5] if "offset" in cut else kept
    else:
        nodes = nodes[:5]
    assert found == [(node["town"], node["name"], node["level"]) for node in nodes]


def test_nodes_are_joined_by_several_values(
    graph: og.Graph, rows: tuple[list[Row], list[Row]]
) -> None:
    found = ask(
        graph,
        "match { $a: N  $b: N  $a.town = $b.town  $a.level = $b.level  $a.name < $b.name }"
        " return { $a.name, $b.name }",
    )
    wanted = {
        (one["name"], other["name"])
        for one in rows[0]
        for other in rows[0]
        if one["name"] < other["name"]
        and one["town"] == other["town"] is not None
        and one["level"] == other["level"] is not None
    }
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_a_value_of_a_block_without_solutions_is_null(graph: og.Graph) -> None:
    found = ask(
        graph,
        'match { $a: N { name: "n000" } optional { $b: N { name: "n001" }  $b.name = "x" '
        " let $sum = 1 + 1  let $same = 5  let $when = today() } }"
        " return { $sum, $same, $when, $b.name as name }",
    )
    assert found == [(None, None, None, None)]
    found = ask(
        graph,
        'match { $a: N { name: "n000" } optional { $b: N { name: "n001" } let $sum = 1 + 1'
        "  let $same = 5  $sum < $same } } return { $sum, $same, $b.name as name }",
    )
    assert found == [(2, 5, "n001")]


# -- the parts of it ---------------------------------------------------------------------------

INTEGERS = [
    pa.array([3, None, 1, 3, 2], pa.int32()),
    pa.array([2**63 - 1, 2**63 - 3, None, 2**63 - 1], pa.int64()),
    pa.array([-(2**63), None, -(2**63) + 2, -(2**63)], pa.int64()),
    pa.array([2**64 - 1, None, 2**64 - 3, 2**63], pa.uint64()),
    pa.array([2**63 - 1, 2**63 + 1, None], pa.uint64()),
    pa.array([-(2**63), 2**63 - 1], pa.int64()),
    pa.array([None, None], pa.int64()),
    pa.array([FIRST, None, FIRST + timedelta(days=2), FIRST]),
    pa.array([], pa.int32()),
]


@pytest.mark.parametrize("values", INTEGERS, ids=str)
def test_codes_tell_integers_and_days_apart(values: pa.Array) -> None:
    codes = small_codes(values, len(values)).tolist()
    pairs = set(zip(codes, values.to_pylist(), strict=True))
    assert len({code for code, _ in pairs}) == len({value for _, value in pairs}) == len(pairs)
    assert all((code == NULL) == (value is None) for code, value in pairs)
    assert min(codes, default=0) >= 0


def test_groups_are_in_the_order_of_their_first_rows() -> None:
    one = pa.array([5, None, 5, 4, None, 5])
    other = pa.array(["a", "b", "a", "a", "b", None])
    groups = group_rows([one, other], 6)
    assert groups.of_row.tolist() == [0, 1, 0, 2, 1, 3]
    assert groups.first_rows.tolist() == [0, 1, 3, 5]


def test_values_are_sorted_as_numpy_sorts_them() -> None:
    rng = np.random.default_rng(1)
    for largest in (1, 7, 2**40, 2**62):
        values = rng.integers(0, largest, 300)
        assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


@pytest.mark.parametrize("spread", [3, 2**62])
@pytest.mark.parametrize("most", [0, 1, 2, 50])
def test_no_row_is_dropped_that_may_lead(spread: int, most: int) -> None:
    rng = np.random.default_rng(2)
    key, groups = rng.integers(-spread, spread, 200), rng.integers(0, 5, 200)
    kept = set(that_may_lead(key, groups, most).tolist())
    for number in range(200):
        before = int(((groups == groups[number]) & (key < key[number])).sum())
        assert (number in kept) == (before < most)


def test_sums_of_integers_are_exact_on_either_side_of_what_floats_hold() -> None:
    groups = np.array([0, 1, 0, 1])
    for large in (2**30, 2**53 - 1, 2**53 + 1, 2**61):
        values = pa.array([large, 1, 1, None])
        assert aggregate_by("sum", groups, values, 3).to_pylist() == [large + 1, 1, None]


@pytest.mark.parametrize("name", ["year", "month", "week", "weekday", "day_of_year"])
def test_parts_of_days_are_the_same_for_many_and_for_few(name: str) -> None:
    few = [FIRST + timedelta(days=number) for number in range(60)]
    many = [None, *few * 5]

    def parts(days: list[date | None]) -> list[int | None]:
        column = pa.array(days, pa.date32())
        call = Call(name, [column], len(days), ValueType(Scalar.I64), Unbounded())
        return [value.as_py() for value in times.KERNELS[name](call)]

    wanted = {day: parts([day])[0] for day in few}
    assert parts(many) == [None, *(wanted[day] for day in few * 5)]
    assert parts([*few * 5]) == [wanted[day] for day in few * 5]
