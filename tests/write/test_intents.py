"""Intents: what a writer writes down, keeps alive, proves and takes away again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from omnigraph.errors import BadRequest, Conflict, StorageError, UnsupportedFormat
from omnigraph.manifest.entries import Registration, TableIdentity
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.recovery.intents import Intent, IntentTable, LiveIntent, parse_intent
from tests.faults import armed

START = 1_700_000_000_000_000
HOUR = 3_600_000_000
PERSON = Registration(TableIdentity(1, 7), "node:Person", "nodes/0000000000000001-0000000000000007")
KNOWS = Registration(TableIdentity(2, 8), "edge:Knows", "edges/0000000000000002-0000000000000008")
COMMIT = PendingCommit("01KA5QWZ7N4T3M8YB0C2D6E9FG", START - 5, "ann", "01KA5QWZ7N4T3M8YB0C2D6E9FH")
BRANCH_ID = "01KA5QWZ7N4T3M8YB0C2D6E9FJ"


class Clock:
    """A clock that a test moves; every look at it can be waited for."""

    def __init__(self, *, ticks: int = 0) -> None:
        self.now = START
        self.ticks = ticks
        self.looks = 0
        self._changed = threading.Condition()

    def __call__(self) -> int:
        with self._changed:
            self.looks += 1
            self.now += self.ticks
            self._changed.notify_all()
            return self.now

    def wait_for_looks(self, more: int) -> None:
        with self._changed:
            wanted = self.looks + more
            assert self._changed.wait_for(lambda: self.looks >= wanted, timeout=60)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["local", "s3"])
def any_objects(request: pytest.FixtureRequest, tmp_path: Path) -> ControlObjects:
    if request.param == "s3":
        return ControlObjects(Location.parse(request.getfixturevalue("s3_bucket")))
    return ControlObjects(Location.parse(str(tmp_path / "graph")))


@pytest.fixture
def objects(tmp_path: Path) -> ControlObjects:
    return ControlObjects(Location.parse(str(tmp_path / "graph")))


def mint(branch: str = "dev") -> Intent:
    return Intent.mint("Load", branch, COMMIT, [IntentTable.of(PERSON, 3)], BRANCH_ID)


def begin(objects: ControlObjects, clock: Callable[[], int], **options: timedelta) -> LiveIntent:
    return LiveIntent.open(objects, mint(), clock=clock, **options)


def stored(objects: ControlObjects, live: LiveIntent) -> Intent:
    data = objects.read(live.intent.name)
    assert data is not None
    return parse_intent(live.intent.name, data)


# -- the file ----------------------------------------------------------------------


def test_the_file_says_all_that_was_planned(objects: ControlObjects, clock: Clock) -> None:
    live = begin(objects, clock)
    live.extend([IntentTable.of(PERSON, 3, ["data/a.lance"])])
    data = objects.read(f"__recovery/{live.intent.operation_id}.json")
    assert json.loads(data or b"") == {
        "schema_version": 9,
        "operation_id": live.intent.operation_id,
        "started_at": str(START),
        "expires_at": START + HOUR,
        "branch": "dev",
        "actor_id": "ann",
        "writer_kind": "Load",
        "lineage": {
            "graph_commit_id": COMMIT.id,
            "branch": "dev",
            "actor_id": "ann",
            "merged_parent_commit_id": COMMIT.merged_parent_id,
            "created_at": START - 5,
        },
        "tables": [
            {
                "identity": {"stable_table_id": 1, "table_incarnation_id": 7},
                "table_key": "node:Person",
                "table_path": PERSON.path,
                "expected_version": 3,
                "staged": ["data/a.lance"],
            }
        ],
        "branch_id": BRANCH_ID,
    }
    assert stored(objects, live) == live.intent


def test_main_is_written_as_null() -> None:
    intent = mint("main")
    assert (intent.branch, intent.lineage.branch) == (None, None)


def test_a_branch_that_has_to_be_made_has_no_id() -> None:
    intent = Intent.mint("Load", "new", COMMIT)
    assert json.loads(intent.encode())["branch_id"] is None
    assert parse_intent(intent.name, intent.encode()) == intent


def test_fields_of_later_revisions_are_ignored() -> None:
    intent = mint()
    data = {**json.loads(intent.encode()), "more": [1]}
    assert parse_intent(intent.name, json.dumps(data).encode()) == intent


def changed(**fields: object) -> Callable[[Intent], bytes]:
    return lambda intent: json.dumps({**json.loads(intent.encode()), **fields}).encode()


def with_table(**fields: object) -> Callable[[Intent], bytes]:
    table = json.loads(mint().encode())["tables"][0]
    return changed(tables=[{**table, **fields}])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"\xff\xfe",
        lambda intent: intent.encode()[:-1],
        lambda intent: intent.encode().replace(b"expires_at", b"expired_at"),
        changed(operation_id="01KA5QWZ7N4T3M8YB0C2D6E9FG"),
        changed(operation_id="x"),
        changed(schema_version="9"),
        changed(started_at="yesterday"),
        changed(writer_kind="Vacuum"),
        changed(branch="../main"),
        changed(branch=" dev"),
        with_table(table_path="__manifest"),
        with_table(table_path="nodes/../__manifest"),
        with_table(table_path=KNOWS.path),
        with_table(table_path=""),
        with_table(staged=["../x"]),
        with_table(staged=["data/../../x"]),
        with_table(staged=["/etc/passwd"]),
        with_table(staged=["data//x"]),
        with_table(staged=["."]),
        with_table(staged=[""]),
        with_table(staged=["..\\x"]),
        with_table(staged=["a\0b"]),
    ],
)
def test_a_file_that_cannot_be_acted_on_is_refused(spoil: Callable[[Intent], bytes]) -> None:
    intent = mint()
    with pytest.raises(StorageError, match=f"{intent.operation_id}.json cannot be read") as caught:
        parse_intent(intent.name, spoil(intent))
    assert caught.value.kind == "permanent"


def test_a_newer_file_is_refused_whatever_it_holds() -> None:
    with pytest.raises(UnsupportedFormat, match="upgrade the program"):
        parse_intent(mint().name, b'{"schema_version": 10, "tables": 7}')


@pytest.mark.parametrize("name", ["__recovery/x.json", "__recovery/a/b.json", "__recovery/.json"])
def test_a_file_of_another_name_is_refused(name: str) -> None:
    with pytest.raises(StorageError, match="its name"):
        parse_intent(name, mint().encode())


def test_a_writer_cannot_name_files_of_others() -> None:
    with pytest.raises(BadRequest, match="not the name of a file of node:Person"):
        IntentTable.of(PERSON, 3, ["../x"])
    with pytest.raises(BadRequest, match="not the directory of node:Person"):
        IntentTable.of(replace(PERSON, path="__manifest"), 3)


# -- its life ----------------------------------------------------------------------


def test_the_life_of_an_intent(any_objects: ControlObjects, clock: Clock) -> None:
    live = begin(any_objects, clock)
    assert any_objects.list() == [live.intent.name]
    live.require_alive()
    clock.now += HOUR // 2
    live.renew()
    assert stored(any_objects, live).expires_at == clock.now + HOUR
    live.extend([IntentTable.of(PERSON, 3, ["data/a.lance"])])
    live.extend([IntentTable.of(KNOWS, 1, ["data/b.lance"])])
    live.extend([IntentTable.of(PERSON, 3, ["data/a.lance", "data/c.lance"])])
    found = stored(any_objects, live)
    assert found.tables == (
        IntentTable.of(PERSON, 3, ["data/a.lance", "data/c.lance"]),
        IntentTable.of(KNOWS, 1, ["data/b.lance"]),
    )
    assert found.files == [
        f"{PERSON.path}/data/a.lance",
        f"{PERSON.path}/data/c.lance",
        f"{KNOWS.path}/data/b.lance",
    ]
    assert (found.started_at, found.expires_at) == (str(START), clock.now + HOUR)
    live.require_alive()
    live.remove()
    live.remove()
    assert any_objects.list() == []


def test_what_its_steps_cost(objects: ControlObjects, clock: Clock) -> None:
    with meter.measure() as opening:
        live = begin(objects, clock)
    with meter.measure() as renewing:
        live.renew()
    with meter.measure() as proving:
        live.require_alive()
    with meter.measure() as removing:
        live.remove()
    totals = [meter_.total for meter_ in (opening, renewing, proving, removing)]
    # Renewing and proving look for the mark that would revoke it.
    assert totals == [1, 2, 2, 1]


def test_an_operation_begins_once(objects: ControlObjects, clock: Clock) -> None:
    intent = mint()
    LiveIntent.open(objects, intent, clock=clock)
    clock.now += 1
    with pytest.raises(Conflict, match="has begun already"):
        LiveIntent.open(objects, intent, clock=clock)


def revoke(objects: ControlObjects, live: LiveIntent) -> None:
    """What a sweep does that takes a writer for dead."""
    assert objects.create(live.intent.mark, b"")


@pytest.mark.parametrize("passed", [0, HOUR - 1, HOUR, 24 * HOUR, -24 * HOUR])
def test_a_revoked_intent_is_over_whatever_the_clock_says(
    any_objects: ControlObjects, clock: Clock, passed: int
) -> None:
    live = begin(any_objects, clock)
    revoke(any_objects, live)
    clock.now += passed
    before = stored(any_objects, live)
    for step in (live.require_alive, live.renew, lambda: live.extend([])):
        with pytest.raises(Conflict, match="its intent was revoked") as caught:
            step()
        assert caught.value.details == {"operation_id": live.intent.operation_id}
    assert stored(any_objects, live) == before


@pytest.mark.parametrize("passed", [HOUR - 1, HOUR, 24 * HOUR, -24 * HOUR])
def test_an_expired_intent_that_nobody_revoked_goes_on(
    any_objects: ControlObjects, clock: Clock, passed: int
) -> None:
    live = begin(any_objects, clock)
    clock.now += passed
    live.require_alive()
    live.extend([IntentTable.of(PERSON, 3, ["data/a.lance"])])
    live.renew()
    assert stored(any_objects, live).expires_at == clock.now + HOUR
    live.require_alive()


def test_a_revoked_intent_is_over_even_when_a_late_renewal_brings_it_back(
    objects: ControlObjects, clock: Clock
) -> None:
    live = begin(objects, clock)
    data = objects.read(live.intent.name)
    assert data is not None
    revoke(objects, live)
    objects.delete(live.intent.name)
    # A put that was under way when the sweep came.
    objects.replace(live.intent.name, data)
    with pytest.raises(Conflict, match="its intent was revoked"):
        live.require_alive()


def test_a_mark_outlives_its_intent(objects: ControlObjects, clock: Clock) -> None:
    live = begin(objects, clock)
    revoke(objects, live)
    live.remove()
    assert objects.list() == [live.intent.mark]
    assert not objects.create(live.intent.mark, b"")
    with pytest.raises(Conflict, match="its intent was revoked"):
        live.require_alive()


def test_nothing_is_proven_once_a_sweep_removed_it(objects: ControlObjects, clock: Clock) -> None:
    live = begin(objects, clock)
    objects.delete(live.intent.name)
    with pytest.raises(Conflict, match="its intent is gone"):
        live.require_alive()


def test_a_removed_intent_stays_removed(objects: ControlObjects, clock: Clock) -> None:
    live = begin(objects, clock)
    live.remove()
    for step in (live.renew, live.require_alive, lambda: live.extend([])):
        with pytest.raises(Conflict):
            step()
    assert objects.list() == []


def test_a_renewal_without_an_answer_changes_nothing_for_the_writer(
    objects: ControlObjects, clock: Clock
) -> None:
    live = begin(objects, clock)
    known = live.intent
    clock.now += HOUR // 2
    with armed("after_put", matching="__recovery"), pytest.raises(StorageError):
        live.renew()
    # Storage has it all the same, so that a sweep waits longer than the writer counts on.
    assert live.intent == known
    assert stored(objects, live).expires_at == clock.now + HOUR
    live.require_alive()
    live.renew()
    assert stored(objects, live) == live.intent


@pytest.mark.parametrize("point", ["intent_written", "intent_extended", "intent_removed"])
def test_failpoints_come_after_their_effect(
    objects: ControlObjects, clock: Clock, point: str
) -> None:
    intent = mint()
    table = IntentTable.of(KNOWS, 1, ["data/b.lance"])

    def write() -> None:
        live = LiveIntent.open(objects, intent, clock=clock)
        live.extend([table])
        live.remove()

    with (
        armed(point, matching=intent.operation_id) as fault,
        pytest.raises(StorageError, match="injected"),
    ):
        write()
    assert fault.fired == 1
    data = objects.read(intent.name)
    assert (data is None) == (point == "intent_removed")
    if data is not None:
        assert (table in parse_intent(intent.name, data).tables) == (point == "intent_extended")


# -- renewing by itself ------------------------------------------------------------

SHORT = timedelta(milliseconds=3)


class Failing:
    """A failure of storage that says when it has happened."""

    def __init__(self) -> None:
        self.happened = threading.Event()

    def __call__(self) -> StorageError:
        self.happened.set()
        return StorageError("the line is cut", kind="transient")


def renewers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("renew ")]


def test_it_renews_itself_until_the_end(objects: ControlObjects) -> None:
    clock = Clock(ticks=1)
    with begin(objects, clock, lifetime=SHORT) as live:
        (thread,) = (t for t in threading.enumerate() if t.name.startswith("renew "))
        assert thread.daemon
        begun = live.intent.expires_at
        clock.wait_for_looks(12)
        live.require_alive()
        assert stored(objects, live).expires_at > begun
    assert renewers() == []


def test_a_failed_renewal_is_told_at_the_next_step(objects: ControlObjects) -> None:
    failing = Failing()
    clock = Clock()
    live = begin(objects, clock, lifetime=SHORT)
    with live, armed("before_put", failing, times=None, matching="__recovery"):
        assert failing.happened.wait(timeout=60)
        with pytest.raises(StorageError, match="the line is cut"):
            live.require_alive()
        live.remove()
    assert objects.list() == []


def test_a_failed_renewal_is_told_at_the_end(objects: ControlObjects) -> None:
    failing = Failing()
    live = begin(objects, Clock(), lifetime=SHORT)
    with (
        armed("before_put", failing, times=None, matching="__recovery"),
        pytest.raises(StorageError, match="the line is cut"),
        live,
    ):
        assert failing.happened.wait(timeout=60)
    assert renewers() == []


def test_another_error_is_not_hidden_by_a_failed_renewal(objects: ControlObjects) -> None:
    failing = Failing()
    live = begin(objects, Clock(), lifetime=SHORT)

    def write() -> None:
        with live:
            assert failing.happened.wait(timeout=60)
            raise KeyError("mine")

    with (
        armed("before_put", failing, times=None, matching="__recovery"),
        pytest.raises(KeyError, match="mine"),
    ):
        write()


def test_a_failure_that_was_made_good_is_forgotten(objects: ControlObjects) -> None:
    failing = Failing()
    clock = Clock()
    with begin(objects, clock, lifetime=SHORT) as live:
        with armed("before_put", failing, times=1, matching="__recovery"):
            assert failing.happened.wait(timeout=60)
            # A whole renewal after the one that failed, and the beginning of another.
            clock.wait_for_looks(3)
        live.require_alive()


def test_a_removed_intent_is_not_written_again(objects: ControlObjects) -> None:
    clock = Clock(ticks=1)
    with begin(objects, clock, lifetime=SHORT) as live:
        clock.wait_for_looks(3)
        live.remove()
        (thread,) = (t for t in threading.enumerate() if t.name.startswith("renew "))
        thread.join(timeout=60)
        assert not thread.is_alive()
        assert objects.list() == []
