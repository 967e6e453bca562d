"""Races: several processes publish to one branch, and no commit is lost or forked."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from multiprocessing.synchronize import Barrier

import pytest

from omnigraph.errors import Conflict, VersionMismatch
from omnigraph.manifest.branches import BranchRefs
from omnigraph.manifest.publish_request import AdvanceTable
from omnigraph.manifest.store import Manifest
from omnigraph.storage.logs.head_log import CompareAndSwapLost
from omnigraph.storage.objects.location import Location
from tests import profile
from tests.manifest.graphs import KNOWS, PERSON, advance, fork, make_manifest, pin, request

PROCESSES = 4
PUBLISHES = profile.CHOSEN.publishes
NEW_BRANCHES = 10

starting_line: list[Barrier] = []
"""Of a worker: where all workers wait for each other."""


def publish_many(uri: str, branch: str, actor: str, publishes: int) -> int:
    """Publish to a table everybody writes; gives how often another one was first."""
    manifest = Manifest(Location.parse(uri))
    lost = done = 0
    view = manifest.view(branch)
    branch_id, state = view.branch_id, view.state
    while done < publishes:
        expected = state.current_version(PERSON)
        asked = request(AdvanceTable(PERSON, expected, pin(expected)), actor=actor)
        try:
            state = manifest.publish(branch_id, asked).state
            done += 1
        except (VersionMismatch, CompareAndSwapLost):
            lost += 1
            state = manifest.view(branch).state
    return lost


def publish_disjoint(uri: str, branch: str, actor: str, publishes: int) -> int:
    """Publish commits that contradict nobody's: only the head is contended."""
    manifest = Manifest(Location.parse(uri))
    branch_id = manifest.branch_id(branch)
    lost = 0
    for _ in range(publishes):
        asked = request(actor=actor)
        while True:
            try:
                manifest.publish(branch_id, asked)
            except CompareAndSwapLost:
                lost += 1
            else:
                break
    return lost


def line_up(line: Barrier) -> None:
    """Begin a worker: a barrier is handed over at the start of a process, or not at all."""
    starting_line.append(line)


def create_branches(uri: str) -> list[bool]:
    """Create the same branches as everybody else, each at the same moment; tells which were won."""
    refs = BranchRefs(Manifest(Location.parse(uri)))
    refs.manifest.view()
    won: list[bool] = []
    for number in range(NEW_BRANCHES):
        starting_line[0].wait(timeout=60)
        try:
            refs.create(f"dev{number}")
        except Conflict:
            won.append(False)
        else:
            won.append(True)
    return won


def check_chain(root: Location, branch: str, publishes: dict[str, int]) -> None:
    commits = Manifest(root).commits(branch)[::-1]
    assert len(commits) == 1 + sum(publishes.values())
    assert [commit.parent_id for commit in commits] == [None, *(c.id for c in commits[:-1])]
    assert [commit.manifest_version for commit in commits] == list(range(1, len(commits) + 1))
    assert Counter(commit.actor for commit in commits[1:]) == publishes


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("work", [publish_many, publish_disjoint])
def test_processes_make_one_unbroken_chain(any_root: Location, work: object) -> None:
    make_manifest(any_root)
    actors = [f"actor{number}" for number in range(PROCESSES)]
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.starmap(
            work,  # type: ignore[arg-type]
            [(any_root.uri, "main", actor, PUBLISHES) for actor in actors],
            chunksize=1,
        )
    check_chain(any_root, "main", dict.fromkeys(actors, PUBLISHES))
    state = Manifest(any_root).view().state
    total = PROCESSES * PUBLISHES if work is publish_many else 0
    assert state.current_version(PERSON) == 1 + total
    assert state.current_version(KNOWS) == 1


@pytest.mark.slow
@pytest.mark.soak
def test_processes_on_different_branches_do_not_disturb_each_other(root: Location) -> None:
    manifest = make_manifest(root)
    names = ["main", "a", "b"]
    for name in names[1:]:
        fork(manifest, name)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        lost = pool.starmap(
            publish_many, [(root.uri, name, name, PUBLISHES) for name in names], chunksize=1
        )
    assert lost == [0, 0, 0]
    for name in names:
        check_chain(root, name, {name: PUBLISHES})


@pytest.mark.slow
def test_processes_creating_one_branch_have_one_winner(any_root: Location) -> None:
    manifest = make_manifest(any_root)
    spawn = multiprocessing.get_context("spawn")
    line = spawn.Barrier(PROCESSES)
    with spawn.Pool(PROCESSES, initializer=line_up, initargs=(line,)) as pool:
        won = pool.map(create_branches, [any_root.uri] * PROCESSES, chunksize=1)
    assert [sum(winners) for winners in zip(*won, strict=True)] == [1] * NEW_BRANCHES
    names = [f"dev{number}" for number in range(NEW_BRANCHES)]
    assert BranchRefs(Manifest(any_root)).list() == [*names, "main"]
    for name in names:
        assert advance(manifest, name).state.version == 2
        assert Manifest(any_root).view(name).state.version == 2
