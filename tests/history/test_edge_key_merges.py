"""Merging edges with a key: who adds the same edge on two branches has added one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import omnigraph as og
from tests.history.merging import (
    Line,
    kinds,
    merged_as_foretold,
    node,
    put,
    refused,
    rows_of,
    run,
    told,
)

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { note: String?  weight: I32 @default(1)  @key(src, dst) }
edge Met: Person -> Person @card(0..2) { year: I32  why: String?  @key(src, dst, year) }
edge Likes: Person -> Person { since: I32? }
"""
ANN_BEN, ANN_CAT, MET = '["Ann","Ben"]', '["Ann","Cat"]', '["Ann","Ben","2020"]'


def knows(source: str, target: str, **data: object) -> Line:
    return {"edge": "Knows", "from": source, "to": target, "data": data}


def met(source: str, target: str, year: int, **data: object) -> Line:
    return {"edge": "Met", "from": source, "to": target, "data": {"year": year, **data}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "graph"
    graph = og.init(place, SCHEMA)
    put(graph, "main", *(node("Person", name) for name in ("Ann", "Ben", "Cat")))
    put(graph, "main", knows("Ann", "Ben", note="old"), met("Ann", "Ben", 2020))
    graph.branches.create("s", "main")
    return place


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(made, tmp_path / "graph")
    return og.open(tmp_path / "graph")


def test_the_same_edge_on_both_sides_is_one(graph: og.Graph) -> None:
    """Also where each side has another way to it."""
    run(graph, "s", 'create Knows { from: "Ann" to: "Cat" note: "n" }')
    put(graph, "main", knows("Ann", "Cat", note="n", weight=1))
    put(graph, "s", {"edge": "Likes", "from": "Ann", "to": "Cat", "data": {}})
    put(graph, "main", {"edge": "Likes", "from": "Ann", "to": "Cat", "data": {}})
    merged_as_foretold(graph, "s")
    expected = {"from": "Ann", "to": "Cat", "note": "n", "weight": 1}
    assert rows_of(graph, "Knows")[ANN_CAT] == expected
    assert len(rows_of(graph, "Knows")) == 2
    assert len(rows_of(graph, "Likes")) == 2, "without a key two edges were added"
    # And back: both have the same then.
    graph.branches.merge("main", "s")
    assert rows_of(graph, "Knows", "s") == rows_of(graph, "Knows")


def test_edges_that_differ_conflict(graph: og.Graph) -> None:
    put(graph, "s", knows("Ann", "Cat", note="theirs"), met("Cat", "Ann", 1, why="x"))
    put(graph, "main", knows("Ann", "Cat", note="ours"), met("Cat", "Ann", 2, why="y"))
    theirs = {"note": "theirs", "weight": 1}
    assert [found[:4] for found in told(refused(graph, "s"))] == [
        ("divergent_insert", "Knows", ANN_CAT, None)
    ]
    merged_as_foretold(graph, "s", resolve={f"Knows:{ANN_CAT}": "source"})
    assert rows_of(graph, "Knows")[ANN_CAT] == {"from": "Ann", "to": "Cat", **theirs}
    assert sorted(rows_of(graph, "Met")) == [MET, '["Cat","Ann","1"]', '["Cat","Ann","2"]']


@pytest.mark.parametrize("deleting", ["s", "main"])
def test_a_deleted_edge_stays_deleted(graph: og.Graph, deleting: str) -> None:
    other = "main" if deleting == "s" else "s"
    run(graph, deleting, 'delete Knows where from = "Ann"')
    # The other side did something else, and even wrote the edge as it was.
    put(graph, other, knows("Ben", "Cat"), knows("Ann", "Ben", note="old"))
    merged_as_foretold(graph, "s")
    assert list(rows_of(graph, "Knows")) == ['["Ben","Cat"]']


def test_a_deleted_edge_that_the_other_side_changed_conflicts(graph: og.Graph) -> None:
    run(graph, "s", 'delete Knows where from = "Ann"')
    run(graph, "main", 'upsert Knows { from: "Ann" to: "Ben" note: "new" }')
    assert kinds(refused(graph, "s")) == [("delete_vs_update", "Knows", ANN_BEN)]


def test_an_edge_that_went_and_came_again_is_the_same(graph: og.Graph) -> None:
    run(graph, "s", 'delete Knows where from = "Ann"')
    run(graph, "s", 'create Knows { from: "Ann" to: "Ben" note: "old" weight: 7 }')
    run(graph, "main", 'upsert Knows { from: "Ann" to: "Ben" note: "new" }')
    merged_as_foretold(graph, "s")
    assert rows_of(graph, "Knows")[ANN_BEN] == {
        "from": "Ann",
        "to": "Ben",
        "note": "new",
        "weight": 7,
    }


def test_both_change_the_edge(graph: og.Graph) -> None:
    put(graph, "s", knows("Ann", "Ben", note="theirs"))
    run(graph, "main", 'update Knows set { note: "ours" } where from = "Ann"')
    assert told(refused(graph, "s")) == [
        ("divergent_update", "Knows", ANN_BEN, "note", "old", "theirs", "ours")
    ]


def test_an_edge_of_both_sides_counts_once(graph: og.Graph) -> None:
    put(graph, "s", met("Ann", "Cat", 1))
    put(graph, "main", met("Ann", "Cat", 1))
    merged_as_foretold(graph, "s")
    assert len(rows_of(graph, "Met")) == 2
    graph.branches.create("t", "main")
    run(graph, "t", 'delete Met where year = 1 create Met { from: "Ann" to: "Cat" year: 2 }')
    run(graph, "main", 'delete Met where year = 1 create Met { from: "Ann" to: "Cat" year: 3 }')
    assert kinds(refused(graph, "t")) == [("cardinality_violation", "Met", "Ann")]


def test_an_edge_whose_end_the_other_side_deleted(graph: og.Graph) -> None:
    put(graph, "s", knows("Ann", "Cat"))
    run(graph, "main", 'delete Person where name = "Cat"')
    assert kinds(refused(graph, "s")) == [("orphan_edge", "Knows", ANN_CAT)]


def test_the_feed_names_edges_by_their_keys(graph: og.Graph) -> None:
    *lines, handshake = map(json.loads, graph.changes.baseline(types=["Knows"]))
    assert [line["data"]["id"] for line in lines] == [ANN_BEN]
    run(graph, "s", 'create Knows { from: "Ann" to: "Cat" }', 'delete Knows where to = "Ben"')
    graph.branches.merge("s")
    page = graph.changes.poll(types=["Knows"], cursor=handshake["baseline"]["resume_cursor"])
    changes = [change for block in page.blocks for change in block.changes]
    assert sorted((change.op, change.id) for change in changes) == [
        ("delete", ANN_BEN),
        ("insert", ANN_CAT),
    ]
