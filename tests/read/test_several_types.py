"""Variables that stand for nodes of several types, and edges that are alternatives."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.policy import parse_policy
from omnigraph.read.plan.physical import Expansion
from tests.lang.fixture_file import Case, load_cases
from tests.read.examples import check_example
from tests.read.forum_graph import ROWS, SCHEMA

CASES = load_cases(Path(__file__).parent / "fixtures" / "several_types.txt")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("forum") / "graph", SCHEMA)
    made.load(ROWS, mode="append")
    return made


@pytest.mark.parametrize("expansion", ["auto", "indexed"])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_example(graph: og.Graph, case: Case, expansion: Expansion) -> None:
    check_example(graph, case, expansion)


def test_explain_says_how_each_type_is_found(graph: og.Graph) -> None:
    source = "query q() { match { $m: Message $m.at > 1 $m.title is null } return { $m } }"
    (scan, _) = graph.explain(source).to_json()["operators"]
    assert scan["detail"] == "$m: Message where $m.at > 1 and $m.title is null"
    assert (scan["entities"], scan["access"]) == (5, "whole columns")
    source = 'query q() { match { $t: Tagged { name: "1" } } return { $t } }'
    (scan, _) = graph.explain(source).to_json()["operators"]
    assert scan["access"] == "every row"
    assert scan["in_memory"] == ['$t.name = "1"']


POLICY = """
version: 1
groups: {readers: [ann]}
rules:
  - id: some
    allow: {actors: {group: readers}, actions: [read], types: [Person, Post]}
"""


def test_a_view_knows_the_types_that_are_shown(graph: og.Graph) -> None:
    session = graph.as_actor("ann", parse_policy(POLICY))
    source = "query q() { match { $m: Message } return { $m.@id } order { $m.@id } }"
    assert [row["m.@id"] for row in session.query(source).rows] == ["1", "2"]
