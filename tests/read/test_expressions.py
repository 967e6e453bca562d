"""Expressions in every place of a query, whichever way hops are made."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.lang.fixture_file import Case, load_cases
from tests.pilot_graph import DATA, SCHEMA
from tests.read.examples import check_example

CASES = load_cases(Path(__file__).parent / "fixtures" / "expressions.txt")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("expressions") / "graph", SCHEMA)
    made.load(DATA, mode="append")
    return made


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_expression(graph: og.Graph, case: Case) -> None:
    check_example(graph, case, "auto")


def test_what_storage_decides_of_a_conjunction_is_pushed(graph: og.Graph) -> None:
    text = """query q($x: I32) {
        match { $p: Pilot $x + 1 < $p.hours and length($p.name) = 3 and not ($p.hours = 7) }
        return { $p.name }
    }"""
    (scan, _) = graph.explain(text, params={"x": 3}).operators
    assert scan.detail.endswith(
        "where $p.hours > $x:I32 + 1 and length($p.name) = 3 and $p.hours != 7"
    )


@pytest.mark.slow
def test_many_terms_are_one_expression(graph: og.Graph) -> None:
    total = " + ".join(["1"] * 10_000)
    either = " or ".join(f"$p.hours = {number}" for number in range(10_000))
    text = f"query q() {{ match {{ $p: Pilot {either} }} return {{ $p.name, {total} as n }} }}"
    found = graph.query(text)
    assert {row["p.name"] for row in found.rows} == {"Ann", "Ben", "Cat"}
    assert {row["n"] for row in found.rows} == {10_000}


def test_deep_parentheses_are_refused(graph: og.Graph) -> None:
    deep = "(" * 2_000 + "1" + ")" * 2_000
    with pytest.raises(og.errors.ParseError, match="nests deeper"):
        graph.query(f"query q() {{ match {{ $p: Pilot }} return {{ {deep} as n }} }}")
