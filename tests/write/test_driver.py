"""The driver and the door: everything a manifest can be asked for, and storage that fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, Conflict, StorageError
from omnigraph.manifest.entries import Registration, TableIdentity
from omnigraph.manifest.publish_request import (
    AdvanceTable,
    PendingCommit,
    PublishRequest,
    RegisterTable,
    RenameTable,
    TableChange,
)
from omnigraph.manifest.publisher import FAILURES
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost, HeadLog
from omnigraph.storage.tables.table import TablePin
from omnigraph.write.publish import door
from omnigraph.write.recovery.sweep import stored_intents
from tests.faults import armed, observed
from tests.write.asking import Asked, ask
from tests.write.writing import mutate, overtaken

SCHEMA = """
node Person {
    name: String @key
}

node Note {
    text: String?
}

edge Knows: Person -> Person
"""
NEW = Registration(TableIdentity(90, 1), "node:New", "nodes/000000000000005a-0000000000000001")
PIN = TablePin(7, "uuid", 0)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    mutate(graph, 'insert Person { name: "Ann" }')
    return graph


def count(graph: og.Graph, asked: Asked) -> int:
    """How often the commit is in the history."""
    commits = og.open(str(graph.location)).commits.list()
    return [commit.id for commit in commits].count(asked.commit.id)


def permanent() -> StorageError:
    return StorageError("no space left on device", kind="permanent")


# -- what can be asked for -----------------------------------------------------------------------


def every_change(graph: og.Graph) -> Asked:
    """A table that comes, one that goes, one with another name and one with another version."""
    shown = graph.snapshot()
    person, knows = (shown.tables[key] for key in ("node:Person", "edge:Knows"))
    changes: tuple[TableChange, ...] = (
        RegisterTable(NEW, PIN),
        RenameTable(person.identity, "node:Human"),
        AdvanceTable(knows.identity, knows.version, PIN),
    )
    schema = replace(shown.schema, source="node Human { name: String @key }")
    return Asked(changes, schema, dropped=("node:Note",))


@pytest.mark.parametrize("is_overtaken", [False, True])
def test_tables_and_schema_change_in_one_commit(graph: og.Graph, *, is_overtaken: bool) -> None:
    asked = every_change(graph)
    before = graph.snapshot()

    def other(them: og.Graph) -> None:
        if is_overtaken:
            them.branches.create("dev")
            mutate(them, 'insert Person { name: "Ben" } insert Note { text: "more" }')

    with overtaken(graph, "table_staged", other):
        commit = ask(graph, asked)
    assert (commit.actor, commit.metadata) == ("asker", {"operation": "asked"})
    shown = graph.snapshot()
    assert shown.commit_id == commit.id
    assert shown.tables.keys() == {"node:Human", "node:New", "edge:Knows"}
    assert shown.schema == asked.schema
    assert shown.tables["node:Human"].identity == before.tables["node:Person"].identity
    assert shown.tables["edge:Knows"].pin == shown.tables["node:New"].pin == PIN
    assert asked.prepared == 1
    assert not stored_intents(graph.manifest.refs.objects).intents


def test_schema_that_changed_is_prepared_for_again(graph: og.Graph) -> None:
    shown = graph.snapshot().schema
    first = Asked(schema=replace(shown, source=f"{shown.source}\n"))
    second = Asked()
    with overtaken(graph, "table_staged", lambda them: ask(them, first)):
        assert ask(graph, second).parent_id == first.commit.id
    assert second.prepared == 2


def test_name_that_is_taken_is_refused(graph: og.Graph) -> None:
    shown = graph.snapshot()
    asked = Asked((RenameTable(shown.tables["node:Note"].identity, "node:Person"),))
    with pytest.raises(Conflict, match="two tables would be called node:Person"):
        ask(graph, asked)
    assert graph.snapshot() == shown


# -- storage that fails --------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
def test_one_failure_is_overcome(graph: og.Graph, point: str) -> None:
    asked = Asked()
    with armed(point, matching="__manifest") as fault:
        assert ask(graph, asked).id == asked.commit.id
    assert fault.fired == 1
    assert graph.snapshot().commit_id == asked.commit.id
    assert count(graph, asked) == 1
    mutate(graph, 'insert Person { name: "Ben" }')


def test_every_acknowledgement_is_lost(graph: og.Graph) -> None:
    asked = Asked()
    with armed("after_commit", matching="__manifest", times=None):
        assert ask(graph, asked).id == asked.commit.id
        mutate(graph, 'insert Person { name: "Ben" }')
    assert count(graph, asked) == 1


def test_no_attempt_gets_through(graph: og.Graph) -> None:
    asked = Asked()
    with (
        armed("before_commit", matching="__manifest", times=None) as fault,
        pytest.raises(StorageError, match="was being published") as caught,
    ):
        ask(graph, asked)
    assert fault.fired == FAILURES
    assert caught.value.kind == "transient"
    assert caught.value.details["commit_id"] == asked.commit.id
    assert caught.value.details["outcome"] == "unknown"
    assert count(graph, asked) == 0


def test_hopeless_failure_is_not_repeated(graph: og.Graph) -> None:
    asked = Asked()
    with (
        armed("before_commit", permanent, matching="__manifest", times=None) as fault,
        pytest.raises(StorageError),
    ):
        ask(graph, asked)
    assert fault.fired == 1
    assert count(graph, asked) == 0


def test_storage_that_stops_answering_leaves_a_doubt(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt is read back and is not there; then nothing can be read any more."""
    asked = Asked()
    manifest = type(graph.manifest)

    def fail(_: object, branch_id: str) -> BranchState:
        raise StorageError(f"cannot read {branch_id}", kind="permanent")

    with (
        monkeypatch.context() as patch,
        armed("before_commit", matching="__manifest"),
        observed("publish_ready", lambda: patch.setattr(manifest, "view_by_id", fail)),
        pytest.raises(StorageError) as caught,
    ):
        ask(graph, asked)
    assert caught.value.details["outcome"] == "unknown"
    assert caught.value.details["commit_id"] == asked.commit.id
    assert count(graph, asked) == 0


def test_attempt_that_comes_through_late_is_found(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage fails, the commit is not there when it is read back, and then it is."""
    asked = Asked()
    real = HeadLog.replace_head
    late: list[object] = []

    def replace_head(log: HeadLog, *args: object, **options: object) -> HeadLog:
        if not late:
            late.append(lambda: real(log, *args, **options))  # type: ignore[arg-type]
            raise StorageError("no answer", kind="transient")
        return real(log, *args, **options)  # type: ignore[arg-type]

    def land(seconds: float) -> None:
        assert seconds >= 0
        if len(late) == 1:
            late.append(late[0]())  # type: ignore[operator]
            # Past the turns that writers of one process take.
            Manifest(graph.location).publish("main", PublishRequest(PendingCommit.mint()))

    monkeypatch.setattr(HeadLog, "replace_head", replace_head)
    monkeypatch.setattr("time.sleep", land)
    assert ask(graph, asked).id == asked.commit.id
    assert (count(graph, asked), asked.prepared) == (1, 1)
    assert len(graph.commits.list()) == 4


@pytest.mark.slow
def test_busy_branch_is_a_conflict(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked()

    def moved(*_: object, **__: object) -> HeadLog:
        raise CompareAndSwapLost

    with monkeypatch.context() as patch:
        patch.setattr(HeadLog, "replace_head", moved)
        with pytest.raises(Conflict, match="too busy") as caught:
            ask(graph, asked)
    assert caught.value.details["attempts"] == door.ATTEMPTS
    assert count(graph, asked) == 0


def test_last_attempt_that_looks_lost_is_read_back(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked()
    real = HeadLog.replace_head
    calls = 0

    def replace_head(log: HeadLog, *args: object, **options: object) -> HeadLog:
        nonlocal calls
        calls += 1
        if calls == door.ATTEMPTS:
            real(log, *args, **options)  # type: ignore[arg-type]
        raise CompareAndSwapLost

    monkeypatch.setattr(door, "ATTEMPTS", 6)
    monkeypatch.setattr(HeadLog, "replace_head", replace_head)
    assert ask(graph, asked).id == asked.commit.id
    assert count(graph, asked) == 1


def test_deleted_branch_is_told(graph: og.Graph) -> None:
    graph.branches.create("dev")
    asked = Asked()
    with (
        overtaken(graph, "publish_ready", lambda them: them.branches.delete("dev")),
        pytest.raises(BranchNotFound),
    ):
        ask(graph, asked, "dev")
