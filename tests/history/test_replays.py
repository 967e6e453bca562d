"""Reverting and repeating commits, and putting a branch back: each as one commit."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.errors import BadRequest, MergeConflicts, OmniGraphError
from tests import profile
from tests.faults import observed

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""


def content(graph: og.Graph, ref: str = "main") -> list[str]:
    """All entities, without the ids that were generated for edges."""
    found = []
    for line in graph.export(snapshot=ref):
        row = json.loads(line)
        row.get("data", {}).pop("id", None) if "edge" in row else None
        row.pop("id", None)
        found.append(json.dumps(row, sort_keys=True))
    return sorted(found)


def run(graph: og.Graph, text: str, branch: str = "main") -> None:
    graph.mutate(f"query q() {{ {text} }}", branch=branch)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    run(graph, 'insert Person { name: "ann", age: 1 } insert Person { name: "ben", age: 1 }')
    return graph


def test_a_commit_is_undone_beneath_others(graph: og.Graph) -> None:
    run(graph, 'update Person set { age: 2 } where name = "ann"')
    run(graph, 'insert Person { name: "cem" }')
    before = graph.commits.list()[0]
    done = graph.branches.revert("main~1")
    assert done.outcome == "reverted"
    assert done.commit is not None
    assert (done.commit.parent_id, done.commit.merged_parent_id) == (before.id, None)
    assert done.commit.message == f"revert {graph.commits.get('main~2').id}"
    assert [(c.op, c.id) for c in graph.commits.changes("main").changes] == [("update", "ann")]
    assert len(content(graph)) == 3


def test_what_came_since_stands_against_undoing(graph: og.Graph) -> None:
    run(graph, 'update Person set { age: 2 } where name = "ann"')
    run(graph, 'update Person set { age: 3 } where name = "ann"')
    head = graph.commits.list()[0]
    with pytest.raises(MergeConflicts) as refused:
        graph.branches.revert("main~1")
    (conflict,) = refused.value.conflicts
    assert (conflict.entity_id, conflict.property) == ("ann", "age")
    assert (conflict.base, conflict.source, conflict.target) == (2, 1, 3)
    looked = graph.branches.revert("main~1", dry_run=True)
    assert looked.conflicts
    assert graph.commits.list()[0] == head
    done = graph.branches.revert("main~1", resolve="source")
    assert done.commit is not None
    assert '"age": 1' in content(graph)[0]


def test_undoing_what_edges_need_is_refused(graph: og.Graph) -> None:
    run(graph, 'insert Person { name: "cem" }')
    run(graph, 'insert Knows { from: "ann", to: "cem" }')
    with pytest.raises(MergeConflicts, match="Knows"):
        graph.branches.revert("main~1")
    graph.branches.revert("main")
    graph.branches.revert("main~2")
    assert content(graph) == content(graph, "main~4")


def test_a_merge_is_undone_as_a_whole(graph: og.Graph) -> None:
    graph.branches.create("dev")
    run(graph, 'insert Person { name: "cem" }', "dev")
    run(graph, 'delete Person where name = "ben"', "dev")
    run(graph, 'insert Person { name: "dora" }')
    graph.branches.merge("dev")
    graph.branches.revert("main")
    assert content(graph) == content(graph, "main~2")


def test_a_commit_of_another_branch(graph: og.Graph) -> None:
    graph.branches.create("dev")
    run(graph, 'insert Person { name: "cem" }', "dev")
    graph.mutate(
        'query q() { update Person set { age: 9 } where name = "ann" }',
        branch="dev",
        message="nine",
    )
    done = graph.branches.cherry_pick("dev")
    assert (done.outcome, done.commit and done.commit.message) == ("picked", "nine")
    assert "cem" not in "".join(content(graph))
    assert '"age": 9' in "".join(content(graph))
    again = graph.branches.cherry_pick("dev")
    assert (again.outcome, again.commit) == ("already_up_to_date", None)
    # The merge base is what it was: both sides say the same.
    assert graph.branches.merge("dev").outcome == "merged"
    assert content(graph) == content(graph, "dev")


def test_a_branch_is_put_back_with_its_schema(graph: og.Graph) -> None:
    old = graph.schema
    graph.apply_schema(
        SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")  city: String?')
    )
    run(graph, 'insert Person { name: "cem", city: "Rome" }')
    done = graph.branches.reset("main", "main~2")
    assert done.outcome == "reset"
    assert graph.schema == old
    assert (Path(str(graph.location.uri).removeprefix("file://")) / "_schema.pg").read_text() == old
    assert content(graph) == content(graph, "main~3")
    assert len(graph.commits.list()) == 5
    graph.branches.reset("main", "main~1")
    assert "Rome" in "".join(content(graph))
    assert graph.branches.reset("main", "main").commit is None
    assert not og.verify(graph.location.uri.removeprefix("file://"), deep=True).damage


def test_a_branch_that_is_put_back_has_nothing_of_what_came_meanwhile(graph: og.Graph) -> None:
    """Also in tables that were what they had been."""
    graph.apply_schema(SCHEMA + "node Town { name: String @key }")
    run(graph, 'update Person set { age: 2 } where name = "ann"')
    other = og.open(str(graph.location))

    def meanwhile() -> None:
        run(other, 'insert Town { name: "Rome" }')

    with observed("publish_ready", meanwhile) as fault:
        graph.branches.reset("main", "main~1")
    assert fault.fired == 1
    assert content(graph) == content(graph, "main~3")
    assert len(graph.commits.list()) == 6


def test_what_cannot_be_replayed(graph: og.Graph) -> None:
    first = graph.commits.list()[-1]
    for replayed in (graph.branches.revert, graph.branches.cherry_pick):
        with pytest.raises(BadRequest, match="there is nothing before it"):
            replayed(first.id)
    run(graph, 'insert Person { name: "cem" }')
    graph.cleanup(keep=1, grace=timedelta(0))
    with pytest.raises(OmniGraphError, match="reclaimed"):
        graph.branches.revert("main")
    with pytest.raises(OmniGraphError, match="reclaimed"):
        graph.branches.reset("main", "main~1")
    assert len(graph.commits.list()) == 3


def test_once_under_a_run_id(graph: og.Graph) -> None:
    run(graph, 'insert Person { name: "cem" }')
    undone = graph.commits.list()[0].id
    first = graph.branches.revert(undone, run_id="r")
    again = graph.branches.revert(undone, run_id="r")
    assert first.commit == again.commit
    assert again.repeats_run
    assert len(graph.commits.list()) == 4


STEPS: list[Callable[[int], str]] = [
    lambda n: f'insert Person {{ name: "p{n % 5}", age: {n} }}',
    lambda n: f'delete Person where name = "p{n % 5}"',
    lambda n: f"update Person set {{ age: {n} }} where age < {n}",  # noqa: S608 - no SQL
    lambda n: f'insert Knows {{ from: "ann", to: "ben", since: {n} }}',
    lambda n: f"delete Knows where since < {n}",
]


@pytest.mark.slow
@profile.dear
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), min_size=1, max_size=6))
def test_laws(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Callable[[int], str], int]]
) -> None:
    """Undoing the newest commit, putting back, and repeating from the same start."""
    graph = og.init(tmp_path_factory.mktemp("laws") / "g.omni", SCHEMA)
    run(graph, 'insert Person { name: "ann", age: 1 } insert Person { name: "ben", age: 1 }')
    for step, number in steps:
        run(graph, step(number))
    head, *earlier = graph.commits.list()
    graph.branches.create("undone")
    graph.branches.revert(head.id, "undone")
    assert content(graph, "undone") == content(graph, earlier[0].id)
    graph.branches.create("again", earlier[0].id)
    if head.parent_id is not None:
        graph.branches.cherry_pick(head.id, "again")
        assert content(graph, "again") == content(graph, head.id)
    for commit in earlier[:-1]:
        graph.branches.reset("undone", commit.id)
        assert content(graph, "undone") == content(graph, commit.id)
        assert not list(graph.diff("undone", commit.id))
    assert content(graph) == content(graph, head.id)
