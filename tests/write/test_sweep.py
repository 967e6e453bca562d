"""The sweep: every way a writer can die, what becomes of its files, and what is recorded."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import Conflict, StorageError
from omnigraph.lang.structural import ID
from omnigraph.maintain.cleanup import cleanup
from omnigraph.manifest.branches import BranchRefs, EpochMoved
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.storage.tables.write_rows import insert_fragments, stage_fragments
from omnigraph.write.change.results import Recovery, TableOutcome
from omnigraph.write.publish.failpoints import FAILPOINTS
from omnigraph.write.recovery.intents import Intent, IntentTable, LiveIntent
from omnigraph.write.recovery.sweep import (
    StoredIntents,
    SweepReport,
    record,
    recoveries,
    stored_intents,
    sweep,
)
from tests.faults import armed, observed
from tests.film_graph import SCHEMA, files, insert_row
from tests.table_writes import insert, overwrite

# A time of its own, so that no test depends on the present one.
START = 1_700_000_000_000_000
MINUTE = 60_000_000
EXPIRED = START + 60 * MINUTE
SWEPT = EXPIRED + 10 * MINUTE
PERSON = "node:Person"


@dataclass(frozen=True)
class Writer:
    """A write to the people of a graph, done as far as a test wants it."""

    graph: og.Graph
    branch: str
    commit: PendingCommit
    live: LiveIntent
    fragments: list[str]

    @property
    def operation(self) -> str:
        return self.live.intent.operation_id

    @property
    def staged(self) -> list[str]:
        return self.live.intent.files

    def publish(self) -> TablePin:
        shown = self.graph.snapshot(self.branch).tables[PERSON]
        table = Table(self.graph.location.join(shown.table.path), shown.pin)
        pin = insert_fragments(table, self.fragments)
        change = AdvanceTable(shown.identity, shown.version, pin)
        branch_id = self.graph.manifest.branch_id(self.branch)
        self.graph.manifest.publish(branch_id, PublishRequest(self.commit, (change,)))
        return pin


def begin(
    graph: og.Graph,
    name: str = "ann",
    *,
    branch: str = "main",
    from_branch: str | None = None,
    start: int = START,
) -> Writer:
    """A load that has staged one person, and goes no further by itself.

    With ``from_branch`` it is to make its branch itself.
    """
    shown = graph.snapshot(from_branch or branch).tables[PERSON]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    commit = PendingCommit.mint("loader")
    branch_id = graph.manifest.branch_id(branch) if from_branch is None else None
    tables = [IntentTable.of(shown.table, shown.version)]
    intent = Intent.mint("Load", branch, commit, tables, branch_id)
    live = LiveIntent.open(ControlObjects(graph.location), intent, clock=lambda: start)
    fragments = list(stage_fragments(table, pa.table({ID: [name], "name": [name]})))
    written = [f"data/{file['path']}" for text in fragments for file in json.loads(text)["files"]]
    assert written
    live.extend([IntentTable.of(shown.table, shown.version, written)])
    return Writer(graph, branch, commit, live, fragments)


def run(graph: og.Graph, now: int = SWEPT) -> SweepReport:
    """A sweep as another process would do it."""
    return sweep(graph.location, Manifest(graph.location), now=now)


def recovery(writer: Writer, kind: str, before: int, after: int, now: int = SWEPT) -> Recovery:
    return Recovery(
        writer.commit.id,
        kind,  # type: ignore[arg-type]
        "loader",
        writer.operation,
        "Load",
        (TableOutcome(PERSON, before, after),),
        now,
    )


def people(graph: og.Graph, branch: str = "main", commit: str | None = None) -> list[str]:
    found: list[str] = (
        graph.table("Person", branch=branch, snapshot=commit).to_table()[ID].to_pylist()
    )
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    return og.init(root, SCHEMA)


@pytest.fixture(params=["local", "s3"])
def any_graph(request: pytest.FixtureRequest, tmp_path: Path) -> og.Graph:
    if request.param == "s3":
        return og.init(request.getfixturevalue("s3_bucket"), SCHEMA)
    return og.init(tmp_path / "film.omni", SCHEMA)


# -- the outcomes ------------------------------------------------------------------


def test_nothing_to_do_is_one_request_and_changes_nothing(graph: og.Graph, root: Path) -> None:
    before = files(root)
    with meter.measure() as measured:
        report = sweep(graph.location, graph.manifest)
    assert report == SweepReport()
    assert measured.total == 1
    assert files(root) == before
    assert recoveries(graph.location) == []


@pytest.mark.parametrize("now", [START, EXPIRED - 1, EXPIRED, SWEPT - 1])
def test_a_writer_that_may_be_alive_is_left_alone(graph: og.Graph, root: Path, now: int) -> None:
    writer = begin(graph)
    before = files(root)
    assert run(graph, now) == SweepReport()
    assert files(root) == before
    writer.publish()
    assert people(graph) == ["ann"]


def test_a_write_that_never_happened_is_rolled_back(any_graph: og.Graph) -> None:
    insert_row(any_graph, PERSON, "bob")
    writer = begin(any_graph)
    objects = ControlObjects(any_graph.location)
    before = objects.list()
    assert set(writer.staged) < set(before)
    done = recovery(writer, "RolledBack", 2, 2)
    assert run(any_graph) == SweepReport((done,))
    # What the sweep writes: the audit, the mark, and the state of main with a new epoch.
    own = {name for name in before if not name.startswith("__manifest/")}
    now = {name for name in objects.list() if not name.startswith(("_graph_", "__manifest/"))}
    assert now == own - {*writer.staged, writer.live.intent.name} | {writer.live.intent.mark}
    assert set(objects.list("__manifest")) > set(before) - own
    assert recoveries(any_graph.location) == [done]
    assert people(any_graph) == ["bob"]
    assert run(any_graph) == SweepReport()
    insert_row(any_graph, PERSON, "eve")
    assert people(any_graph) == ["bob", "eve"]


@pytest.mark.parametrize("now", [START, SWEPT])
def test_a_write_that_was_published_is_rolled_forward(any_graph: og.Graph, now: int) -> None:
    writer = begin(any_graph)
    writer.publish()
    insert_row(any_graph, PERSON, "bob")
    done = recovery(writer, "RolledForward", 1, 2, now)
    assert run(any_graph, now) == SweepReport((done,))
    assert recoveries(any_graph.location) == [done]
    # Nothing had to be revoked.
    assert ControlObjects(any_graph.location).list("__recovery") == []
    assert people(any_graph) == ["ann", "bob"]


def test_a_write_that_was_rebased_shows_where_it_landed(graph: og.Graph) -> None:
    writer = begin(graph)
    insert_row(graph, PERSON, "bob")
    writer.publish()
    assert run(graph).recoveries == (recovery(writer, "RolledForward", 1, 3),)


@pytest.mark.slow
def test_a_published_commit_is_found_however_old_it_is(graph: og.Graph) -> None:
    writer = begin(graph)
    writer.publish()
    for number in range(150):
        graph.manifest.publish("main", PublishRequest(PendingCommit.mint(str(number))))
    assert graph.manifest.view().log.log_sizes()
    assert run(graph).recoveries == (recovery(writer, "RolledForward", 1, 2),)
    assert people(graph) == ["ann"]


def test_an_intent_without_staged_files(graph: og.Graph, root: Path) -> None:
    intent = Intent.mint("SchemaApply", "main", PendingCommit.mint())
    LiveIntent.open(ControlObjects(graph.location), intent, clock=lambda: START)
    before = files(root)
    (done,) = run(graph).recoveries
    assert (done.recovery_kind, done.recovery_for_actor, done.tables) == ("RolledBack", None, ())
    others = {k: v for k, v in before.items() if not k.startswith(("__recovery/", "__manifest/"))}
    assert files(root).items() >= others.items()
    assert intent.name not in files(root)


def test_a_shorter_margin_can_be_asked_for(graph: og.Graph) -> None:
    begin(graph)
    manifest = Manifest(graph.location)
    short = timedelta(seconds=1)
    assert not sweep(graph.location, manifest, now=EXPIRED + 999_999, margin=short).recoveries
    assert sweep(graph.location, manifest, now=EXPIRED + 1_000_000, margin=short).recoveries


def test_several_intents_are_settled_in_the_order_of_their_names(graph: og.Graph) -> None:
    writers = [begin(graph, name) for name in ("ann", "bob", "eve")]
    writers[1].publish()
    alive = begin(graph, "joe", start=SWEPT)
    by_name = sorted(writers, key=lambda writer: writer.operation)
    report = run(graph)
    assert [done.operation_id for done in report.recoveries] == [w.operation for w in by_name]
    assert {done.operation_id: done.recovery_kind for done in report.recoveries} == {
        writers[0].operation: "RolledBack",
        writers[1].operation: "RolledForward",
        writers[2].operation: "RolledBack",
    }
    assert stored_intents(ControlObjects(graph.location)).intents == (alive.live.intent,)
    assert people(graph) == ["bob"]


# -- branches ----------------------------------------------------------------------


def test_a_write_to_a_branch(graph: og.Graph) -> None:
    graph.branches.create("dev")
    dead, done = begin(graph, "ann", branch="dev"), begin(graph, "bob", branch="dev")
    done.publish()
    kinds = {found.operation_id: found.recovery_kind for found in run(graph).recoveries}
    assert kinds == {dead.operation: "RolledBack", done.operation: "RolledForward"}
    assert people(graph, "dev") == ["bob"]
    assert not set(dead.staged) & set(ControlObjects(graph.location).list())


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize("is_recreated", [False, True])
def test_the_files_of_a_branch_that_is_gone_are_left_to_cleanup(
    graph: og.Graph, is_recreated: bool, is_cleaned: bool
) -> None:
    graph.branches.create("dev")
    writer = begin(graph, branch="dev")
    graph.branches.delete("dev")
    if is_recreated:
        graph.branches.create("dev")
        insert_row(graph, PERSON, "bob")
    if is_cleaned:
        with parked(graph, writer):
            clean(graph, now=START)
    # Of the branch's own manifest nothing may be left: the intent is settled all the same.
    report = run(graph)
    done = recovery(writer, "OrphanedBranchDiscarded", 1, 1)
    assert report.recoveries == (done,)
    assert recoveries(graph.location) == [done]
    left = set(ControlObjects(graph.location).list())
    assert set(writer.staged) <= left or is_cleaned
    assert len(report.notices) == 1
    assert "to cleanup" in report.notices[0]
    clean(graph)
    assert not set(writer.staged) & set(ControlObjects(graph.location).list())
    if is_recreated:
        assert people(graph, "dev") == []
        insert_row_on(graph, "dev", "eve")
        assert people(graph, "dev") == ["eve"]


@contextmanager
def parked(graph: og.Graph, writer: Writer) -> Iterator[None]:
    """In the block, nobody sees the intent."""
    objects, intent = ControlObjects(graph.location), writer.live.intent
    objects.delete(intent.name)
    yield
    objects.replace(intent.name, intent.encode())


def clean(graph: og.Graph, now: int = SWEPT) -> None:
    """Remove all that nobody needs, as another process would."""
    manifest = Manifest(graph.location)
    cleanup(graph.location, manifest, keep=1, grace=timedelta(0), now=now)


def insert_row_on(graph: og.Graph, branch: str, name: str) -> None:
    shown = graph.snapshot(branch).tables[PERSON]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    pin = insert(table, pa.table({ID: [name], "name": [name]}))
    change = AdvanceTable(shown.identity, shown.version, pin)
    branch_id = graph.manifest.branch_id(branch)
    graph.manifest.publish(branch_id, PublishRequest(PendingCommit.mint(), (change,)))


def test_a_branch_that_is_not_there_yet_belongs_to_a_live_writer(graph: og.Graph) -> None:
    writer = begin(graph, branch="dev", from_branch="main")
    assert run(graph, SWEPT - 1) == SweepReport()
    graph.branches.create("dev")
    writer.publish()
    assert run(graph, START).recoveries == (recovery(writer, "RolledForward", 1, 2, START),)
    assert people(graph, "dev") == ["ann"]


def test_a_branch_that_was_never_made_leaves_its_files_to_cleanup(graph: og.Graph) -> None:
    names = graph.manifest.refs.read()
    writer = begin(graph, branch="dev", from_branch="main")
    report = run(graph)
    assert report.recoveries == (recovery(writer, "OrphanedBranchDiscarded", 1, 1),)
    assert set(writer.staged) <= set(ControlObjects(graph.location).list())
    # Whoever was making the branch under the names as they were begins again.
    with pytest.raises(EpochMoved):
        BranchRefs(graph.manifest).fork("dev", "main", names)
    clean(graph)
    assert not set(writer.staged) & set(ControlObjects(graph.location).list())
    assert graph.branches.list() == ["main"]


def test_a_branch_that_was_made_by_the_write_itself_is_there_without_its_rows(
    graph: og.Graph,
) -> None:
    writer = begin(graph, branch="dev", from_branch="main")
    graph.branches.create("dev")
    epoch = graph.manifest.view("dev").state.epoch
    assert run(graph).recoveries == (recovery(writer, "RolledBack", 1, 1),)
    assert graph.manifest.view("dev").state.epoch == epoch + 1
    assert people(graph, "dev") == []
    assert not set(writer.staged) & set(ControlObjects(graph.location).list())


@pytest.mark.parametrize("after", ["deleted", "recreated", "cleaned"])
def test_a_merged_branch_leaves_its_files_where_it_was_merged(graph: og.Graph, after: str) -> None:
    graph.branches.create("dev")
    writer = begin(graph, branch="dev")
    writer.publish()
    merge = graph.branches.merge("dev").commit
    assert merge is not None
    # Main moves on, so that only its history has the file.
    shown = graph.snapshot().tables[PERSON]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    emptied = overwrite(table, pa.table({ID: ["bob"], "name": ["bob"]}))
    change = AdvanceTable(shown.identity, shown.version, emptied)
    graph.manifest.publish("main", PublishRequest(PendingCommit.mint(), (change,)))
    graph.branches.delete("dev")
    if after == "recreated":
        graph.branches.create("dev")
    if after == "cleaned":
        with parked(graph, writer):
            manifest = Manifest(graph.location)
            cleanup(graph.location, manifest, keep=5, grace=timedelta(0), now=START)
    # Main has the commit in what it descends from, whatever became of the branch.
    assert run(graph) == SweepReport((recovery(writer, "RolledForward", 1, 2),))
    assert people(graph, commit=merge.id) == ["ann"]
    assert people(graph) == ["bob"]
    assert stored_intents(ControlObjects(graph.location)) == StoredIntents()


# -- revoking ----------------------------------------------------------------------


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_a_revoked_write_meets_a_new_epoch_of_its_branch_alone(
    graph: og.Graph, branch: str
) -> None:
    graph.branches.create("dev")
    before = {name: graph.manifest.view(name).exact for name in ("main", "dev")}
    names = graph.manifest.refs.read()
    writer = begin(graph, branch=branch)
    assert run(graph).recoveries == (recovery(writer, "RolledBack", 1, 1),)
    after = {name: graph.manifest.view(name).exact for name in ("main", "dev")}
    moved = before[branch]
    assert after == {**before, branch: replace(moved, epoch=moved.epoch + 1)}
    assert graph.manifest.refs.read() == names
    with pytest.raises(Conflict, match="was revoked"):
        writer.live.require_alive()


def test_a_live_intent_moves_no_epoch(graph: og.Graph) -> None:
    before = graph.manifest.view().exact
    begin(graph)
    run(graph, SWEPT - 1)
    assert Manifest(graph.location).view().exact == before


def test_a_write_that_lands_between_the_first_look_and_the_mark_is_rolled_forward(
    graph: og.Graph,
) -> None:
    writer = begin(graph)
    with observed("sweep_revoked", writer.publish) as fault:
        report = run(graph)
    assert fault.fired == 1
    assert report == SweepReport((recovery(writer, "RolledForward", 1, 2),))
    assert people(graph) == ["ann"]
    assert set(writer.staged) <= set(ControlObjects(graph.location).list())


def test_a_write_that_is_merged_and_deleted_before_the_mark_is_rolled_forward(
    graph: og.Graph,
) -> None:
    graph.branches.create("dev")
    writer = begin(graph, branch="dev")

    def land() -> None:
        writer.publish()
        graph.branches.merge("dev", delete_source=True)

    with observed("sweep_revoked", land):
        report = run(graph)
    assert report.recoveries == (recovery(writer, "RolledForward", 1, 2),)
    assert people(graph) == ["ann"]


# -- what must not be touched ------------------------------------------------------


def test_what_a_published_version_refers_to_is_kept(graph: og.Graph) -> None:
    insert_row(graph, PERSON, "bob")
    writer = begin(graph)
    own = writer.staged
    shown = graph.snapshot().tables[PERSON]
    names = [
        name.removeprefix(f"{shown.table.path}/")
        for name in ControlObjects(graph.location).list(f"{shown.table.path}/data")
    ]
    assert len(names) == 2
    writer.live.extend([IntentTable.of(shown.table, shown.version, names)])
    report = run(graph)
    assert len(report.notices) == 1
    assert "kept 1 file(s)" in report.notices[0]
    assert people(graph) == ["bob"]
    left = ControlObjects(graph.location).list(f"{shown.table.path}/data")
    assert len(left) == 1
    assert left[0] not in own


def changed(**fields: object) -> Callable[[bytes], bytes]:
    return lambda data: json.dumps({**json.loads(data), **fields}).encode()


def with_table(**fields: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        intent = json.loads(data)
        intent["tables"][0] |= fields
        return json.dumps(intent).encode()

    return change


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda _: b"not json", "cannot be read"),
        (changed(expires_at=None), "cannot be read"),
        (changed(schema_version=10), "upgrade the program"),
        (with_table(staged=["../../_schema.pg"]), "not the name of a file"),
        (with_table(staged=["/_schema.pg"]), "not the name of a file"),
        (with_table(table_path="__manifest"), "not the directory of"),
        (with_table(table_path=""), "not the directory of"),
    ],
)
def test_an_odd_intent_is_left_in_place_and_reported(
    graph: og.Graph, root: Path, spoil: Callable[[bytes], bytes], said: str
) -> None:
    odd = root / begin(graph).live.intent.name
    odd.write_bytes(spoil(odd.read_bytes()))
    before = files(root)
    report = run(graph)
    assert report.recoveries == ()
    assert len(report.notices) == 1
    assert report.notices[0].startswith(f"left in place: __recovery/{odd.name}")
    assert said in report.notices[0]
    assert files(root) == before


def test_odd_files_do_not_keep_others_waiting(graph: og.Graph, root: Path) -> None:
    writer = begin(graph)
    for name in ("0.json", "notes.txt", "zz/more.json"):
        path = root / "__recovery" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("?")
    report = run(graph)
    assert [done.operation_id for done in report.recoveries] == [writer.operation]
    assert len(report.notices) == 3
    assert {name for name in files(root / "__recovery") if not name.endswith(".revoked")} == {
        "0.json",
        "notes.txt",
        "zz/more.json",
    }


def test_damage_to_one_table_does_not_keep_others_waiting(graph: og.Graph, root: Path) -> None:
    insert_row(graph, "node:Film", "Up")
    films = graph.snapshot().tables["node:Film"]
    intent = Intent.mint(
        "Load", "main", PendingCommit.mint(), [IntentTable.of(films.table, 2, ["data/x.lance"])]
    )
    LiveIntent.open(ControlObjects(graph.location), intent, clock=lambda: START)
    writer = begin(graph)
    (root / films.table.path / "_versions" / f"d{films.pin.version}.manifest").unlink()
    handles.forget(graph.location.join(films.table.path))
    report = run(graph)
    assert [done.operation_id for done in report.recoveries] == [writer.operation]
    assert [note.split(",")[0] for note in report.notices] == [f"left in place: {intent.name}"]


# -- dying and meeting others ------------------------------------------------------

SWEEP_POINTS = [point for point in FAILPOINTS if point.startswith("sweep_")]


@pytest.mark.parametrize("point", [*SWEEP_POINTS, "before_commit", "after_commit"])
@pytest.mark.parametrize("story", ["RolledForward", "RolledBack", "OrphanedBranchDiscarded"])
def test_a_sweep_that_dies_anywhere_is_made_good_by_the_next(
    graph: og.Graph, story: str, point: str
) -> None:
    graph.branches.create("dev")
    writer = begin(graph, branch="dev")
    if story == "RolledForward":
        writer.publish()
    if story == "OrphanedBranchDiscarded":
        graph.branches.delete("dev")
    is_revoked = story != "RolledForward"
    passed = is_revoked or point not in {"sweep_revoked", "sweep_discarded"}
    target = "_graph_commit_recoveries" if point.endswith("_commit") else writer.operation
    # The first commit to the audit makes it.
    with armed(point, matching=target, skip=point.endswith("_commit")) as fault:
        if passed:
            with pytest.raises(StorageError, match="injected"):
                run(graph)
        else:
            run(graph)
    assert fault.fired == passed
    second = run(graph, SWEPT + 1)
    assert len(second.recoveries) == (passed and point != "sweep_done")
    is_left = story == "OrphanedBranchDiscarded"
    assert len(second.notices) == (is_left and len(second.recoveries))
    recorded_first = point in {"sweep_audited", "sweep_done", "after_commit"} or not passed
    version = 2 if story == "RolledForward" else 1
    expected = recovery(writer, story, 1, version, SWEPT if recorded_first else SWEPT + 1)
    assert recoveries(graph.location) == [expected]
    objects = ControlObjects(graph.location)
    assert objects.list("__recovery") == [writer.live.intent.mark] * is_revoked
    assert bool(set(writer.staged) & set(objects.list())) == (story != "RolledBack")
    if story != "OrphanedBranchDiscarded":
        assert people(graph, "dev") == (["ann"] if story == "RolledForward" else [])
    assert run(graph) == SweepReport()


starting_line: list[Barrier] = []
"""Of a worker: where all workers wait for each other."""


def line_up(line: Barrier) -> None:
    """Begin a worker: a barrier is handed over at the start of a process, or not at all."""
    starting_line.append(line)


def sweep_at_once(uri: str) -> SweepReport:
    root = Location.parse(uri)
    manifest = Manifest(root)
    manifest.view()
    starting_line[0].wait(timeout=60)
    return sweep(root, manifest, now=SWEPT)


@pytest.mark.slow
def test_two_sweeps_at_once(any_graph: og.Graph) -> None:
    writers = [begin(any_graph, f"p{number}") for number in range(6)]
    for writer in writers[::2]:
        writer.publish()
    spawn = multiprocessing.get_context("spawn")
    line = spawn.Barrier(2)
    with spawn.Pool(2, initializer=line_up, initargs=(line,)) as pool:
        reports = pool.map(sweep_at_once, [any_graph.location.uri] * 2, chunksize=1)
    assert {note for report in reports for note in report.notices} == set()
    told = {done.operation_id: done for report in reports for done in report.recoveries}
    found = recoveries(any_graph.location)
    assert {done.operation_id: done for done in found} == told
    assert len(found) == len(told) == 6
    assert sorted(people(any_graph)) == ["p0", "p2", "p4"]
    assert stored_intents(ControlObjects(any_graph.location)) == StoredIntents()


# -- the audit ---------------------------------------------------------------------


def made(operation: str, at: int, kind: str = "RolledBack") -> Recovery:
    return Recovery("c", kind, None, operation, "Optimize", (), at)  # type: ignore[arg-type]


def test_the_audit_is_newest_first_and_the_first_word_counts(tmp_path: Path) -> None:
    root = Location.parse(str(tmp_path))
    assert recoveries(root) == []
    rows = [made("a", 5), made("b", 9), made("c", 5), made("a", 99, "RolledForward")]
    for row in rows:
        record(root, row)
    assert recoveries(root) == [rows[1], rows[2], rows[0]]


def test_an_unreadable_row_of_the_audit_is_reported(tmp_path: Path) -> None:
    root = Location.parse(str(tmp_path))
    record(root, made("a", 5, "Vanished"))
    with pytest.raises(StorageError, match="operation a"):
        recoveries(root)
