"""The reconciler on whole graphs: what it does, what it leaves, and that it comes to an end."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, BranchNotFound, OmniGraphError, StorageError
from omnigraph.maintain import reconcile, wanted
from omnigraph.maintain.reconcile import Maintainer
from omnigraph.maintain.steps import MaintenanceLimits, MaintenanceReport
from omnigraph.manifest.heads import branch_heads
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery.intents import LIFETIME, Intent, LiveIntent
from omnigraph.write.recovery.sweep import MARGIN
from tests import faults
from tests.film_graph import files
from tests.maintain.cleaning import SCHEMA, insert, people, reopened, shown
from tests.maintain.indexing import book, check_filters, library, load
from tests.write.writing import image, mutate

NO_GRACE = timedelta(0)


def outcomes(report: MaintenanceReport) -> list[tuple[str, str, str | None]]:
    return [(step.work, step.outcome, step.branch) for step in report.steps]


def small_writes(graph: og.Graph, count: int, branch: str = "main", begin: int = 0) -> None:
    for number in range(begin, begin + count):
        insert(graph, f"{branch} {number:03}", branch)


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any two small files are worth merging, however many of them writers have left."""
    monkeypatch.setattr(wanted, "FEW_FRAGMENTS", 1)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """What twenty small writes leave, which is due."""
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    small_writes(graph, 20)
    return graph


@pytest.mark.slow
def test_many_small_writes_come_to_few_files_and_whole_indexes(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    small_writes(graph, 300)
    commits = {commit.id: shown(graph, commit.id) for commit in graph.commits.list()[::40]}
    before = image(graph)
    report = graph.maintain(actor="keeper")
    assert outcomes(report)[0] == ("optimize", "done", "main")
    (done,) = [step for step in report.done if step.work == "optimize"]
    assert (done.types, done.commit_id) == (("node:Person",), graph.commits.list()[0].id)
    assert graph.commits.list()[0].actor == "keeper"
    status = {one.type_key: one for one in graph.status().types}["node:Person"]
    assert status.fragments <= wanted.FEW_FRAGMENTS
    assert (status.indexes_complete, status.indexes_pending, status.due) == (3, 0, ())
    assert image(graph) == before
    again = graph.maintain()
    assert (again.done, again.left, again.failed) == ((), (), ())
    assert graph.commits.list()[0].id == done.commit_id
    assert {commit: shown(graph, commit) for commit in commits} == commits
    assert graph.status().level == "ok"


def test_a_dry_run_changes_nothing_and_says_what_would_be(graph: og.Graph) -> None:
    root = Path(str(graph.location))
    before = files(root)
    reader = og.open(root, read_only=True)
    report = reader.maintain(dry_run=True)
    assert report.dry_run
    assert outcomes(report) == [("optimize", "planned", "main")]
    assert report.steps[0].reason.startswith("node:Person: ")
    assert report.steps[0].reason.endswith(" small fragments")
    assert files(root) == before
    with pytest.raises(BadRequest, match="read-only"):
        reader.maintain()


@pytest.mark.slow
def test_every_branch_that_has_written_something(graph: og.Graph) -> None:
    graph.maintain()
    for name in ("idle", "dev", "busy"):
        graph.branches.create(name)
    small_writes(graph, 17, "dev")
    small_writes(graph, 17, "busy")
    head = graph.commits.list()[0].id
    names = {name: people(graph, name) for name in graph.branches.list()}
    report = graph.maintain()
    assert outcomes(report) == [("optimize", "done", "busy"), ("optimize", "done", "dev")]
    assert {name: people(graph, name) for name in graph.branches.list()} == names
    assert graph.commits.list()[0].id == head
    small_writes(graph, 17, "dev", 20)
    assert outcomes(graph.maintain("main")) == []
    assert outcomes(graph.maintain(" dev")) == [("optimize", "done", "dev")]
    with pytest.raises(BranchNotFound):
        graph.maintain("nowhere")
    with pytest.raises(BadRequest):
        graph.maintain(max_bytes=0)
    with pytest.raises(BadRequest):
        graph.maintain(max_seconds=-1.0)
    with pytest.raises(BadRequest):
        graph.maintain(keep=-1)


@pytest.mark.slow
def test_budgets_leave_the_rest_to_the_next_round(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        mutate(graph, f'insert Film {{ title: "{"long" * 2_000} {number}" }}')
    sizes = {one.type_key: one.live_bytes for one in graph.status().types}
    assert sizes["node:Person"] < sizes["node:Film"]
    tight = graph.maintain(max_bytes=sizes["node:Person"])
    assert outcomes(tight) == [("optimize", "left", "main"), ("optimize", "done", "main")]
    assert (tight.left[0].types, tight.done[0].types) == (("node:Film",), ("node:Person",))
    late = graph.maintain(max_seconds=1e-9)
    assert outcomes(late) == [("optimize", "left", "main"), ("cleanup", "left", None)]
    monkeypatch.setattr(wanted, "PORTION_BYTES", 1)
    small_writes(graph, 17, begin=50)
    assert outcomes(graph.maintain()) == [("optimize", "done", "main")] * 2
    assert graph.maintain().steps == ()


@pytest.mark.slow
def test_no_commit_goes_unless_somebody_says_so(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted, "LEFTOVER_BYTES", 1)
    commits = [commit.id for commit in graph.commits.list()]
    graph.branches.create("gone")
    insert(graph, "on gone", "gone")
    graph.branches.delete("gone")
    report = graph.maintain(grace=NO_GRACE)
    assert outcomes(report) == [("optimize", "done", "main"), ("cleanup", "done", None)]
    assert report.done[1].bytes > 0
    assert graph.status().reclaimable_bytes == 0
    assert graph.status().commits_kept == len(commits) + 1
    assert [len(shown(reopened(graph), commit)) for commit in commits] == [*range(20, -1, -1)]
    planned = graph.maintain(keep=2, grace=NO_GRACE, dry_run=True)
    assert outcomes(planned) == [("cleanup", "planned", None)]
    assert planned.steps[0].reason.startswith("20 commits and ")
    assert outcomes(graph.maintain(keep=2, grace=NO_GRACE)) == [("cleanup", "done", None)]
    assert graph.status().commits_kept == 2
    assert graph.maintain(keep=2, grace=NO_GRACE).steps == ()


def test_little_garbage_is_left_alone(graph: og.Graph) -> None:
    report = graph.maintain(keep=1, grace=NO_GRACE)
    assert outcomes(report) == [("optimize", "done", "main"), ("cleanup", "skipped", None)]
    assert report.steps[1].reason.startswith("21 commits and ")
    assert report.steps[1].reason.endswith(" bytes are not worth it")


def test_dead_writers_are_settled(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    objects = ControlObjects(graph.location)
    LiveIntent.open(objects, Intent.mint("Load", "main", PendingCommit.mint(None)))
    graph.maintain()
    late = microseconds_now() + (LIFETIME + MARGIN) // timedelta(microseconds=1) + 1
    monkeypatch.setattr(reconcile, "microseconds_now", lambda: late)
    assert outcomes(graph.maintain(dry_run=True)) == [("recover", "planned", None)]
    assert outcomes(graph.maintain()) == [("recover", "done", None)]
    assert len(graph.recoveries()) == 1
    assert graph.maintain().steps == ()


def test_the_work_of_another_maintainer_is_left_to_it(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = ControlObjects(graph.location)
    LiveIntent.open(objects, Intent.mint("Optimize", "main", PendingCommit.mint(None)))
    report = graph.maintain()
    assert outcomes(report) == [("optimize", "skipped", "main")]
    assert report.steps[0].reason == reconcile.OTHERS
    # Whoever has begun so long ago and not renewed it is dead, or too slow to wait for.
    later = microseconds_now() + reconcile.CLAIMED // timedelta(microseconds=1)
    monkeypatch.setattr(reconcile, "microseconds_now", lambda: later)
    assert outcomes(graph.maintain()) == [("optimize", "done", "main")]


@pytest.mark.slow
def test_what_goes_wrong_with_a_branch_is_told_and_the_rest_is_done(graph: og.Graph) -> None:
    graph.branches.create("dev")
    small_writes(graph, 17, "dev")

    def full() -> StorageError:
        return StorageError("no space left on device", kind="permanent")

    keeper = Maintainer(graph.location, graph.manifest)
    with faults.armed("before_commit", full, times=1):
        report = keeper.run_once()
    assert outcomes(report) == [("optimize", "failed", "main"), ("optimize", "done", "dev")]
    assert report.failed[0].reason == "no space left on device"
    assert outcomes(graph.maintain()) == [("optimize", "skipped", "main")]
    assert outcomes(keeper.run_once()) == [("optimize", "done", "main")]


@pytest.mark.slow
def test_two_maintainers_beside_writers(tmp_path: Path) -> None:
    root = tmp_path / "library.omni"
    location = library(root, 5).location
    over = Event()

    def write(writer: int) -> None:
        graph = og.open(root)
        for number in range(25):
            load(graph, book(1_000 * (writer + 1) + number))

    def maintain(_: int) -> list[MaintenanceReport]:
        keeper = Maintainer(location, Manifest(location))
        found = [keeper.run_once()]
        while not over.wait(0.05):
            found.append(keeper.run_once())
        # Writers may have been first every time: now only the other keeper can be.
        return [*found, keeper.run_once()]

    graph = og.open(root)
    with ThreadPoolExecutor(4) as pool:
        keepers = [pool.submit(maintain, number) for number in range(2)]
        try:
            for writer in [pool.submit(write, number) for number in range(2)]:
                writer.result()
        finally:
            over.set()
        reports = [report for keeper in keepers for report in keeper.result()]
    assert not [step for report in reports for step in report.failed]
    assert any(report.done for report in reports)
    assert len(image(graph)["node:Book"]) == 55
    check_filters(graph)
    graph.maintain()
    assert graph.maintain().steps == ()
    assert graph.status().level == "ok"


@pytest.mark.slow
def test_on_and_on_until_it_is_stopped(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = Event()
    told: list[MaintenanceReport | OmniGraphError] = []
    pauses: list[float | None] = []

    def wait(seconds: float | None) -> bool:
        """No pause; a server that is away for one round, and more writes after some."""
        pauses.append(seconds)
        rounds = len(pauses)
        if rounds == 3:
            away.append(True)
        if rounds == 4:
            away.clear()
            small_writes(graph, 17, begin=100)
        if rounds == 5:
            stop.set()
        return stop.is_set()

    away: list[bool] = []
    looked = branch_heads

    def heads(manifest: Manifest) -> object:
        if away:
            raise StorageError("the server does not answer", kind="transient")
        return looked(manifest)

    monkeypatch.setattr(reconcile, "branch_heads", heads)
    monkeypatch.setattr(stop, "wait", wait)
    keeper = Maintainer(graph.location, graph.manifest, MaintenanceLimits())
    keeper.run_forever(stop, timedelta(seconds=10), told.append)
    done = [bool(one.done) if isinstance(one, MaintenanceReport) else str(one) for one in told]
    assert done == [True, False, False, "the server does not answer", True]
    assert pauses == [10, 20, 40, 80, 10]


@pytest.mark.slow
def test_a_graph_on_s3(s3_bucket: str) -> None:
    graph = og.init(s3_bucket, SCHEMA)
    small_writes(graph, 18)
    assert outcomes(graph.maintain()) == [("optimize", "done", "main")]
    assert graph.maintain().steps == ()
    assert len(people(reopened(graph))) == 18
    assert os.environ["AWS_ACCESS_KEY_ID"]
