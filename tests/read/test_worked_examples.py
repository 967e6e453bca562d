"""The worked examples of the query language, whichever way hops are made."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.read.plan.physical import Expansion
from tests.lang.fixture_file import Case, load_cases
from tests.pilot_graph import DATA, SCHEMA
from tests.read.examples import check_example

CASES = load_cases(Path(__file__).parent / "fixtures" / "worked_examples.txt")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("examples") / "graph", SCHEMA)
    made.load(DATA, mode="append")
    return made


@pytest.mark.parametrize("expansion", ["auto", "csr", "indexed"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_worked_example(graph: og.Graph, case: Case, expansion: Expansion) -> None:
    check_example(graph, case, expansion)


def test_every_example_about_reading_is_here() -> None:
    numbers = {case.name.split()[0] for case in CASES}
    assert numbers >= {str(number) for number in (*range(1, 27), 36)}
