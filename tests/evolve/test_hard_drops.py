"""What is dropped for good goes from older commits with the next cleanup, and nothing else does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors

NOW = timedelta(0)
WIDE = "node Person { name: String @key  age: I32? }\nnode Pet { name: String @key }\n"
NARROW = "node Person { name: String @key }\n"
ANN = '{"type":"Person","data":{"name":"Ann","age":30}}\n{"type":"Pet","data":{"name":"Rex"}}'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", WIDE)
    graph.load(ANN, mode="append")
    return graph


def names_of(graph: og.Graph, commit: str) -> list[str]:
    shown = graph.snapshot(commit=commit)
    return sorted(shown.tables)


def test_a_soft_drop_leaves_older_commits_as_they_are(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    graph.apply_schema(NARROW)
    graph.cleanup(keep=10, grace=NOW)
    assert names_of(graph, before) == ["node:Person", "node:Pet"]


def test_a_hard_drop_gives_up_older_commits(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    commit = graph.apply_schema(NARROW, allow_data_loss=True).commit
    assert commit is not None
    graph.cleanup(keep=10, grace=timedelta(hours=1))
    assert names_of(graph, before) == ["node:Person", "node:Pet"]
    graph.cleanup(keep=10, grace=NOW)
    with pytest.raises(errors.ChangeFeedGap, match="reclaimed"):
        graph.snapshot(commit=before)
    assert names_of(graph, commit.id) == ["node:Person"]
    tables = Path(str(graph.location.uri)) / "nodes"
    assert len(list(tables.iterdir())) == 1


def test_another_branch_keeps_what_it_has(graph: og.Graph) -> None:
    graph.branches.create("keeps")
    graph.apply_schema(NARROW, allow_data_loss=True)
    graph.cleanup(keep=10, grace=NOW)
    assert graph.snapshot("keeps").tables["node:Pet"].pinned.count() == 1
    assert [*graph.export(branch="keeps")] == [
        '{"type":"Person","data":{"id":"Ann","age":30,"name":"Ann"}}',
        '{"type":"Pet","data":{"id":"Rex","name":"Rex"}}',
    ]


def test_a_change_that_drops_nothing_gives_up_nothing(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    graph.apply_schema(WIDE.replace("age: I32?", "age: I64?"), allow_data_loss=True)
    graph.cleanup(keep=10, grace=NOW)
    assert names_of(graph, before) == ["node:Person", "node:Pet"]
