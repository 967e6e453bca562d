"""Numbers beside floats of 32 bits: the exact number, or the one that the float is printed as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.lang.literals import decimal
from omnigraph.lang.types import Scalar
from omnigraph.read.access import entities
from omnigraph.read.access.column_cache import columns
from omnigraph.rows.numbers import place
from tests.profile import costly
from tests.write.writing import mutate

SCHEMA = """\
node Probe { name: String @key  f: F32?  fs: [F32]?  one: I32? }
node Keyed { f: F32 @key }
edge Next: Probe -> Probe { f: F32? }
"""
STORED = {
    "zero": 0.0,
    "tenth": 0.1,
    "limit": 16777216.0,
    "after": 16777218.0,
    "wide": 10000001024.0,
    "least": 1.401298464324817e-45,
}
TINY = f"0.{'0' * 60}1"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("floats") / "graph", SCHEMA)
    made.load(
        [
            {"type": "Probe", "data": {"name": name, "f": value, "fs": [7.0, value], "one": 1}}
            for name, value in STORED.items()
        ]
        + [{"type": "Probe", "data": {"name": "none"}}]
        + [{"type": "Keyed", "data": {"f": value}} for value in STORED.values()]
        + [
            {"edge": "Next", "from": "none", "to": name, "data": {"f": value}}
            for name, value in STORED.items()
        ],
        mode="append",
    )
    return made


@pytest.fixture(autouse=True, params=["scanned", "read whole"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage decides what it can, or everything is decided in memory."""
    if request.param == "scanned":
        monkeypatch.setattr(entities, "MANY", 0)
        columns.clear()


def names(graph: og.Graph, text: str, params: dict[str, Any] | None = None) -> set[str]:
    return {row["n"] for row in graph.query(text, params=params).rows}


def every_way(graph: og.Graph, op: str, literal: str) -> list[set[str]]:
    """What `f op literal` chooses: in the scan, in memory, on edges, as a parameter."""
    value = float(literal) if "." in literal else int(literal)
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(op, op)
    found = [
        names(graph, f"query q() {{ match {{ $p: Probe $p.f {op} {literal} }} {NAME} }}"),
        names(graph, f"query q() {{ match {{ $p: Probe {literal} {turned} $p.f }} {NAME} }}"),
        names(
            graph,
            "query q() { match { $o: Probe $o $e:next $p "
            f"$e.f {op} {literal} }} return {{ $p.name as n }} }}",
        ),
        names(
            graph,
            f"query q() {{ match {{ $p: Probe min($q.f) {{ $q: Probe $q.name = $p.name }} "
            f"{op} {literal} }} {NAME} }}",
        ),
    ]
    for declared in ("F32", "F64"):
        for test in (f"$p.f {op} $x", f"$x {turned} $p.f"):
            text = f"query q($x: {declared}) {{ match {{ $p: Probe {test} }} {NAME} }}"
            found.append(names(graph, text, {"x": value}))
    if op == "=":
        found += members(graph, literal, value)
    return found


NAME = "return { $p.name as n }"


def members(graph: og.Graph, literal: str, value: float) -> list[set[str]]:
    """The same by way of lists."""
    found = [
        names(graph, f"query q() {{ match {{ $p: Probe {test} }} {NAME} }}")
        for test in (
            f"$p.f in [{literal}]",
            f"$p.f in [{literal}, {literal}, 123.25]",
            f"$p.fs contains {literal}",
        )
    ]
    for declared in ("F32", "F64"):
        for test in ("$p.f in $x", "$x contains $p.f"):
            text = f"query q($x: [{declared}]) {{ match {{ $p: Probe {test} }} {NAME} }}"
            found.append(names(graph, text, {"x": [value, 123.25]}))
    return found


@pytest.mark.parametrize(
    ("op", "literal", "expected"),
    [
        ("=", "16777217", set()),
        ("=", "16777217.0", set()),
        ("=", "16777216", {"limit"}),
        ("=", "16777216.0", {"limit"}),
        ("!=", "16777217", set(STORED)),
        ("!=", "16777217.0", set(STORED)),
        ("<", "16777217", set(STORED) - {"after", "wide"}),
        ("<", "16777217.0", set(STORED) - {"after", "wide"}),
        (">=", "16777217.0", {"after", "wide"}),
        (">", "16777216.0", {"after", "wide"}),
        ("=", TINY, set()),
        (">", TINY, set(STORED) - {"zero"}),
        ("<=", TINY, {"zero"}),
        ("=", f"-{TINY}", set()),
        (">=", f"-{TINY}", set(STORED)),
        ("=", "0", {"zero"}),
        ("=", "-0.0", {"zero"}),
        ("=", "0.1", {"tenth"}),
        ("<=", "0.1", {"zero", "tenth", "least"}),
        (">", "0.1", {"limit", "after", "wide"}),
        ("=", "0.10000000149011612", {"tenth"}),
        ("=", "0.100000001", set()),
        (">", "0.100000001", {"tenth", "limit", "after", "wide"}),
        ("=", "10000001024", {"wide"}),
        ("=", "10000001000.0", {"wide"}),
        ("=", "10000001010", set()),
        (">", "340282346638528859811704183484516925441.0", set()),
        ("<", "34028234663852885981170418348451692544100.0", set(STORED)),
    ],
)
def test_a_number_beside_a_float_of_32_bits(
    graph: og.Graph, op: str, literal: str, expected: set[str]
) -> None:
    if abs(float(literal)) < 1e38:
        assert every_way(graph, op, literal) == [expected] * len(every_way(graph, op, literal))
    else:
        text = f"query q() {{ match {{ $p: Probe $p.f {op} {literal} }} {NAME} }}"
        assert names(graph, text) == expected


def test_a_key_of_32_bits_is_found_by_the_same_rule(graph: og.Graph) -> None:
    def found(literal: str) -> int:
        return len(
            graph.query(
                f"query q() {{ match {{ $k: Keyed {{ f: {literal} }} }} return {{ $k.f }} }}"
            ).rows
        )

    assert [found(text) for text in ("0.1", "16777216", "16777217", "16777217.0", TINY)] == [
        1,
        1,
        0,
        0,
        0,
    ]


def test_the_where_of_a_mutation_has_the_same_rule(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    rows = [{"type": "Probe", "data": {"name": n, "f": v}} for n, v in STORED.items()]
    graph.load(rows, mode="append")

    def changed(where: str) -> int:
        statement = "update Probe set { one: 2 } where "
        return mutate(graph, statement + where).affected_nodes

    assert changed("f = 16777217.0") == 0
    assert changed(f"f = {TINY}") == 0
    assert changed("f in [0.1, 16777217]") == 1
    assert changed("f < 16777217.0") == 4


@costly
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-3, 3))
def test_a_float_is_found_by_what_it_holds_and_by_what_it_is_printed_as(
    held: float, away: int
) -> None:
    narrow = np.float32(held)
    assert place(float(narrow), Scalar.F32).side == 0
    assert place(float(str(narrow)), Scalar.F32) == place(float(narrow), Scalar.F32)
    number = float(narrow)
    for _ in range(abs(away)):
        number = float(np.nextafter(number, np.inf if away > 0 else -np.inf))
    placed = place(number, Scalar.F32)
    if placed.side:
        assert (number > placed.nearest) == (placed.side > 0)
    else:
        assert number in (placed.nearest, float(str(np.float32(placed.nearest))))
    assert decimal(number)
