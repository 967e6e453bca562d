"""Names: no change is lost, none is acknowledged that is not there, and none is half read."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from omnigraph.errors import Conflict, StorageError, UnsupportedFormat
from omnigraph.manifest.refs import ATTEMPTS, DIRECTORY, KEPT, MANY, Ref, Refs, RefStore
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from tests.faults import armed, observed

WORKERS = 4
CHANGES = 12


def ref(name: str) -> Ref:
    return Ref(f"ID-{name}", "main", "main", None, 1)


def naming(*names: str) -> Callable[[Refs], Refs | None]:
    """A step that adds names, and knows them when they are there."""

    def named(found: Refs) -> Refs | None:
        wanted = {**found.names, **{name: ref(name) for name in names}}
        return None if wanted == found.names else replace(found, names=wanted)

    return named


def unnaming(name: str) -> Callable[[Refs], Refs | None]:
    def unnamed(found: Refs) -> Refs | None:
        if name not in found.names:
            return None
        return replace(found, names={other: r for other, r in found.names.items() if other != name})

    return unnamed


def stored(root: Location) -> list[int]:
    """The versions that are stored."""
    names = ControlObjects(root).list(DIRECTORY)
    return [int(name.removeprefix(f"{DIRECTORY}/").removesuffix(".json")) for name in names]


def change_many(uri: str, worker: str) -> int:
    """Add names one by one, and remove every third again; gives how many are to be left."""
    store = RefStore(Location.parse(uri))
    left = 0
    for number in range(CHANGES):
        name = f"{worker}-{number}"
        store.change(naming(name))
        if number % 3 == 0:
            store.change(unnaming(name))
        else:
            left += 1
    return left


def left_by(worker: str) -> set[str]:
    return {f"{worker}-{number}" for number in range(CHANGES) if number % 3}


def test_no_names_at_first_and_reading_makes_none(any_root: Location) -> None:
    assert RefStore(any_root).read() == Refs()
    assert ControlObjects(any_root).list() == []


def test_change_is_what_another_store_reads(any_root: Location) -> None:
    store = RefStore(any_root)
    first = store.change(naming("a", "ü/b"))
    assert first == Refs(1, 0, {"a": ref("a"), "ü/b": ref("ü/b")})
    second = store.change(lambda found: replace(found, epoch=found.epoch + 1))
    for reader in (store, RefStore(any_root)):
        assert reader.read() == second == replace(first, version=2, epoch=1)


def test_step_with_nothing_to_do_writes_nothing(root: Location) -> None:
    store = RefStore(root)
    store.change(naming("a"))
    assert store.change(naming("a")).version == 1
    assert stored(root) == [1]


def test_refusal_of_a_step_changes_nothing(root: Location) -> None:
    def refused(_: Refs) -> Refs | None:
        raise Conflict("no")

    with pytest.raises(Conflict, match="no"):
        RefStore(root).change(refused)
    assert stored(root) == []


@pytest.mark.slow
def test_threads_lose_no_change(any_root: Location) -> None:
    workers = [f"w{number}" for number in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda worker: change_many(any_root.uri, worker), workers))
    names = RefStore(any_root).read().names
    assert set(names) == set().union(*map(left_by, workers))


def test_threads_with_one_store_lose_no_change(root: Location) -> None:
    store = RefStore(root)
    names = [f"n{number}" for number in range(40)]
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(lambda name: store.change(naming(name)), names))
    assert set(store.read().names) == set(RefStore(root).read().names) == set(names)


@pytest.mark.slow
def test_processes_lose_no_change(any_root: Location) -> None:
    workers = [f"w{number}" for number in range(WORKERS)]
    with multiprocessing.get_context("spawn").Pool(WORKERS) as pool:
        pool.starmap(change_many, [(any_root.uri, worker) for worker in workers], chunksize=1)
    assert set(RefStore(any_root).read().names) == set().union(*map(left_by, workers))


# -- answers that get lost --------------------------------------------------------------


def permanent() -> StorageError:
    return StorageError("no space left on device", kind="permanent")


def test_change_whose_answer_got_lost_happens_once(any_root: Location) -> None:
    store = RefStore(any_root)
    with armed("after_put", matching=DIRECTORY) as fault:
        refs = store.change(naming("a"))
    assert fault.fired == 1
    assert (refs.version, set(refs.names)) == (1, {"a"})
    assert stored(any_root) == [1]


def test_change_that_did_not_arrive_is_made_again(any_root: Location) -> None:
    store = RefStore(any_root)
    with armed("before_put", matching=DIRECTORY, times=2) as fault:
        refs = store.change(naming("a"))
    assert (fault.fired, refs.version, set(refs.names)) == (2, 1, {"a"})


def test_change_whose_answer_got_lost_and_that_others_built_on(root: Location) -> None:
    store, other = RefStore(root), RefStore(root)

    def fail() -> StorageError:
        other.change(naming("b"))
        return StorageError("no answer", kind="unknown")

    with armed("after_put", fail, matching=DIRECTORY):
        refs = store.change(naming("a"))
    assert set(refs.names) == {"a", "b"}
    assert stored(root) == [1, 2]


def test_hopeless_failure_is_told(root: Location) -> None:
    with (
        armed("before_put", permanent, matching=DIRECTORY, times=None) as fault,
        pytest.raises(StorageError, match="no space left"),
    ):
        RefStore(root).change(naming("a"))
    assert fault.fired == 1
    assert RefStore(root).read() == Refs()


def test_names_that_others_change_all_the_time_are_a_conflict(root: Location) -> None:
    store, other = RefStore(root), RefStore(root)
    turn = 0

    def overtaken() -> None:
        nonlocal turn
        turn += 1
        if turn % 2:
            other.change(naming(f"n{turn}"))

    with (
        observed("before_put", overtaken, matching=DIRECTORY, times=None),
        pytest.raises(Conflict, match="retry") as caught,
    ):
        store.change(naming("a"))
    assert caught.value.details["attempts"] == ATTEMPTS
    assert "a" not in RefStore(root).read().names


# -- old versions -------------------------------------------------------------------------


@pytest.mark.slow
def test_old_versions_go_and_the_newest_stay(any_root: Location) -> None:
    store = RefStore(any_root)
    names = [f"n{number}" for number in range(MANY + 5)]
    for name in names:
        store.change(naming(name))
        assert len(stored(any_root)) <= MANY
    left = stored(any_root)
    assert left[-1] == len(names)
    assert len(left) >= KEPT
    assert left == list(range(left[0], left[-1] + 1))
    assert set(RefStore(any_root).read().names) == set(names)


def test_pruning_that_fails_is_made_up_for(root: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RefStore(root)

    def fail(_: ControlObjects, __: object) -> None:
        raise StorageError("not now", kind="transient")

    with monkeypatch.context() as patch:
        patch.setattr(ControlObjects, "delete_all", fail)
        for number in range(MANY + 2):
            store.change(naming(f"n{number}"))
    assert len(stored(root)) == MANY + 2
    store.change(naming("last"))
    assert stored(root) == list(range(MANY + 4 - KEPT, MANY + 4))


def test_stale_creator_whose_version_was_pruned_is_not_acknowledged(any_root: Location) -> None:
    """Where a version was removed it can be created once more, and means nothing."""
    stale, other = RefStore(any_root), RefStore(any_root)
    stale.change(naming("first"))
    names = [f"n{number}" for number in range(MANY)]

    def overtake() -> None:
        for name in names:
            other.change(naming(name))
        assert 2 not in stored(any_root)

    with observed("before_put", overtake, matching=DIRECTORY):
        refs = stale.change(naming("late"))
    # It did create its version: otherwise this tests nothing.
    assert 2 in stored(any_root)
    assert refs.version == MANY + 2
    for reader in (stale, other, RefStore(any_root)):
        assert set(reader.read().names) == {"first", "late", *names}


def test_reader_that_is_overtaken_reads_what_is_newest(
    root: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that a listing showed is pruned before it is read."""
    writer, reader = RefStore(root), RefStore(root)
    writer.change(naming("a"))
    real = ControlObjects.read
    overtaken = False

    def read(objects: ControlObjects, name: str) -> bytes | None:
        nonlocal overtaken
        if not overtaken:
            overtaken = True
            for number in range(MANY + 1):
                writer.change(naming(f"n{number}"))
        return real(objects, name)

    monkeypatch.setattr(ControlObjects, "read", read)
    assert len(reader.read().names) == MANY + 2


# -- what cannot be read --------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"format": 1}',
        b'{"format": "1", "epoch": 0, "names": {}}',
        b'{"format": 1, "epoch": 0, "names": {"a": {"id": "X"}}}',
    ],
)
def test_unreadable_names_are_told_and_never_overwritten(root: Location, data: bytes) -> None:
    RefStore(root).change(naming("a"))
    ControlObjects(root).create(f"{DIRECTORY}/{2:020d}.json", data)
    store = RefStore(root)
    for act in (store.read, lambda: store.change(naming("b"))):
        with pytest.raises(StorageError, match="cannot be read") as caught:
            act()
        assert caught.value.kind == "permanent"
        assert f"{DIRECTORY}/{2:020d}.json" in caught.value.message
    assert stored(root) == [1, 2]


def test_names_of_a_newer_format_are_refused(root: Location) -> None:
    """Whatever else they hold by then."""
    ControlObjects(root).create(f"{DIRECTORY}/{1:020d}.json", b'{"format": 2, "tags": []}')
    store = RefStore(root)
    for act in (store.read, lambda: store.change(naming("b"))):
        with pytest.raises(UnsupportedFormat, match="upgrade the program") as caught:
            act()
        assert caught.value.details == {"found": 2, "supported": 1}
    assert stored(root) == [1]


def test_other_files_beside_the_names_do_not_matter(root: Location) -> None:
    store = RefStore(root)
    store.change(naming("a"))
    for name in ("notes.txt", f"{2:020d}.json.tmp", "x/0003.json", "-4.json"):
        ControlObjects(root).create(f"{DIRECTORY}/{name}", b"?")
    assert set(RefStore(root).read().names) == {"a"}
    assert store.change(naming("b")).version == 2
