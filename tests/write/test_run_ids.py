"""Run ids: a request that is repeated gives the first outcome, in all branches of a graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import PendingCommit, PublishRequest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.meter import measure
from omnigraph.write.publish import run_claims
from omnigraph.write.publish.run_ids import DIRECTORY
from tests.faults import armed, observed
from tests.write.beside import collect
from tests.write.writing import Action, mutate, overtaken

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    born: Date?
}

edge Knows: Person -> Person
"""
INSERT = "query add($name: String, $born: Date?) { insert Person { name: $name, born: $born } }"
OTHERS = 'query others() { update Person set { age: 1 } where name != "Ann" }'
NO_GRACE = timedelta(0)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA, actor="ann")
    mutate(graph, 'insert Person { name: "Ann", age: 30 }')
    return graph


def names(graph: og.Graph, branch: str = "main") -> list[str]:
    found = graph.query("query q() { match { $p: Person } return { $p.name } }", branch=branch)
    return sorted(row["p.name"] for row in found)


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def runs(graph: og.Graph) -> list[str]:
    return ControlObjects(graph.location).list(DIRECTORY)


@contextmanager
def unchanged(graph: og.Graph) -> Iterator[None]:
    """No branch gets a commit, and none comes or goes."""

    def shown() -> dict[str, list[Commit]]:
        found = og.open(str(graph.location), read_only=True)
        return {name: found.commits.list(name) for name in found.branches.list()}

    before = shown()
    yield
    assert shown() == before


def requests(action: Callable[[], object]) -> int:
    with measure() as meter:
        action()
    return meter.total


# -- repeating ------------------------------------------------------------------------------


def test_a_mutation_that_is_repeated_gives_the_first_result(graph: og.Graph) -> None:
    params = {"name": "Bob", "born": date(2000, 1, 2)}
    first = graph.mutate(INSERT, "add", params, run_id="r1")
    assert first.commit is not None
    assert first.commit.metadata["run_id"] == "r1"
    mutate(graph, 'delete Person where name = "Bob"')
    with unchanged(graph):
        again = graph.mutate(INSERT, "add", {**params, "born": "2000-01-02"}, run_id="r1")
    assert (again, again.repeats_run, first.repeats_run) == (first, True, False)
    assert (again.affected_nodes, again.query_name, again.actor) == (1, "add", "ann")


def test_warnings_are_repeated(graph: og.Graph) -> None:
    emptying = 'insert Person { name: "Ann" }'
    first = mutate(graph, emptying, run_id="r1")
    assert [warning.properties for warning in first.warnings] == [("age",)]
    assert mutate(graph, emptying, run_id="r1") == first


def test_another_process_is_told_the_same(graph: og.Graph) -> None:
    first = mutate(graph, 'insert Person { name: "Bob" }', run_id="r1")
    other = og.open(str(graph.location), actor="ben")
    with unchanged(graph):
        assert mutate(other, 'insert Person { name: "Bob" }', run_id="r1") == first


def test_a_repeat_is_answered_before_anything_is_looked_at(graph: og.Graph) -> None:
    graph.branches.create("side")
    head = graph.snapshot("side").commit_id
    options = {"branch": "side", "if_commit": head, "run_id": "r1"}
    first = mutate(graph, 'insert Person { name: "Bob" }', **options)
    # The head is another one by now.
    assert mutate(graph, 'insert Person { name: "Bob" }', **options) == first
    assert mutate(graph, 'insert Person { name: "Bob" }', branch="side", run_id="r1") == first
    graph.branches.delete("side")
    assert mutate(graph, 'insert Person { name: "Bob" }', **options) == first
    graph.branches.create("side")
    with unchanged(graph):
        assert mutate(graph, 'insert Person { name: "Bob" }', **options) == first


OTHER_REQUESTS: dict[str, Action] = {
    "query": lambda graph: mutate(graph, 'insert Person { name: "Cid" }', run_id="r1"),
    "name": lambda graph: graph.mutate(INSERT, None, {"name": "Bob"}, run_id="r1"),
    "params": lambda graph: graph.mutate(INSERT, "add", {"name": "Cid"}, run_id="r1"),
    "branch": lambda graph: graph.mutate(
        INSERT, "add", {"name": "Bob"}, branch="side", run_id="r1"
    ),
    "load": lambda graph: graph.load([person("Cid")], mode="append", run_id="r1"),
    "merge": lambda graph: graph.branches.merge("side", run_id="r1"),
    "missing source": lambda graph: graph.branches.merge("nowhere", run_id="r1"),
}


@pytest.mark.parametrize("other", OTHER_REQUESTS)
def test_an_id_that_another_request_has_used_is_refused(graph: og.Graph, other: str) -> None:
    graph.branches.create("side")
    first = graph.mutate(INSERT, "add", {"name": "Bob"}, run_id="r1")
    assert first.commit is not None
    with unchanged(graph), pytest.raises(errors.Conflict, match=first.commit.id) as refused:
        OTHER_REQUESTS[other](graph)
    assert refused.value.code == "conflict"
    assert refused.value.details == {
        "run_id": "r1",
        "commit_id": first.commit.id,
        "branch": "main",
    }


@pytest.mark.parametrize(("name", "told"), [(" ", "empty"), ("", "empty"), ("é" * 300, "512")])
def test_a_name_that_is_none_is_refused(graph: og.Graph, name: str, told: str) -> None:
    for action in (
        lambda: mutate(graph, 'insert Person { name: "Bob" }', run_id=name),
        lambda: graph.load([person("Bob")], mode="append", run_id=name),
        lambda: graph.branches.merge("side", run_id=name),
    ):
        with unchanged(graph), pytest.raises(errors.BadRequest, match=told):
            action()


def test_what_came_to_nothing_leaves_its_id_free(graph: og.Graph) -> None:
    with pytest.raises(errors.KeyConflict):
        graph.load([person("Ann")], mode="append", run_id="r1")
    with pytest.raises(errors.PreconditionFailed):
        mutate(graph, 'insert Person { name: "Bob" }', if_commit="x", run_id="r1")
    with pytest.raises(errors.NotFound):
        graph.branches.merge("nowhere", run_id="r1")
    # Nobody but Ann is there, so that nothing is to be done: that makes no commit.
    assert graph.mutate(OTHERS, run_id="r1").commit is None
    dry = graph.load([person("Bob")], mode="append", run_id="r1", dry_run=True)
    assert (dry.is_dry_run, dry.repeats_run) == (True, False)
    assert runs(graph) == []
    first = graph.load([person("Bob")], mode="append", run_id="r1")
    assert not first.repeats_run
    with unchanged(graph):
        told = graph.load([person("Bob")], mode="append", run_id="r1", dry_run=True)
    assert (told, told.repeats_run, told.is_dry_run) == (first, True, False)


def test_a_write_that_fails_at_its_end_leaves_its_id_free(graph: og.Graph) -> None:
    other = og.open(str(graph.location))
    head = graph.snapshot().commit_id
    with (
        observed("run_claimed", lambda: mutate_past_the_door(other)),
        pytest.raises(errors.PreconditionFailed),
    ):
        mutate(graph, 'insert Person { name: "Bob" }', if_commit=head, run_id="r1")
    assert runs(graph) == []
    assert not graph.load([person("Bob")], mode="append", run_id="r1").repeats_run


def mutate_past_the_door(graph: og.Graph) -> None:
    """Move the head of main, past the turns that writers of one process take."""
    graph.manifest.publish("main", PublishRequest(PendingCommit.mint("other")))


# -- loads ----------------------------------------------------------------------------------


def table(*names: str) -> pa.Table:
    return pa.table({"name": list(names), "age": pa.array([None] * len(names), pa.int32())})


LINES = json.dumps(person("Bob")) + "\n" + json.dumps(person("Cid")) + "\n"
SAME_INPUT: dict[str, tuple[object, object]] = {
    "lines": (LINES, LINES.encode()),
    "records": (
        [person("Bob"), person("Cid")],
        ({"data": {"name": "Bob"}, "type": "Person"}, person("Cid")),
    ),
    "frame": (
        {"Person": table("Bob", "Cid")},
        {"Person": pa.concat_tables([table("Bob"), table("Cid")])},
    ),
    "slice": ({"Person": table("Bob", "Cid")}, {"Person": table("Ann", "Bob", "Cid").slice(1)}),
    "stream": (BytesIO(LINES.encode()), BytesIO(b"")),
}
OTHER_INPUT: dict[str, tuple[object, object]] = {
    "lines": (LINES, LINES + "\n"),
    "records": ([person("Bob"), person("Cid")], [person("Cid"), person("Bob")]),
    "frame": ({"Person": table("Bob", "Cid")}, {"Person": table("Bob", "Dan")}),
    "kind": (LINES, [person("Bob"), person("Cid")]),
}


@pytest.mark.parametrize("kind", SAME_INPUT)
def test_a_load_that_is_repeated_gives_the_first_result(graph: og.Graph, kind: str) -> None:
    first_input, second_input = SAME_INPUT[kind]
    first = graph.load(first_input, mode="append", run_id="r1")
    assert (first.nodes, first.repeats_run) == ({"Person": 2}, False)
    with unchanged(graph):
        again = graph.load(second_input, mode="append", run_id="r1")
    assert (again, again.repeats_run) == (first, True)


@pytest.mark.parametrize("kind", OTHER_INPUT)
def test_a_load_of_something_else_is_another_request(graph: og.Graph, kind: str) -> None:
    first_input, second_input = OTHER_INPUT[kind]
    graph.load(first_input, mode="append", run_id="r1")
    with unchanged(graph), pytest.raises(errors.Conflict):
        graph.load(second_input, mode="append", run_id="r1")


def test_files_are_known_by_their_names(graph: og.Graph, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(LINES)
    first = graph.load(file, mode="merge", run_id="r1")
    file.unlink()
    with unchanged(graph):
        assert graph.load([str(file)], mode="merge", run_id="r1") == first
        for mode, on_error in (("append", "fail"), ("merge", "skip")):
            with pytest.raises(errors.Conflict):
                graph.load(file, mode=mode, on_error=on_error, run_id="r1")


def test_what_a_load_left_out_and_where_it_went_is_repeated(
    graph: og.Graph, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "mode": "append",
        "branch": "night",
        "from_branch": "main",
        "on_error": "skip",
        "rejects": str(tmp_path / "rejects"),
        "run_id": "r1",
    }
    first = graph.load([person("Ann"), person("Bob")], **options)
    assert (first.branch_created, first.rejects) == (True, {"key_conflict": 1})
    assert first.rejects_file is not None
    with unchanged(graph):
        assert graph.load([person("Ann"), person("Bob")], **options) == first
    graph.branches.delete("night")
    with unchanged(graph):
        # It is not made again, either.
        assert graph.load([person("Ann"), person("Bob")], **options) == first


# -- merges ---------------------------------------------------------------------------------


def diverged(graph: og.Graph) -> None:
    graph.branches.create("side")
    mutate(graph, 'update Person set { age: 41 } where name = "Ann"', branch="side")
    mutate(graph, 'update Person set { age: 42 } where name = "Ann"')


def test_a_merge_that_is_repeated_gives_the_first_result(graph: og.Graph) -> None:
    diverged(graph)
    with pytest.raises(errors.MergeConflicts):
        graph.branches.merge("side", run_id="m1")
    first = graph.branches.merge("side", resolve="source", run_id="m1")
    assert first.commit is not None
    assert [(found.entity_id, side) for found, side in first.resolved] == [("Ann", "source")]
    # What the source is by now does not matter.
    mutate(graph, 'insert Person { name: "Bob" }', branch="side")
    with unchanged(graph):
        again = graph.branches.merge("side", resolve="source", run_id="m1")
        dry = graph.branches.merge("side", resolve="source", run_id="m1", dry_run=True)
    assert (again, again.repeats_run, dry) == (first, True, first)
    graph.branches.delete("side")
    assert graph.branches.merge("side", resolve="source", run_id="m1") == first
    with pytest.raises(errors.Conflict, match=first.commit.id):
        graph.branches.merge("side", resolve="target", run_id="m1")


def test_a_merge_whose_source_went_with_it(graph: og.Graph) -> None:
    diverged(graph)
    options: dict[str, Any] = {"resolve": "source", "delete_source": True, "run_id": "m1"}
    first = graph.branches.merge("side", **options)
    assert first.branch_deleted
    assert graph.branches.merge("side", **options) == first
    # A branch of that name is another one.
    graph.branches.create("side")
    with unchanged(graph):
        assert graph.branches.merge("side", **options) == first
    assert "side" in graph.branches.list()


def test_a_deletion_that_was_cut_short_is_made_up_for(graph: og.Graph) -> None:
    diverged(graph)
    options: dict[str, Any] = {"resolve": "source", "delete_source": True, "run_id": "m1"}
    with armed("branch_deleting"):
        first = graph.branches.merge("side", **options)
    assert first.branch_deleted is False
    again = graph.branches.merge("side", **options)
    assert (again.commit, again.branch_deleted) == (first.commit, True)
    assert graph.branches.list() == ["main"]


def test_commits_that_a_merge_did_not_bring_are_not_deleted(graph: og.Graph) -> None:
    diverged(graph)
    options: dict[str, Any] = {"resolve": "source", "delete_source": True, "run_id": "m1"}
    with armed("branch_deleting"):
        graph.branches.merge("side", **options)
    mutate(graph, 'insert Person { name: "Late" }', branch="side")
    with unchanged(graph):
        again = graph.branches.merge("side", **options)
    assert again.branch_deleted is False
    assert again.branch_delete_error is not None
    assert names(graph, "side") == ["Ann", "Late"]


def test_a_merge_with_nothing_to_do_leaves_its_id_free(graph: og.Graph) -> None:
    graph.branches.create("side")
    assert graph.branches.merge("side", run_id="m1").outcome == "already_up_to_date"
    assert runs(graph) == []
    mutate(graph, 'insert Person { name: "Bob" }', branch="side")
    assert graph.branches.merge("side", run_id="m1").outcome == "fast_forward"


# -- in one process -------------------------------------------------------------------------


RACING: dict[str, Callable[[og.Graph, str], Any]] = {
    "insert": lambda graph, run: mutate(graph, 'insert Person { name: "Bob" }', run_id=run),
    "create": lambda graph, run: mutate(graph, 'create Person { name: "Bob" }', run_id=run),
    "update": lambda graph, run: mutate(
        graph, 'update Person set { age: 7 } where name = "Ann"', run_id=run
    ),
    "append": lambda graph, run: graph.load([person("Bob")], mode="append", run_id=run),
    "overwrite": lambda graph, run: graph.load([person("Bob")], mode="overwrite", run_id=run),
}


@pytest.mark.parametrize("kind", RACING)
@pytest.mark.parametrize("point", ["txn_captured", "changes_checked", "table_staged"])
def test_of_two_at_once_one_is_done_and_both_are_told(
    graph: og.Graph, kind: str, point: str
) -> None:
    action, told = RACING[kind], []
    with overtaken(graph, point, lambda other: told.append(action(other, "r1"))) as fault:
        second = action(graph, "r1")
    assert fault.fired == 1
    assert [*told] == [second]
    assert (second.repeats_run, told[0].repeats_run) == (True, False)
    assert len(graph.commits.list()) == 3


def test_a_merge_that_was_done_meanwhile(graph: og.Graph) -> None:
    diverged(graph)
    told = []

    def merge(other: og.Graph) -> None:
        told.append(other.branches.merge("side", resolve="source", run_id="m1"))

    with overtaken(graph, "changes_checked", merge):
        second = graph.branches.merge("side", resolve="source", run_id="m1")
    assert (told, second.repeats_run) == ([second], True)


def test_a_writer_that_is_alive_is_given_time(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that is young is not revoked at once: mostly its commit is there in no time."""
    monkeypatch.setattr(run_claims, "COURTESY", 60.0)
    graph.branches.create("side")
    other = og.open(str(graph.location))

    def wait(_: float) -> None:
        raise errors.EngineError("it waits")

    def second() -> None:
        with pytest.raises(errors.EngineError, match="it waits"):
            mutate(other, 'insert Person { name: "Bob" }', branch="side", run_id="r1")

    with observed("publish_ready", second) as fault, monkeypatch.context() as patched:
        patched.setattr("omnigraph.write.publish.run_claims._pause", wait)
        first = mutate(graph, 'insert Person { name: "Bob" }', run_id="r1")
    assert fault.fired == 1
    assert not first.repeats_run


# -- what lies about ------------------------------------------------------------------------


def test_claims_go_when_their_commits_do(graph: og.Graph, tmp_path: Path) -> None:
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "p{number}" }}', run_id=f"main {number}")
    graph.branches.create("merged")
    graph.branches.create("lost")
    for branch in ("merged", "lost"):
        mutate(graph, 'insert Person { name: "Bob" }', branch=branch, run_id=branch)
    graph.branches.merge("merged", delete_source=True)
    graph.branches.delete("lost")
    foreign = tmp_path / "graph" / DIRECTORY / "notes" / "a.txt"
    foreign.parent.mkdir()
    foreign.write_text("mine")
    before = runs(graph)
    assert len(before) == 6
    dry = graph.cleanup(1, grace=NO_GRACE, dry_run=True)
    assert runs(graph) == before
    report = graph.cleanup(1, grace=NO_GRACE)
    (row,) = (row for row in report.tables if row.path == DIRECTORY)
    assert row.files_removed == 1
    assert row in dry.tables
    assert any("a.txt" in notice for notice in report.notices)
    assert foreign.read_text() == "mine"
    assert len(runs(graph)) == 5
    # Commits that cannot be read any more are known all the same.
    other = og.open(str(graph.location))
    for number in range(3):
        again = mutate(other, f'insert Person {{ name: "p{number}" }}', run_id=f"main {number}")
        assert again.repeats_run
    merged = mutate(other, 'insert Person { name: "Bob" }', branch="merged", run_id="merged")
    assert merged.repeats_run
    # What is gone with its branch may be done again.
    with pytest.raises(errors.NotFound):
        mutate(other, 'insert Person { name: "Bob" }', branch="lost", run_id="lost")
    assert not mutate(other, 'insert Person { name: "Eve" }', run_id="lost").repeats_run


@pytest.mark.parametrize("point", ["run_claimed", "publish_ready", "before_commit"])
def test_a_cleanup_beside_a_claim(graph: og.Graph, point: str) -> None:
    """It takes the claim away, and the writer makes another before it publishes."""
    matching = "__manifest" if point == "before_commit" else ""
    with (
        observed(point, lambda: collect(graph), matching=matching) as fault,
        observed("run_claimed", list, times=None) as claimed,
    ):
        first = mutate(graph, 'insert Person { name: "Bob" }', run_id="r1")
    assert fault.fired == 1
    assert claimed.fired >= 2
    assert len(runs(graph)) == 1
    with unchanged(graph):
        assert mutate(graph, 'insert Person { name: "Bob" }', run_id="r1") == first


# -- what it costs --------------------------------------------------------------------------


def test_a_run_id_costs_three_requests_and_no_look_at_branches(graph: og.Graph) -> None:
    def insert(name: str, **options: Any) -> Callable[[], object]:
        return lambda: mutate(graph, f'insert Person {{ name: "{name}" }}', **options)

    requests(insert("warm", run_id="warm"))
    plain, named = requests(insert("a")), requests(insert("b", run_id="b"))
    assert named == plain + 3
    again = requests(insert("b", run_id="b"))
    for number in range(20):
        graph.branches.create(f"branch {number}".replace(" ", "-"))
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "n{number}" }}')
    assert requests(insert("c", run_id="c")) == named
    assert requests(insert("b", run_id="b")) <= again
