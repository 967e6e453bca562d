"""The compare-and-swap where versions are removed: a stale commit never becomes the head.

A commit becomes the version after the one it was built on. Where that one was removed, storage
lets a stale commit through, into a gap below the newest version, where nobody looks for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.logs.head_log import QUEUE, CompareAndSwapLost, HeadLog
from omnigraph.storage.logs.newest_version import begin_collection
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import manifest_name, version_of
from tests.faults import observed

PUBLISHERS = 4
PUBLISHES = 12


def rows(*numbers: int) -> pa.Table:
    return pa.table({"number": pa.array(numbers, pa.int64())})


def numbers(table: pa.Table) -> list[int]:
    return table["number"].to_pylist()  # type: ignore[no-any-return]


def versions(location: Location) -> list[int]:
    names = ControlObjects(location).list("_versions")
    return sorted(version for name in names if (version := version_of(name)) is not None)


def remove(location: Location, gone: list[int]) -> None:
    """Remove versions as a collector does; what they were made of may stay."""
    objects = ControlObjects(location)
    begin_collection(objects, versions(location)[-1])
    objects.delete_all([manifest_name(version) for version in gone])


def grown(log: HeadLog, *heads: int) -> HeadLog:
    for number in heads:
        log = log.replace_head(rows(number))
    return log


def with_log(location: Location, fragments: int = 2) -> HeadLog:
    """A head, and some sealed fragments of one row."""
    log = HeadLog.create(location, rows(0))
    for number in range(1, fragments + 1):
        log = log.replace_head(rows(number), sealed=rows(-number))
    return log


@contextmanager
def landing_in_a_gap(stale: HeadLog, newest: HeadLog) -> Iterator[None]:
    """Let a commit see the versions as they were, and those after it come between.

    Storage picks the number of a version first and writes it afterwards: meanwhile others may
    publish, and what they built on may be removed. So the newer versions are taken away before
    the commit, and only the newest comes back.
    """
    objects = ControlObjects(stale.location)
    name = manifest_name(newest.version)
    kept = objects.read(name)
    assert kept is not None
    later = list(range(stale.version + 1, newest.version + 1))

    def restore() -> None:
        objects.create(name, kept)

    with ExitStack() as stack:
        stack.enter_context(observed("before_commit", lambda: remove(stale.location, later)))
        stack.enter_context(observed("after_commit", restore))
        yield


# -- the two parts ------------------------------------------------------------------


def test_two_commits_on_one_version_have_one_winner(location: Location) -> None:
    first = HeadLog.create(location, rows(1))
    second = HeadLog.open(location)
    first.replace_head(rows(2))
    with pytest.raises(CompareAndSwapLost):
        second.replace_head(rows(3))
    assert numbers(HeadLog.open(location).head()) == [2]


def test_sealed_rows_are_the_log_and_the_rest_is_the_head(location: Location) -> None:
    made = with_log(location, 3)
    for log in (made, HeadLog.open(location)):
        assert numbers(log.log()) == [-1, -2, -3]
        assert numbers(log.log(pc.field("number") < -1)) == [-2, -3]
        assert numbers(log.log_rows([2, 0])) == [-3, -1]
        assert log.log_sizes() == [1, 1, 1]
        assert numbers(log.head()) == [3]
    absorbed = made.replace_head(rows(4), sealed=rows(-2, -3, -4), absorbed=[1, 2])
    for log in (absorbed, HeadLog.open(location)):
        assert log.log_sizes() == [1, 3]
        assert numbers(log.log()) == [-1, -2, -3, -4]
        assert log.head().schema.names == log.log().schema.names == ["number"]


def test_handle_shows_its_version_for_ever(location: Location) -> None:
    log = HeadLog.create(location, rows(1))
    newest = grown(log, 2, 3)
    assert (log.version, log.latest_version()) == (1, 3)
    assert numbers(log.head()) == [1]
    assert numbers(HeadLog.open(location, 2).head()) == [2]
    assert numbers(newest.head()) == [3]


def test_created_once(location: Location) -> None:
    HeadLog.create(location, rows(1))
    with pytest.raises(StorageError) as caught:
        HeadLog.create(location, rows(2))
    assert caught.value.kind == "precondition"
    assert numbers(HeadLog.open(location).head()) == [1]


def test_files_are_all_that_a_version_needs(location: Location) -> None:
    """Everything else may go, and the version is still there whole."""
    log = with_log(location, 3)
    objects = ControlObjects(location)
    gone = [name for name in objects.list() if name not in log.files()]
    assert gone
    objects.delete_all(gone)
    assert log.files() <= set(objects.list())
    left = HeadLog.open(location)
    assert (numbers(left.head()), numbers(left.log())) == ([3], [-1, -2, -3])
    assert numbers(left.replace_head(rows(4)).head()) == [4]


# -- a stale commit in a gap below the newest version -----------------------------------


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize("warm", [True, False])
def test_commit_in_a_gap_is_not_acknowledged(
    location: Location, *, sealed: bool, warm: bool
) -> None:
    stale = HeadLog.create(location, rows(1))
    if warm:
        stale.head()
    newest = grown(HeadLog.open(location), 2, 3, 4)
    remove(location, [2, 3])
    with pytest.raises(CompareAndSwapLost):
        stale.replace_head(rows(99), sealed=rows(-1) if sealed else None)
    # Storage did let it through: otherwise this tests nothing.
    assert versions(location) == [1, 2, 4]
    assert numbers(HeadLog.open(location, 2).head()) == [99]
    read = HeadLog.open(location)
    assert (read.version, numbers(read.head()), numbers(read.log())) == (4, [4], [])
    assert newest.latest_version() == 4
    assert numbers(newest.replace_head(rows(5)).head()) == [5]
    assert numbers(HeadLog.open(location).head()) == [5]


def test_commit_that_others_overtake_while_it_picks_its_number(location: Location) -> None:
    stale = HeadLog.create(location, rows(1))
    newest = grown(HeadLog.open(location), 2, 3, 4)
    with landing_in_a_gap(stale, newest), pytest.raises(CompareAndSwapLost):
        stale.replace_head(rows(99))
    assert versions(location) == [1, 2, 4]
    assert numbers(HeadLog.open(location).head()) == [4]


@pytest.mark.parametrize("kept", [[], [1], [1, 2], [3], [1, 3]])
def test_no_stale_commit_comes_behind_the_newest_version(
    location: Location, kept: list[int]
) -> None:
    """Whichever versions are left, it takes the number after its own or none."""
    stale = HeadLog.create(location, rows(1))
    grown(HeadLog.open(location), 2, 3, 4)
    before = HeadLog.open(location).files()
    remove(location, [version for version in (1, 2, 3) if version not in kept])
    with pytest.raises(CompareAndSwapLost):
        stale.replace_head(rows(99))
    assert versions(location) == sorted({*kept, 4} | (set() if 2 in kept else {2}))
    assert HeadLog.open(location).files() == before


def test_stale_commits_one_after_another(location: Location) -> None:
    stale = [HeadLog.create(location, rows(1)), HeadLog.open(location)]
    log = grown(HeadLog.open(location), 2, 3)
    stale.append(HeadLog.open(location))
    grown(log, 4, 5, 6)
    remove(location, [2, 3, 4, 5])
    for number, handle in enumerate(stale):
        with pytest.raises(CompareAndSwapLost):
            handle.replace_head(rows(90 + number))
        assert numbers(HeadLog.open(location).head()) == [6]
    assert numbers(HeadLog.open(location).replace_head(rows(7)).head()) == [7]
    assert numbers(HeadLog.open(location).head()) == [7]


def test_successor_of_a_commit_in_a_gap_does_not_count_either(location: Location) -> None:
    """Somebody reads the version that means nothing, and builds on it."""
    stale = HeadLog.create(location, rows(1))
    newest = grown(HeadLog.open(location), 2, 3, 4)
    remove(location, [2, 3])
    with pytest.raises(CompareAndSwapLost):
        stale.replace_head(rows(99))
    misled = HeadLog.open(location, 2)
    with pytest.raises(CompareAndSwapLost):
        misled.replace_head(rows(100))
    assert versions(location) == [1, 2, 3, 4]
    assert numbers(HeadLog.open(location).head()) == [4]
    assert numbers(newest.replace_head(rows(5)).head()) == [5]


@pytest.mark.parametrize("true_absorbed", [True, False])
def test_log_loses_nothing_to_a_stale_commit_that_absorbed_it(
    location: Location, *, true_absorbed: bool
) -> None:
    stale = with_log(location, 3)
    log = grown(HeadLog.open(location), 4, 5)
    if true_absorbed:
        log = log.replace_head(rows(6), sealed=rows(-2, -3, -4), absorbed=[1, 2])
    else:
        log = log.replace_head(rows(6), sealed=rows(-4))
    newest = grown(log, 7).version
    remove(location, list(range(stale.version + 1, newest)))
    with pytest.raises(CompareAndSwapLost):
        stale.replace_head(rows(99), sealed=rows(-1, -2, -3), absorbed=[0, 1, 2])
    assert versions(location)[-1] == newest
    read = HeadLog.open(location)
    assert numbers(read.head()) == [7]
    assert set(numbers(read.log())) == {-1, -2, -3, -4}
    again = read.replace_head(rows(8), sealed=rows(-5))
    for after in (again, HeadLog.open(location)):
        assert numbers(after.head()) == [8]
        assert set(numbers(after.log())) == {-1, -2, -3, -4, -5}
        assert sum(after.log_sizes()) == after.log().num_rows


# -- many publishers beside a collector --------------------------------------------------


def newest_of(location: Location) -> HeadLog:
    """The newest version; it may be gone before it is read, so eager is this collector."""
    while True:
        try:
            log = HeadLog.open(location)
            log.head()
        except StorageError as error:
            if error.kind != "not_found":
                raise
        else:
            return log


def publish(location: Location, log: HeadLog, mine: int) -> HeadLog:
    """Put a number into the head, and all of the head into the log when it has grown."""
    while True:
        held = numbers(log.head())
        if mine in held or mine in numbers(log.log()):
            return log
        sealed, absorbed = None, range(0)
        if len(held) > 4:
            absorbed = range(max(0, len(log.log_sizes()) - 2), len(log.log_sizes()))
            sealed = rows(*numbers(log.log_rows(absorbed)), *held)
            held = []
        try:
            return log.replace_head(rows(*held, mine), sealed=sealed, absorbed=absorbed)
        except CompareAndSwapLost:
            log = newest_of(location)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_while_versions_are_removed(location: Location) -> None:
    """Publishers of which some sleep over many versions, and a collector that takes any but the
    newest; what a publisher was told to be there is there at the end.
    """
    HeadLog.create(location, rows(0))
    done = Event()

    def work(publisher: int) -> list[int]:
        chance = random.Random(publisher)  # noqa: S311 - to be repeatable
        log = newest_of(location)
        mine = [1 + PUBLISHERS * number + publisher for number in range(PUBLISHES)]
        for number in mine:
            found = publish(location, log, number)
            # A handle that is kept for several rounds is stale by many versions.
            log = found if chance.random() < 0.3 else log
        return mine

    def collect() -> int:
        chance = random.Random(0)  # noqa: S311 - to be repeatable
        removed = 0
        while not done.is_set():
            old = [version for version in versions(location)[:-1] if chance.random() < 0.7]
            remove(location, old)
            removed += len(old)
        return removed

    with ThreadPoolExecutor(PUBLISHERS + 1) as pool:
        collecting = pool.submit(collect)
        try:
            acknowledged = [n for mine in pool.map(work, range(PUBLISHERS)) for n in mine]
        finally:
            done.set()
        assert collecting.result() > 0
    newest = HeadLog.open(location)
    held = numbers(newest.head())
    assert len(held) == len(set(held))
    assert sorted({*held, *numbers(newest.log())}) == [0, *sorted(acknowledged)]


def test_a_look_at_versions_and_turns_lists_no_transactions() -> None:
    """There is one transaction for every version that ever was."""
    assert "_transactions" < QUEUE < "_versions"
