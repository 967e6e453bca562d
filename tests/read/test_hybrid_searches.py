"""Searches together with everything else a query can say, and the worked examples of search.

The rows of a case come from the model; here both the model and the engine must give them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.read.plan.physical import Expansion
from omnigraph.read.search import ranking
from tests.lang.fixture_file import Case, load_cases
from tests.read.search_graph import MODEL, make_search_graph, memo, search_data
from tests.read.search_reading import expected_rows, same_rows

FIXTURES = Path(__file__).parent / "fixtures"
HYBRID = load_cases(FIXTURES / "hybrid_searches.txt")
EXAMPLES = load_cases(FIXTURES / "search_examples.txt")
EXAMPLE_SCHEMA = "node Memo { code: String @key  subject: String @index  v: Vector(2) }"
EXAMPLE_DATA = [
    {"type": "Memo", "data": {"code": code, "subject": subject, "v": v}}
    for code, subject, v in (
        ("a", "red fox", [1.0, 0.0]),
        ("b", "blue fox", [0.9, 0.1]),
        ("c", "red hen", [0.0, 1.0]),
    )
]
# The order of the memos is not that of their ids.
DATA = search_data(
    [
        memo("j", "Snow", [0.5, 0.5, 0.5], None, body="Snow on the house"),
        memo("i", "Snow", [0.5, 0.5, 0.5], 1, body="Snow on the red house"),
        memo("h", "", [0.0, 0.0, 0.0], 2),
        memo("g", "red red red", None, 1, body="Runs and runs"),
        memo("f", None, [1.0, 0.0, 0.0], 2, body="Nothing said"),
        memo("e", "A fox in the hen house", [-1.0, 0.0, 0.0], 3, body="The fox and the hen"),
        memo("d", "The hen house", [0.0, 1.0, 0.0], None, body="Hens lay eggs in a red house"),
        memo("c", "Red hens and red foxes", [0.0, 1.0, 0.0], 2),
        memo("b", "A blue fox", [1.0, 0.5, 0.0], 1, body="Blue, and cold"),
        memo("a", "The red fox runs", [1.0, 0.0, 0.0], 3, body="A fox in the snow"),
    ],
    [
        {"name": "oak", "motto": "Red foxes welcome", "w": [1.0, 0.0, 0.0]},
        {"name": "pine", "motto": "No hens", "w": [0.0, 0.0, 1.0]},
        {"name": "teak", "motto": None, "w": None},
    ],
    [
        *(("a", "b"), ("a", "c"), ("b", "c"), ("c", "d"), ("d", "a"), ("e", "d"), ("e", "i")),
        *(("g", "a"), ("i", "j"), ("j", "i"), ("f", "f"), ("a", "b")),
    ],
    [
        *(("a", "oak"), ("b", "oak"), ("c", "pine"), ("d", "pine"), ("d", "oak")),
        *(("i", "teak"), ("j", "teak"), ("g", "pine")),
    ],
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return make_search_graph(tmp_path_factory.mktemp("hybrid") / "graph", DATA)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("examples") / "graph", EXAMPLE_SCHEMA)
    made.load(EXAMPLE_DATA, mode="append")
    return made


def read(case: Case) -> tuple[str, dict[str, Any], list[dict[str, Any]]]:
    """The query of a case, its parameters and its rows."""
    declared = case.sections.get("declared", "").strip()
    source = f"query hybrid({declared}) {{ {case.sections['query']} }}"
    params = json.loads(case.sections.get("params", "{}"))
    rows = case.sections.get("rows", case.sections.get("any order", ""))
    return source, params, list(map(json.loads, rows.splitlines()))


def _in_order(case: Case, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr) if "any order" in case.sections else rows


@pytest.mark.parametrize("case", HYBRID, ids=[case.name for case in HYBRID])
def test_the_model(case: Case) -> None:
    source, params, wanted = read(case)
    found = _in_order(case, expected_rows(MODEL, DATA, source, params))
    assert same_rows(found, _in_order(case, wanted)), found


@pytest.mark.parametrize("expansion", ["csr", "indexed"])
@pytest.mark.parametrize("case", HYBRID, ids=[case.name for case in HYBRID])
def test_hybrid_search(graph: og.Graph, case: Case, expansion: Expansion) -> None:
    source, params, wanted = read(case)
    found = _in_order(case, graph.query(source, params=params, expansion=expansion).rows)
    assert same_rows(found, _in_order(case, wanted)), found


@pytest.mark.parametrize("case", HYBRID, ids=[case.name for case in HYBRID])
def test_a_narrow_first_try_costs_no_row(
    graph: og.Graph, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few nodes are tried at first, the rows are the same."""
    monkeypatch.setattr(ranking, "TRIED", 0)
    monkeypatch.setattr(ranking, "FEWEST", 1)
    monkeypatch.setattr(ranking, "WIDER", 2)
    monkeypatch.setattr("omnigraph.read.search.vectors.DIRECT", 0)
    source, params, wanted = read(case)
    found = _in_order(case, graph.query(source, params=params).rows)
    assert same_rows(found, _in_order(case, wanted)), found


@pytest.mark.parametrize("case", EXAMPLES, ids=[case.name for case in EXAMPLES])
def test_worked_example(examples: og.Graph, case: Case) -> None:
    source, params, wanted = read(case)
    assert same_rows(examples.query(source, params=params).rows, wanted)


def test_every_example_about_search_is_here() -> None:
    assert {case.name.split()[0] for case in EXAMPLES} >= {"37", "38", "39", "40"}
