"""A writer that comes too late leaves a version of a branch that is gone: nobody trips over it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound
from tests.manifest.graphs import request

INSERT = "query q($n: String) { insert Person { name: $n } }"
PEOPLE = "query q() { match { $p: Person } return { $p.name } }"


def test_a_branch_that_is_gone_but_for_a_late_version(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph", "node Person { name: String @key }")
    graph.branches.create("dev")
    graph.mutate(INSERT, params={"n": "a"}, branch="dev")
    branch_id = graph.manifest.branch_id("dev")
    place = tmp_path / "graph" / "__manifest" / branch_id
    late = og.open(tmp_path / "graph").manifest
    captured = late.view("dev")
    other = og.open(tmp_path / "graph")
    other.branches.delete("dev")
    other.cleanup(keep=1, grace=timedelta(0))
    assert not place.exists()
    with pytest.raises(BranchNotFound):
        late.publish(branch_id, request(), captured)
    (version,) = (place / "_versions").glob("*.manifest")
    # Its files were taken for garbage just before it was committed.
    for file in (place / "data").iterdir():
        file.unlink()
    for handle in (graph, other, og.open(tmp_path / "graph")):
        with pytest.raises(BranchNotFound):
            handle.mutate(INSERT, params={"n": "b"}, branch="dev")
        with pytest.raises(BranchNotFound):
            list(handle.export(branch="dev"))
    graph.branches.create("dev")
    graph.mutate(INSERT, params={"n": "c"}, branch="dev")
    graph.cleanup(keep=1, grace=timedelta(0))
    assert not version.exists()


def test_a_branch_that_is_gone_but_for_a_state_that_merges_need(tmp_path: Path) -> None:
    """Its end stays with that state: else there would be room for a commit right behind it."""
    graph = og.init(tmp_path / "graph", "node Person { name: String @key }")
    graph.branches.create("dev")
    graph.branches.create("side")
    graph.mutate(INSERT, params={"n": "a"}, branch="dev")
    late = og.open(tmp_path / "graph")
    assert len(late.query(PEOPLE, branch="dev")) == 1
    graph.branches.merge("dev")
    graph.mutate(INSERT, params={"n": "b"}, branch="side")
    graph.branches.merge("dev", into="side", delete_source=True)
    for _ in range(2):
        graph.cleanup(keep=1, grace=timedelta(0))
    with pytest.raises(BranchNotFound):
        late.mutate(INSERT, params={"n": "c"}, branch="dev")
    graph.branches.create("dev")
    late.mutate(INSERT, params={"n": "c"}, branch="dev")
    assert len(graph.query(PEOPLE, branch="dev")) == len(late.query(PEOPLE, branch="dev")) == 2
    graph.branches.merge("side")
    place = tmp_path / "graph" / "__manifest"
    graph.branches.delete("side")
    graph.branches.delete("dev")
    graph.cleanup(keep=1, grace=timedelta(0))
    assert [one.name for one in place.iterdir()] == ["main"]
