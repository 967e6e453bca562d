"""A process that writes and reads for long: what it keeps does not grow with what it has done."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.cache_budget import VERSIONS_BEHIND, budget
from tests.folding import fold_often

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person
"""
INSERT = "query q($n: String) { insert Person { name: $n } }"
CONNECT = "query q($n: String) { insert Knows { from: $n, to: $n } }"
ONE = "query q($n: String) { match { $p: Person { name: $n } } return { $p.age } }"
ALL = "query q() { match { $p: Person } return { $p.name, $p.age } }"
FRIENDS = "query q($n: String) { match { $p: Person { name: $n } $p knows $f } return { $f.name } }"
WRITES = 30
TABLES = 2


def entries(graph: og.Graph) -> dict[str, int]:
    return {name: use.entries for name, use in graph.caches.items()}


def work(writer: og.Graph, reader: og.Graph, first: int) -> None:
    for number in range(first, first + WRITES):
        name = {"n": f"p{number}"}
        writer.mutate(INSERT, params=name)
        writer.mutate(CONNECT, params=name)
        for query in (ONE, FRIENDS):
            assert len(reader.query(query, params=name)) == 1
        assert len(reader.query(ALL)) == number + 1


@pytest.mark.slow
def test_what_is_kept_of_versions_does_not_grow_with_their_number(tmp_path: Path) -> None:
    budget.clear()
    writer = og.init(tmp_path / "graph", SCHEMA)
    reader = og.open(tmp_path / "graph")
    work(writer, reader, 0)
    early = entries(writer)
    work(writer, reader, WRITES)
    late = entries(writer)
    # Runs of row ids, small files and the notes of written ones are of files, not of versions.
    of_files = {"fresh_rows", "row_ids", "written_ids"}
    grown = {name: (early[name], late[name]) for name in late if late[name] > early[name] + 2}
    assert grown.keys() <= of_files, grown
    assert late["handles"] <= TABLES * (VERSIONS_BEHIND + 3)
    assert late["lookups"] <= 4 * TABLES * (VERSIONS_BEHIND + 3)


@pytest.mark.slow
def test_what_writes_fold_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version before a fold is shown by no head: nobody will ever ask for it."""
    fold_often(monkeypatch)
    budget.clear()
    graph = og.init(tmp_path / "graph", SCHEMA)
    for number in range(4 * VERSIONS_BEHIND):
        graph.mutate(INSERT, params={"n": f"p{number}"})
    assert graph.caches["handles"].entries <= VERSIONS_BEHIND + 3
    assert graph.caches["layouts"].entries <= VERSIONS_BEHIND + 3


@pytest.mark.slow
def test_a_past_commit_is_still_read_and_a_branch_keeps_what_it_shows(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.mutate(INSERT, params={"n": "first"})
    then = graph.snapshot().commit_id
    graph.branches.create("old")
    for number in range(2 * VERSIONS_BEHIND):
        graph.mutate(INSERT, params={"n": f"p{number}"})
        assert len(graph.query(ALL, branch="old")) == 1
    before = graph.caches["handles"].misses
    for _ in range(5):
        assert len(graph.query(ALL, branch="old")) == 1
        assert len(graph.query(ALL, snapshot=then)) == 1
    assert graph.caches["handles"].misses <= before + 1
