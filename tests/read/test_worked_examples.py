"""The worked examples of the query language, whichever way hops are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.read.plan.physical import Expansion
from tests.lang.fixture_file import Case, load_cases
from tests.pilot_graph import DATA, SCHEMA
from tests.read.model import freeze

CASES = load_cases(Path(__file__).parent / "fixtures" / "worked_examples.txt")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("examples") / "graph", SCHEMA)
    made.load(DATA, mode="append")
    return made


@pytest.mark.parametrize("expansion", ["auto", "csr", "indexed"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_worked_example(graph: og.Graph, case: Case, expansion: Expansion) -> None:
    part = case.sections
    declared = part.get("declared", "").strip()
    source = f"query example({declared}) {{ {part['query']} }}"
    params = json.loads(part.get("params", "{}"))
    if "error" in part:
        with pytest.raises(OmniGraphError) as refused:
            graph.query(source, params=params, expansion=expansion)
        assert part["error"].strip() in str(refused.value)
        return
    found = graph.query(source, params=params, expansion=expansion)
    wanted = list(map(json.loads, part.get("rows", part.get("any order", "")).splitlines()))
    assert all(list(row) == found.columns for row in wanted)
    key = repr if "any order" in part else None
    rows, expected = list(map(freeze, found.rows)), list(map(freeze, wanted))
    if key is not None:
        rows, expected = sorted(rows, key=key), sorted(expected, key=key)
    assert rows == expected


def test_every_example_about_reading_is_here() -> None:
    numbers = {case.name.split()[0] for case in CASES}
    assert numbers >= {str(number) for number in (*range(1, 27), 36)}
