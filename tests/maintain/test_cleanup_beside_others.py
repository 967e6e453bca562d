"""Cleanup beside writers, readers and other cleanups, dead and alive."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.reports import CleanupReport
from omnigraph.manifest.changes import AdvanceTable, CommitIntent, PublishRequest
from omnigraph.storage import faults, headlog
from omnigraph.storage.objects import ControlObjects
from omnigraph.storage.staging import insert as stage_insert
from omnigraph.storage.staging import write_rows
from omnigraph.write.intents import Intent, IntentTable, LiveIntent, microseconds_now
from omnigraph.write.sweep import sweep
from tests.maintain.cleaning import (
    HOUR,
    NO_GRACE,
    SCHEMA,
    age,
    change,
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
    other.cleanup(1)


def test_a_write_that_is_overtaken_by_commits_and_a_cleanup(graph: og.Graph, root: Path) -> None:
    for number in range(3):
        mutate(graph, f'insert Person {{ name: "old", age: {number} }}')
    age(root)
    with overtaken(graph, "changes_checked", overtake):
        insert(graph, "late")
    assert people(reopened(graph)) == ["first rival", "late", "old", "second rival"]
    assert [commit.manifest_version for commit in graph.commits.list()] == [7, 6, 5, 4, 3, 2, 1]


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


def test_even_what_was_staged_long_ago_stays_when_it_is_published_in_time(
    graph: og.Graph, root: Path
) -> None:
    insert(graph, "ann")
    found = graph.snapshot().tables[PERSON]
    pin = stage_insert(table_of(graph, PERSON), pa.table({"id": ["late"], "name": ["late"]}))
    age(root)
    advance = AdvanceTable(found.identity, found.version, pin)
    request = PublishRequest(CommitIntent.mint(), (advance,))
    with overtaken(graph, "cleanup_traced", lambda other: other.manifest.publish("main", request)):
        graph.cleanup(1)
    assert people(reopened(graph)) == ["ann", "late"]


@pytest.mark.parametrize("recent", [NO_GRACE, headlog.RECENT])
def test_an_old_handle_cannot_publish_across_a_gap(
    graph: og.Graph, root: Path, monkeypatch: pytest.MonkeyPatch, recent: timedelta
) -> None:
    insert(graph, "ann")
    sleeper = og.open(root)
    sleeper.snapshot()
    names = [f"p{number}" for number in range(4)]
    for name in names:
        insert(graph, name)
    # Without the versions in between, storage sees no conflict: the handle itself has to ask.
    if recent == NO_GRACE:
        clean(graph)
    monkeypatch.setattr(headlog, "RECENT", recent)
    sleeper.manifest.publish("main", PublishRequest(CommitIntent.mint("sleeper")))
    assert people(reopened(graph)) == ["ann", *names]
    assert [commit.manifest_version for commit in graph.commits.list()] == [7, 6, 5, 4, 3, 2, 1]


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
    assert clean(graph).old_versions_removed == 2
    assert stored(root) == reachable(root)


def test_where_commits_cannot_be_removed_their_tables_stay(graph: og.Graph, root: Path) -> None:
    commits = [insert(graph, f"p{number}") for number in range(3)]
    before = stored(root)
    with (
        faults.armed("cleanup_deleting", matching="__manifest"),
        pytest.raises(errors.StorageError, match="injected"),
    ):
        graph.cleanup(1, grace=NO_GRACE)
    assert stored(root) == before
    for commit in commits:
        assert shown(reopened(graph), commit)


# -- long writes -------------------------------------------------------------------


def begin(graph: og.Graph, started: int, *, name: bool = True) -> LiveIntent:
    """A load that has staged a person, and names the file or does not yet."""
    found = graph.snapshot().tables[PERSON]
    intent = Intent.mint(
        "Load", "main", CommitIntent.mint("loader"), [IntentTable.of(found.table, found.version)]
    )
    live = LiveIntent.open(ControlObjects(graph.location), intent, clock=lambda: started)
    written = write_rows(table_of(graph, PERSON), None, pa.table({"id": ["x"], "name": ["x"]}))
    if name:
        live.extend([IntentTable.of(found.table, found.version, written.files)])
    return live


def run(graph: og.Graph, now: int, grace: timedelta = NO_GRACE) -> CleanupReport:
    return cleanup(graph.location, graph.manifest, keep=1, grace=grace, now=now)


@pytest.mark.parametrize("named", [True, False])
def test_a_live_write_keeps_what_it_stages_and_what_it_began_with(
    graph: og.Graph, root: Path, named: bool
) -> None:
    now = microseconds_now()
    first = insert(graph, "ann")
    base = change(graph, 'update Person set { age: 1 } where name = "ann"')
    age(root)  # the write begins long after these
    staging = root / "__staging"
    live = begin(graph, now, name=named)
    for operation in (live.intent.operation_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        (staging / operation).mkdir(parents=True)
        (staging / operation / "x").write_text("?")
    age(staging, 6 * HOUR)
    for name in live.intent.files:
        os.utime(root / name, (0, 0))
    mutate(graph, 'update Person set { age: 2 } where name = "ann"')
    mutate(graph, 'update Person set { age: 3 } where name = "ann"')
    before = stored(root)
    # An hour later by another clock it is still renewed.
    run(graph, now + 59 * MINUTE)
    with pytest.raises(errors.ChangeFeedGap):
        graph.snapshot(commit=first)
    assert len(shown(reopened(graph), base)) == 1
    # What it names stays even if it seems to be older.
    assert set(live.intent.files) <= stored(root)
    assert any(name.startswith("__staging") for name in before - stored(root))
    assert [path.name for path in staging.iterdir()] == [live.intent.operation_id]
    assert stored(root) > reachable(root)
    # Dead and expired: the sweep discards what it staged, the collector the rest.
    assert run(graph, now + 71 * MINUTE).commits_reclaimed == 2
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


@pytest.mark.parametrize(("minutes", "is_kept"), [(69, True), (71, False)])
def test_an_intent_of_a_newer_program_counts_while_it_is_renewed(
    graph: og.Graph, root: Path, minutes: int, is_kept: bool
) -> None:
    now = microseconds_now()
    live = begin(graph, now, name=False)
    file = root / live.intent.name
    file.write_bytes(json.dumps({**json.loads(file.read_bytes()), "schema_version": 99}).encode())
    stray = stored(root) - reachable(root) - {live.intent.name}
    assert len(stray) == 1
    report = run(graph, now + minutes * MINUTE)
    assert "upgrade the program" in report.notices[0]
    assert bool(stray & stored(root)) == is_kept
    assert file.exists()


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
