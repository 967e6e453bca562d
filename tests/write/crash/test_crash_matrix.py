"""Killing writers: at every point that they pass, and the graph holds all of a write or none."""

from __future__ import annotations

import shutil
import signal
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

import omnigraph as og
from omnigraph.manifest.root_copies import COPY_NAMES, copies_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.publish.failpoints import FAILPOINTS
from omnigraph.write.recovery.intents import Intent
from omnigraph.write.recovery.sweep import stored_intents, sweep
from tests.faults import STORAGE_POINTS
from tests.maintain.reachable import reachable, stored
from tests.table_writes import stamp_of
from tests.write.crash.crash_child import Passing, crash
from tests.write.crash.rehearsals import Aftermath, Rehearsal, Rehearsals, observe
from tests.write.crash.writers import WRITERS, Family, Writer, collect, make_seed, prepare
from tests.write.processes import check_chain, context
from tests.write.writing import mutate, table_of

pytestmark = [pytest.mark.slow, pytest.mark.soak]
NEXT = 'insert Person { name: "Next", age: 1 }'
FAR_FUTURE = 4_000_000_000_000_000
SWEPT = {
    "sweep-forward": "RolledForward",
    "sweep-back": "RolledBack",
    "sweep-orphan": "OrphanedBranchDiscarded",
}
UNSEEN = {*SWEPT, "cleanup"}
"""What changes nothing that a reader sees."""


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seed") / "graph"
    make_seed(root)
    return root


@pytest.fixture(scope="module")
def rehearsals(seed: Path, tmp_path_factory: pytest.TempPathFactory) -> Rehearsals:
    return Rehearsals(seed, tmp_path_factory.mktemp("rehearsals"))


def kill(root: Path, kind: str, fatal: Passing) -> None:
    """Run a write in a process that dies there."""
    process = context.Process(target=crash, args=(str(root), kind, fatal))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"survived {fatal}"


def left_intents(root: Path) -> tuple[Intent, ...]:
    stored = stored_intents(ControlObjects(Location.parse(str(root))))
    assert not stored.notices
    return stored.intents


@pytest.mark.parametrize("kind", [kind for kind in WRITERS if kind not in UNSEEN])
def test_a_killed_write_happened_or_did_not(
    kind: str,
    seed: Path,
    rehearsals: Rehearsals,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    rehearsal, fatals = rehearsals.of(kind), rehearsals.fatal(kind)
    assert rehearsal.done != rehearsal.overtaken
    prepared = tmp_path / "prepared"
    shutil.copytree(seed, prepared)
    prepare(prepared, kind)
    for number, fatal in enumerate(fatals):
        root = tmp_path / str(number)
        shutil.copytree(prepared, root)
        kill(root, kind, fatal)
        try:
            check_write(root, rehearsal, rehearsal.aftermath(fatal))
        except Exception as error:
            error.add_note(f"{kind} was killed at {fatal}")
            raise
        shutil.rmtree(root)
    record_property("crash matrix, processes killed", len(fatals))


def check_write(root: Path, rehearsal: Rehearsal, left: Aftermath) -> None:
    """Everything that must be so after a writer was killed."""
    writer = WRITERS[rehearsal.kind]
    intents = left_intents(root)
    assert len(intents) == left.has_intent
    before = og.open(root, read_only=True).snapshot()
    graph = og.open(root, actor="next")
    assert graph.snapshot() == before
    assert observe(graph) == left.state
    for name, copy in copies_of(graph.manifest.view().state.schema).items():
        assert (root / name).read_bytes() == copy, "a copy of the schema lags"
    if left.is_published:
        check_commit(graph, writer, intents)
    if left.state != rehearsal.done:
        writer.write(graph)
        if left.is_overtaken or writer.rival is None:
            assert observe(graph).rows == rehearsal.done.rows
    if writer.once:
        once = observe(graph)
        writer.write(graph)
        assert observe(graph) == once
    if writer.deleted is not None:
        check_name_is_free(graph, writer.deleted)
    mutate(graph, NEXT, branch=writer.branch)
    if writer.family in ("merge", "branching"):
        check_next_merge(graph, writer.branch)
    shown = observe(graph)
    assert sum(map(len, shown.rows[writer.branch].values())) == len(
        list(graph.export(branch=writer.branch))
    )
    check_sweep(graph, intents, is_published=left.is_published)
    assert observe(og.open(root)) == shown
    check_chain(root, writer.branch)
    if writer.family == "schema":
        check_litter(root)
        assert observe(og.open(root)) == shown


def check_litter(root: Path) -> None:
    """A cleanup removes all that was left behind, and nothing else."""
    collect(og.open(root))
    found, needed = (
        {name for name in names if name.startswith(("nodes/", "edges/"))}
        for names in (stored(root), reachable(root))
    )
    assert found == needed


def check_name_is_free(graph: og.Graph, name: str) -> None:
    """A deletion that was cut short can be finished, and the name used again."""
    if name in graph.branches.list():
        graph.branches.delete(name)
    assert name not in graph.branches.list()
    graph.branches.create(name)
    assert observe(graph).rows[name] == observe(graph).rows["main"]
    graph.branches.delete(name)


def check_next_merge(graph: og.Graph, branch: str) -> None:
    """A branch can be made, merged and deleted."""
    graph.branches.create("later", branch)
    mutate(graph, 'insert Person { name: "Later" }', branch="later")
    mutate(graph, 'insert Person { name: "Last" }', branch=branch)
    done = graph.branches.merge("later", branch, delete_source=True)
    assert (done.outcome, done.branch_deleted) == ("merged", True)


def check_commit(graph: og.Graph, writer: Writer, intents: tuple[Intent, ...]) -> None:
    """The commit is the one that was planned, and its tables say so."""
    branch = writer.branch
    commit = graph.commits.list(branch)[0]
    assert commit.actor == "crasher"
    assert commit.id == graph.snapshot(branch).commit_id
    assert all(intent.lineage.graph_commit_id == commit.id for intent in intents)
    parent = graph.snapshot(commit=commit.parent_id)
    stamps = [
        stamp_of(table_of(graph, key, branch))
        for key, found in graph.snapshot(branch).tables.items()
        # A new table is at its first version.
        if found.identity in parent.by_identity
        and found.pin != parent.by_identity[found.identity].pin
    ]
    named = {stamp.properties["omnigraph.commit"] for stamp in stamps if stamp is not None}
    # A merge takes a table over as the other branch has it, when only that has changed it.
    assert named <= {commit.id, commit.merged_parent_id}
    assert writer.family in ("merge", "schema") or named == {commit.id}


def check_sweep(graph: og.Graph, intents: tuple[Intent, ...], *, is_published: bool) -> None:
    """Once it has expired, an intent is settled, and the audit says how."""
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    kind = "RolledForward" if is_published else "RolledBack"
    assert [
        (found.recovery_kind, found.graph_commit_id, found.recovery_for_actor, found.operation_id)
        for found in graph.recoveries()
    ] == [
        (kind, intent.lineage.graph_commit_id, "crasher", intent.operation_id) for intent in intents
    ]
    left = set(ControlObjects(graph.location).list())
    for intent in intents:
        assert intent.name not in left
        assert is_published or not left.intersection(intent.files)


@pytest.mark.parametrize("kind", SWEPT)
def test_a_killed_sweep_is_finished_by_the_next(
    kind: str,
    seed: Path,
    rehearsals: Rehearsals,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    rehearsal, fatals = rehearsals.of(kind), rehearsals.fatal(kind)
    assert rehearsal.done == rehearsal.before
    for number, fatal in enumerate(fatals):
        root = tmp_path / str(number)
        shutil.copytree(seed, root)
        prepare(root, kind)
        intents = left_intents(root)
        kill(root, kind, fatal)
        try:
            check_swept(root, rehearsal, intents)
        except Exception as error:
            error.add_note(f"{kind} was killed at {fatal}")
            raise
        shutil.rmtree(root)
    record_property("crash matrix, processes killed", len(fatals))


def check_swept(root: Path, rehearsal: Rehearsal, intents: tuple[Intent, ...]) -> None:
    (intent,) = intents
    graph = og.open(root, actor="next")
    assert observe(graph) == rehearsal.before
    assert (root / "_schema.pg").read_text(encoding="utf-8") == graph.schema
    (recovery,) = graph.recoveries()
    assert recovery.recovery_kind == SWEPT[rehearsal.kind]
    assert recovery.operation_id == intent.operation_id
    assert recovery.recovery_for_actor == "dead"
    left = set(ControlObjects(graph.location).list())
    assert intent.name not in left
    assert (intent.mark in left) == (rehearsal.kind != "sweep-forward")
    if rehearsal.kind == "sweep-orphan":
        collect(graph)
        left = set(ControlObjects(graph.location).list())
    assert rehearsal.kind == "sweep-forward" or not left.intersection(intent.files)
    mutate(graph, NEXT)
    assert list(graph.export())
    assert not sweep(graph.location, graph.manifest, now=FAR_FUTURE).recoveries
    check_chain(root)


def test_a_killed_cleanup_is_finished_by_the_next(
    seed: Path,
    rehearsals: Rehearsals,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    rehearsal, fatals = rehearsals.of("cleanup"), rehearsals.fatal("cleanup")
    assert rehearsal.done == rehearsal.before
    prepared = tmp_path / "prepared"
    shutil.copytree(seed, prepared)
    prepare(prepared, "cleanup")
    finished = tmp_path / "finished"
    shutil.copytree(prepared, finished)
    collect(og.open(finished))
    for number, fatal in enumerate(fatals):
        root = tmp_path / str(number)
        shutil.copytree(prepared, root)
        kill(root, "cleanup", fatal)
        try:
            graph = og.open(root, actor="next")
            assert observe(graph) == rehearsal.before
            collect(graph)
            assert files_of_tables(root) == files_of_tables(finished)
            mutate(graph, NEXT)
            graph.branches.merge("dev")
            assert list(graph.export())
            check_chain(root)
        except Exception as error:
            error.add_note(f"a cleanup was killed at {fatal}")
            raise
        shutil.rmtree(root)
    record_property("crash matrix, processes killed", len(fatals))


def files_of_tables(root: Path) -> set[str]:
    found = [path for place in ("nodes", "edges") for path in (root / place).rglob("*")]
    return {path.relative_to(root).as_posix() for path in found if path.is_file()}


def test_every_point_is_tested(
    rehearsals: Rehearsals, record_property: Callable[[str, object], None]
) -> None:
    targets: dict[str, set[str]] = defaultdict(set)
    families: dict[str, set[str]] = defaultdict(set)
    for kind, writer in WRITERS.items():
        assert rehearsals.fatal(kind), f"no {kind} is killed"
        for passing in rehearsals.fatal(kind):
            targets[passing.point].add(passing.target)
            families[passing.point].add(writer.family)
    assert set(targets) == {*FAILPOINTS, *STORAGE_POINTS}
    for point in ("before_commit", "after_commit"):
        assert len(targets[point] - {"manifest", "audit"}) >= 4, "every table is committed to"
        assert targets[point] >= {"manifest", "audit"}
    for point in ("before_put", "after_put"):
        # Whether storage creates an object only once is probed once in the life of a process. A
        # cleanup says beside the versions of a manifest that some of them may go.
        objects = {"intent", "names", "run", "manifest", *COPY_NAMES}
        assert targets[point] - {"probe"} == objects
    writers = set(get_args(Family)) - {"sweep", "cleanup", "branching"}
    for point in ("txn_captured", "changes_built", "changes_checked"):
        assert families[point] == writers
    for point in ("table_staged", "publish_ready", "published"):
        assert families[point] == writers
    assert families["rows_written"] == writers - {"schema"}
    for point in ("tables_created", "columns_written", "copies_lagging"):
        assert "schema" in families[point]
    record_property("crash matrix, points", len(targets))
    record_property("crash matrix, kinds of writers", len(WRITERS))
    cases = sum(len(rehearsals.of(kind).cases) for kind in WRITERS)
    record_property("crash matrix, cases", cases)
