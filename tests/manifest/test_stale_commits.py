"""Publishing while old versions are removed: nothing acknowledged is lost, nothing is twice."""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from omnigraph.errors import ChangeFeedGap, NotFound, ReadSetChanged, StorageError
from omnigraph.manifest.ancestry import descent
from omnigraph.manifest.entries import Commit, StoredVersion
from omnigraph.manifest.publish_request import PendingCommit, PublishRequest
from omnigraph.manifest.snapshot import ancestors_of
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost
from omnigraph.storage.logs.newest_version import begin_collection
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import manifest_name, version_of
from tests.manifest.graphs import advance, make_manifest, request

PUBLISHERS = 3


def versions(root: Location) -> list[int]:
    names = ControlObjects(root.join("__manifest", "main")).list("_versions")
    return sorted(version for name in names if (version := version_of(name)) is not None)


def remove(root: Location, gone: list[int]) -> None:
    objects = ControlObjects(root.join("__manifest", "main"))
    names = objects.list("_versions")
    begin_collection(objects, max(v for name in names if (v := version_of(name)) is not None))
    objects.delete_all([manifest_name(version) for version in gone])


def overtaken(manifest: Manifest, root: Location, publishes: int) -> str:
    """Publish and remove all versions but the first and the newest; gives the newest commit."""
    for _ in range(publishes):
        head = advance(manifest).state.head_commit_id
    remove(root, versions(root)[1:-1])
    return head


@pytest.mark.parametrize("publishes", [3, 80])
def test_stale_publish_comes_after_what_it_did_not_see(
    manifest: Manifest, root: Location, publishes: int
) -> None:
    stale = Manifest(root)
    seen = stale.view()
    head = overtaken(manifest, root, publishes)
    asked = request()
    with pytest.raises(CompareAndSwapLost):
        stale.publish("main", asked, seen)
    state = stale.publish("main", asked).state
    assert state.commits[-1].parent_id == head
    ids = [commit.id for commit in Manifest(root).commits()]
    assert len(ids) == len(set(ids)) == publishes + 2
    assert ids[0] == asked.commit.id
    assert Manifest(root).view().state == state
    assert stale.view_at(state.commits[-1]).state == state


def test_stale_publish_with_an_exact_head_is_refused(manifest: Manifest, root: Location) -> None:
    stale = Manifest(root)
    seen = stale.view()
    head = overtaken(manifest, root, 4)
    asked = request(head=seen.exact)
    with pytest.raises(CompareAndSwapLost):
        stale.publish("main", asked, seen)
    with pytest.raises(ReadSetChanged) as caught:
        stale.publish("main", asked)
    assert caught.value.details["actual"] == head
    # Storage did let it through, below the newest: otherwise this tests nothing.
    assert versions(root) == [1, 2, 5]
    for reader in (manifest, stale, Manifest(root)):
        assert reader.view().state.head_commit_id == head
        with pytest.raises(NotFound):
            reader.find_commit(asked.commit.id)
    advance(manifest)
    assert asked.commit.id not in ancestors_of(Manifest(root).view())
    assert len(Manifest(root).commits()) == 6


def test_history_survives_a_stale_publish_that_sealed_it(
    manifest: Manifest, root: Location
) -> None:
    for _ in range(30):
        advance(manifest)
    stale = Manifest(root)
    seen = stale.view()
    made = [commit.id for commit in manifest.commits()]
    for _ in range(6):
        made.insert(0, advance(manifest).state.head_commit_id)
    remove(root, versions(root)[31:-1])
    foreign = tuple(
        Commit(f"F{number}", "dev", 1, "GENESIS", None, None, 1, {}, StoredVersion("ID", 1))
        for number in range(20)
    )
    merge = PublishRequest(
        PendingCommit.mint(merged_parent_id="F0"), precondition=seen.exact, ancestors=foreign
    )
    with pytest.raises(CompareAndSwapLost):
        stale.publish("main", merge, seen)
    with pytest.raises(ReadSetChanged):
        stale.publish("main", merge)
    assert versions(root)[-2:] == [32, 37]
    for _ in range(2):
        view = Manifest(root).view()
        assert [commit.id for commit in Manifest(root).commits()] == made
        known = ancestors_of(view)
        line = {commit.id for commit in descent(known[made[0]], known)}
        assert set(made) == line <= set(known)
        made.insert(0, advance(manifest).state.head_commit_id)


def test_commits_of_a_lost_merge_are_nobodys_ancestors(manifest: Manifest, root: Location) -> None:
    """It sealed what it brought along, and others were faster."""
    for _ in range(30):
        advance(manifest)
    stale = Manifest(root)
    seen = stale.view()
    overtaken_by = [advance(manifest).state.head_commit_id for _ in range(3)]
    remove(root, versions(root)[31:-1])
    theirs = Commit("THEIRS", "dev", 1, "GENESIS", None, None, 1, {}, StoredVersion("ID", 1))
    more = tuple(
        Commit(f"F{number}", "dev", 1, "GENESIS", None, None, 1, {}, StoredVersion("ID", 1))
        for number in range(20)
    )
    merge = PublishRequest(
        PendingCommit.mint(merged_parent_id="THEIRS"),
        precondition=seen.exact,
        ancestors=(theirs, *more),
    )
    with pytest.raises(CompareAndSwapLost):
        stale.publish("main", merge, seen)
    with pytest.raises(ReadSetChanged):
        stale.publish("main", merge)
    view = Manifest(root).view()
    assert view.state.head_commit_id == overtaken_by[-1]
    assert "THEIRS" not in ancestors_of(view)
    with pytest.raises(NotFound):
        Manifest(root).find_commit("THEIRS")


def test_version_of_a_reclaimed_commit_that_a_stale_one_took_is_not_its_state(
    manifest: Manifest, root: Location
) -> None:
    stale = Manifest(root).view()
    reclaimed = advance(manifest).state.commits[-1]
    overtaken(manifest, root, 3)
    with pytest.raises(CompareAndSwapLost):
        stale.log.replace_head(stale.log.head())
    assert reclaimed.stored.version in versions(root)
    for reader in (manifest, Manifest(root)):
        assert reader.find_state(reclaimed) is None
        with pytest.raises(ChangeFeedGap):
            reader.view_at(reclaimed)


# -- many at once --------------------------------------------------------------------------


def publish_all(uri: str, actor: str, publishes: int) -> list[str]:
    """Publish commits and give their ids; what is not told to be there is asked for again."""
    root = Location.parse(uri)
    chance = random.Random(actor)  # noqa: S311 - to be repeatable
    manifest = Manifest(root)
    acknowledged: list[str] = []
    for _ in range(publishes):
        asked = request(actor=actor)
        # A handle that has seen nothing for long is stale by many versions.
        handles = (manifest, Manifest(root)) if chance.random() < 0.5 else (manifest,)
        while asked.commit.id not in acknowledged:
            try:
                handles[-1].publish("main", asked)
            except CompareAndSwapLost:
                continue
            except StorageError as error:
                # Removed before it was read: no collector is as eager as the one here.
                if error.kind != "not_found":
                    raise
            else:
                acknowledged.append(asked.commit.id)
    return acknowledged


def collect(root: Location, done: Event) -> int:
    """Remove any version but the newest until told to stop; gives how many."""
    chance = random.Random(0)  # noqa: S311 - to be repeatable
    removed = 0
    while not done.is_set():
        old = [version for version in versions(root)[:-1] if chance.random() < 0.6]
        remove(root, old)
        removed += len(old)
    return removed


def check(root: Location, acknowledged: list[list[str]]) -> None:
    commits = Manifest(root).commits()
    ids = [commit.id for commit in commits]
    told = [id_ for of_one in acknowledged for id_ in of_one]
    assert sorted(ids) == sorted(["GENESIS", *told]), "each once"
    assert [commit.parent_id for commit in commits] == [*ids[1:], None]


@pytest.mark.slow
def test_threads_publish_while_versions_are_removed(any_root: Location) -> None:
    make_manifest(any_root)
    done = Event()
    with ThreadPoolExecutor(PUBLISHERS + 1) as pool:
        collecting = pool.submit(collect, any_root, done)
        try:
            work = [pool.submit(publish_all, any_root.uri, f"a{n}", 20) for n in range(PUBLISHERS)]
            acknowledged = [of_one.result() for of_one in work]
        finally:
            done.set()
        assert collecting.result() > 0
    check(any_root, acknowledged)


@pytest.mark.slow
def test_processes_publish_while_versions_are_removed(any_root: Location) -> None:
    make_manifest(any_root)
    done = Event()
    with (
        ThreadPoolExecutor(1) as collector,
        multiprocessing.get_context("spawn").Pool(PUBLISHERS) as pool,
    ):
        collecting = collector.submit(collect, any_root, done)
        try:
            work = [(any_root.uri, f"a{number}", 40) for number in range(PUBLISHERS)]
            acknowledged = pool.starmap(publish_all, work, chunksize=1)
        finally:
            done.set()
        assert collecting.result() > 0
    check(any_root, acknowledged)
