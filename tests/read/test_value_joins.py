"""Joins by value: the rows that a product and a filter would leave, without the product."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import QueryError
from omnigraph.read.execute import products

SCHEMA = """\
node A { key: String @key  n: I32?  big: U64?  x: F64?  s: F32?  t: String?  d: Date?  ok: Bool? }
node B { key: String @key  n: I64?  big: U64?  x: F64?  s: F32?  t: String?  d: Date?  ok: Bool? }
edge E: A -> B
"""
CHOICES: dict[str, list[Any]] = {
    "n": [None, 0, 1, 2, 7, -1],
    "big": [None, 0, 1, 2**63 - 1, 7],
    "x": [None, 0.0, -0.0, 1.0, 2.5, 0.1, 7.0],
    "s": [None, 0.0, -0.0, 1.0, 0.1, 0.5],
    "t": [None, "", "a", "b", "ä"],
    "d": [None, "2020-01-31", "2021-02-01"],
    "ok": [None, True, False],
}
ON = [
    "$a.n = $b.n",
    "$b.x = $a.x",
    "$a.t = $b.t",
    "$a.d = $b.d  $a.ok = $b.ok",
    "$a.n = $b.x",
    "$a.s = $b.x",
    "$a.s = $b.s",
    "$a.big = $b.n",
    "$a.big = $b.x",
    "$a.n + 1 = $b.n  $a.t != $b.t",
    "$a.t = $b.t  $a.n = $b.n  $a.x = $b.x",
]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    draw = random.Random(5)  # noqa: S311 - no secret: the same rows each time
    made = og.init(tmp_path_factory.mktemp("joins") / "graph", SCHEMA)
    rows = [
        {
            "type": kind,
            "data": {"key": f"{kind}{number}"}
            | {name: draw.choice(values) for name, values in CHOICES.items()},
        }
        for kind in "AB"
        for number in range(40)
    ]
    edges = [{"edge": "E", "from": f"A{n}", "to": f"B{n * 7 % 40}"} for n in range(40)]
    made.load([*rows, *edges], mode="append")
    return made


@pytest.mark.parametrize("on", ON)
def test_a_join_leaves_what_a_filter_leaves(graph: og.Graph, on: str) -> None:
    shown = "return { $a.key as a, $b.key as b } order { $a.key, $b.key } }"
    found = graph.query(f"query q() {{ match {{ $a: A $b: B {on} }} {shown}")
    # What is behind `any` is no join.
    behind = f"any {{ {on} }} or {{ $a.n > 99  $b.n > 99 }}"
    text = f"query q() {{ match {{ $a: A $b: B {behind} }} {shown}"
    assert "joined" not in graph.explain(text).text
    assert found.rows == graph.query(text).rows


def test_a_join_inside_blocks(graph: og.Graph) -> None:
    text = (
        "query q() {{ match {{ $a: A {} {{ $b: B $b.t = $a.t }} }} return {{ count($a) as n }} }}"
    )
    without, some = (graph.query(text.format(word)).rows[0]["n"] for word in ("not", "exists"))
    assert without + some == 40
    assert 0 < some < 40
    joined = graph.query(
        "query q() { match { $a: A optional { $b: B $b.t = $a.t } } "
        "return { $a.key as a, count($b) as n } order { a } }"
    ).rows
    assert sum(row["n"] == 0 for row in joined) == without


def test_what_is_behind_the_joined_node(graph: og.Graph) -> None:
    """The rest of a pattern hangs on the node that is found by value."""
    text = "query q() { match { $b: B $a e $c  $c.t = $b.t } return { $a.key, $b.key, $c.key } }"
    (first, second, third, _) = graph.explain(text).to_json()["operators"]
    assert [first["operator"], second["operator"], third["operator"]] == ["scan", "scan", "expand"]
    assert second["join"] == "by hash"
    pairs = {(row["b.key"], row["c.key"]) for row in graph.query(text).rows}
    assert pairs


def test_explain_tells_a_product(graph: og.Graph) -> None:
    text = "query q() { match { $a: A $b: B $a.n < $b.n } return { $a.key } }"
    assert "cross product: about 1,600 pairs" in graph.explain(text).text
    text = "query q() { match { $a: A $b: B $a.n = $b.n } return { $a.key } }"
    assert "joined by hash" in graph.explain(text).text
    assert "cross product" not in graph.explain(text).text


def test_too_many_pairs_are_refused(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "MAX_PAIRS", 1_000)
    monkeypatch.setattr("omnigraph.read.execute.operators.PIECE", 100)
    text = "query q() {{ match {{ $a: A $b: B $a.n < $b.n }} return {{ {} }} {} }}"
    for shown, tail in (
        ("$a.key", ""),
        ("count($a) as n", "limit 3"),
        ("$a.key", "order { $a.key } limit 3"),
    ):
        with pytest.raises(QueryError, match="1,600 pairs") as refused:
            graph.query(text.format(shown, tail))
        assert refused.value.code == "T31"
        assert refused.value.details["pairs"] == 1_600
    assert len(graph.query(text.format("$a.key", "limit 3"))) == 3


def test_a_join_makes_no_product(tmp_path: Path) -> None:
    """25 million pairs, of which five thousand are equal."""
    graph = og.init(tmp_path / "graph", SCHEMA)
    rows = [
        {"type": kind, "data": {"key": f"{kind}{number}", "n": number}}
        for kind in "AB"
        for number in range(5_000)
    ]
    graph.load(rows, mode="append")
    text = "query q() { match { $a: A $b: B $a.n = $b.n } return { count($a) as n } }"
    assert graph.query(text, max_bytes=16 << 20).rows == [{"n": 5_000}]
