"""Cleanup beside writers, readers and other cleanups, dead and alive."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import ID
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.reports import CleanupReport
from omnigraph.manifest.branches import Oldest, begin_epoch
from omnigraph.manifest.publish_request import PendingCommit, PublishRequest
from omnigraph.manifest.snapshot import BranchState
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.tables.write_rows import write_rows
from omnigraph.write.recovery.intents import Intent, IntentTable, LiveIntent
from omnigraph.write.recovery.sweep import sweep
from tests import faults
from tests.maintain.cleaning import (
    NO_GRACE,
    SCHEMA,
    clean,
    insert,
    people,
    reopened,
    shown,
)
from tests.maintain.reachable import reachable, stored
from tests.write.writing import mutate, overtaken, table_of

MINUTE = 60_000_000
PERSON = "node:Person"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    return og.init(root, SCHEMA)


# -- writers -----------------------------------------------------------------------


def overtake(other: og.Graph) -> None:
    """Two commits and a cleanup of another process."""
    insert(other, "first rival")
    insert(other, "second rival")
    clean(other)


def test_a_write_that_is_overtaken_by_commits_and_a_cleanup(graph: og.Graph) -> None:
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "old", age: {number} }}')
    with overtaken(graph, "changes_checked", overtake):
        insert(graph, "late")
    assert people(reopened(graph)) == ["first rival", "late", "old", "second rival"]
    # A collection is a version of the manifest, and no commit.
    assert [commit.manifest_version for commit in graph.commits.list()] == [8, 6, 5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    "publish",
    [
        lambda other: insert(other, "new"),
        lambda other: other.branches.create("new"),
        lambda other: (other.branches.create("new"), insert(other, "new", "new")),
        lambda other: other.branches.delete("dev"),
        lambda other: other.branches.merge("dev"),
    ],
    ids=["commit", "fork", "commit on a fork", "deletion", "merge"],
)
def test_what_is_published_during_a_cleanup_stays(
    graph: og.Graph, root: Path, publish: Callable[[og.Graph], object]
) -> None:
    graph.branches.create("dev")
    for number in range(3):
        insert(graph, f"d{number}", "dev")
        insert(graph, f"m{number}")
    with overtaken(graph, "cleanup_traced", publish):
        clean(graph)
    found = reopened(graph)
    for branch in found.branches.list():
        assert {"m0", "d0"} & set(people(found, branch))
        insert(graph, f"next on {branch}", branch)
    clean(graph)
    assert stored(root) == reachable(root)


def test_an_old_handle_cannot_publish_across_a_gap(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    sleeper = og.open(root)
    seen = sleeper.manifest.view()
    people_since = [f"p{number}" for number in range(4)]
    for name in people_since:
        insert(graph, name)
    # Without the versions in between, storage sees no conflict.
    clean(graph)
    asked = PublishRequest(PendingCommit.mint("sleeper"))
    with pytest.raises(CompareAndSwapLost):
        sleeper.manifest.publish("main", asked, seen)
    sleeper.manifest.publish("main", asked)
    assert people(reopened(graph)) == ["ann", *people_since]
    commits = graph.commits.list()
    assert [commit.actor for commit in commits] == ["sleeper", *[None] * 6]
    insert(graph, "next")
    assert len(reopened(graph).commits.list()) == 8


def test_handles_of_before_go_on(graph: og.Graph, root: Path) -> None:
    other = og.open(root)
    graph.branches.create("dev")
    for number in range(3):
        insert(graph, f"p{number}")
        insert(other, f"d{number}", "dev")
    clean(graph)
    insert(other, "other")
    insert(graph, "own", "dev")
    other.branches.create("new", "dev")
    graph.branches.delete("new")
    assert people(other) == people(graph) == ["other", "p0", "p1", "p2"]
    assert people(other, "dev") == ["d0", "d1", "d2", "own"]
    assert len(other.commits.list()) == 5


# -- other cleanups ----------------------------------------------------------------


def test_two_cleanups_at_once(graph: og.Graph, root: Path) -> None:
    commits = [insert(graph, f"p{number}") for number in range(5)]
    with overtaken(graph, "cleanup_traced", clean):
        clean(graph, 3)
    assert shown(reopened(graph), commits[-1])
    clean(graph)
    assert stored(root) == reachable(root)


def test_an_error_with_one_table_is_that_table_s_alone(graph: og.Graph, root: Path) -> None:
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "p{number}" }} insert Film {{ title: "f{number}" }}')
    film = graph.snapshot().tables["node:Film"].table.path
    with faults.armed("cleanup_deleting", matching=film):
        report = graph.cleanup(1, grace=NO_GRACE)
    assert list(report.errors) == [film]
    found = {table.type_key: table.old_versions_removed for table in report.tables}
    assert found == {"edge:Knows": 0, "node:Film": 0, PERSON: 2, "__manifest": 3}
    assert clean(graph).old_versions_removed == 3
    assert stored(root) == reachable(root)


def test_where_commits_cannot_be_removed_their_tables_stay(graph: og.Graph, root: Path) -> None:
    commits = [insert(graph, f"p{number}") for number in range(3)]
    before = stored(root)
    with (
        faults.armed("cleanup_deleting", matching="__manifest"),
        pytest.raises(errors.StorageError, match="injected"),
    ):
        graph.cleanup(1, grace=NO_GRACE)
    assert stored(root) >= before
    for commit in commits:
        assert shown(reopened(graph), commit)


# -- long writes -------------------------------------------------------------------


def begin(graph: og.Graph, started: int, *, name: bool = True) -> LiveIntent:
    """A load that has staged a person, and names the file or does not yet."""
    found = graph.snapshot().tables[PERSON]
    intent = Intent.mint(
        "Load", "main", PendingCommit.mint("loader"), [IntentTable.of(found.table, found.version)]
    )
    live = LiveIntent.open(ControlObjects(graph.location), intent, clock=lambda: started)
    written = write_rows(table_of(graph, PERSON), None, pa.table({ID: ["x"], "name": ["x"]}))
    if name:
        live.extend([IntentTable.of(found.table, found.version, written.files)])
    return live


def run(graph: og.Graph, now: int, grace: timedelta = NO_GRACE) -> CleanupReport:
    return cleanup(graph.location, graph.manifest, keep=1, grace=grace, now=now)


@pytest.mark.parametrize("named", [True, False])
def test_of_the_tables_of_a_live_write_nothing_goes(
    graph: og.Graph, root: Path, named: bool
) -> None:
    now = microseconds_now()
    first = insert(graph, "ann")
    mutate(graph, 'insert Film { title: "Up" }')
    staging = root / "__staging"
    live = begin(graph, now, name=named)
    for operation in (live.intent.operation_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        (staging / operation).mkdir(parents=True)
        (staging / operation / "x").write_text("?")
    for number in range(2):
        mutate(graph, f'insert Film {{ title: "Up {number}" }}')
        mutate(graph, f'insert Person {{ name: "ann" age: {number} }}')
    person, film = (graph.snapshot().tables[key].table.path for key in (PERSON, "node:Film"))
    before = stored(root)
    # An hour later by another clock it is still renewed.
    run(graph, now + 59 * MINUTE)
    with pytest.raises(errors.ChangeFeedGap):
        graph.snapshot(commit=first)
    gone = before - stored(root)
    assert not [name for name in gone if name.startswith(person)]
    assert [name for name in gone if name.startswith(film)]
    assert [path.name for path in staging.iterdir()] == [live.intent.operation_id]
    assert stored(root) > reachable(root)
    # Dead and expired: the sweep discards what it staged, the collector the rest.
    run(graph, now + 71 * MINUTE)
    assert stored(root) == reachable(root)
    assert [found.recovery_kind for found in graph.recoveries()] == ["RolledBack"]


def test_a_dry_run_sweeps_nothing(graph: og.Graph, root: Path) -> None:
    live = begin(graph, 1_700_000_000_000_000)
    before = stored(root)
    report = graph.cleanup(1, grace=NO_GRACE, dry_run=True)
    # It counts what the sweep would take.
    assert report.files_removed == 1
    assert stored(root) == before
    clean(graph)
    assert live.intent.name not in stored(root)


def test_an_intent_of_a_newer_program_keeps_all_that_it_may_work_on(
    graph: og.Graph, root: Path
) -> None:
    live = begin(graph, microseconds_now(), name=False)
    file = root / live.intent.name
    file.write_bytes(json.dumps({**json.loads(file.read_bytes()), "schema_version": 99}).encode())
    stray = stored(root) - reachable(root) - {live.intent.name}
    assert len(stray) == 1
    report = clean(graph)
    assert "upgrade the program" in report.notices[0]
    assert stray <= stored(root)
    file.unlink()
    clean(graph)
    assert not stray & stored(root)


def test_other_files_among_the_intents_keep_nothing(graph: og.Graph, root: Path) -> None:
    insert(graph, "ann")
    (root / "__recovery").mkdir(exist_ok=True)
    (root / "__recovery" / "notes.txt").write_text("?")
    report = clean(graph)
    assert report.commits_reclaimed == 1
    assert len(report.notices) == 1


def test_the_story_of_a_write_is_told_even_if_its_commit_was_reclaimed(
    graph: og.Graph, root: Path
) -> None:
    live = begin(graph, 1_700_000_000_000_000)
    lineage = live.intent.lineage
    commit = insert(graph, "ann")
    insert(graph, "bob")
    live.remove()
    clean(graph)
    told = replace(live.intent, lineage=replace(lineage, graph_commit_id=commit))
    (root / live.intent.name).parent.mkdir(exist_ok=True)
    (root / live.intent.name).write_bytes(told.encode())
    (recovery,) = sweep(graph.location, graph.manifest).recoveries
    assert recovery.recovery_kind == "RolledForward"
    assert [(one.from_version, one.to_version) for one in recovery.tables] == [(1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["commit", "epoch"])
def test_a_branch_that_goes_with_its_history_while_it_is_looked_at(
    graph: og.Graph, root: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Its older commits lie in a version of main that nobody else needs."""
    for number in range(40):
        insert(graph, f"p{number}")
    graph.branches.create("dev")
    branch_id = graph.manifest.branch_id("dev")
    assert graph.manifest.view("dev").history, "otherwise this tests nothing"
    for number in range(40):
        insert(graph, f"q{number}")

    def rival() -> None:
        other = og.open(root)
        other.branches.delete("dev")
        clean(other)

    if moment == "commit":
        with faults.observed("after_commit", rival, matching=branch_id):
            clean(graph)
    else:
        rivals = [rival]

        def begun(
            manifest: Manifest, id_: str, oldest: Oldest | None, on: BranchState | None
        ) -> BranchState:
            state = begin_epoch(manifest, id_, oldest, on)
            if id_ == branch_id and rivals:
                rivals.pop()()
            return state

        monkeypatch.setattr("omnigraph.maintain.cleanup.begin_epoch", begun)
        clean(graph)
        assert not rivals
    assert graph.branches.list() == ["main"]
    assert len(people(reopened(graph))) == 80
    clean(graph)
    assert stored(root) == reachable(root)
