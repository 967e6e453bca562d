"""Races: several processes publish to one branch, and no commit is lost or forked."""

from __future__ import annotations

import multiprocessing
from collections import Counter

import pytest

from omnigraph.errors import Conflict, VersionMismatch
from omnigraph.manifest.changes import AdvanceTable
from omnigraph.manifest.store import Manifest
from omnigraph.storage.location import Location
from tests.manifest.graphs import KNOWS, PERSON, make_manifest, pin, request

PROCESSES = 4


def publish_many(uri: str, branch: str, actor: str, publishes: int) -> int:
    """Publish to a table everybody writes; gives how often another one was first."""
    manifest = Manifest(Location.parse(uri))
    lost = done = 0
    state = manifest.view(branch).state
    while done < publishes:
        expected = state.current_version(PERSON)
        asked = request(AdvanceTable(PERSON, expected, pin(expected)), actor=actor)
        try:
            state = manifest.publish(branch, asked).state
            done += 1
        except (VersionMismatch, Conflict):
            lost += 1
            state = manifest.view(branch).state
    return lost


def publish_disjoint(uri: str, branch: str, actor: str, publishes: int) -> int:
    """Publish commits that contradict nobody's: only the head is contended."""
    manifest = Manifest(Location.parse(uri))
    lost = 0
    for _ in range(publishes):
        asked = request(actor=actor)
        while True:
            try:
                manifest.publish(branch, asked)
            except Conflict:
                lost += 1
            else:
                break
    return lost


def check_chain(root: Location, branch: str, publishes: dict[str, int]) -> None:
    commits = Manifest(root).commits(branch)[::-1]
    assert len(commits) == 1 + sum(publishes.values())
    assert [commit.parent_id for commit in commits] == [None, *(c.id for c in commits[:-1])]
    assert [commit.manifest_version for commit in commits] == list(range(1, len(commits) + 1))
    assert Counter(commit.actor for commit in commits[1:]) == publishes


@pytest.mark.slow
@pytest.mark.parametrize("work", [publish_many, publish_disjoint])
def test_processes_make_one_unbroken_chain(any_root: Location, work: object) -> None:
    publishes = 50 if any_root.is_local else 12
    make_manifest(any_root)
    actors = [f"actor{number}" for number in range(PROCESSES)]
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        pool.starmap(
            work,  # type: ignore[arg-type]
            [(any_root.uri, "main", actor, publishes) for actor in actors],
            chunksize=1,
        )
    check_chain(any_root, "main", dict.fromkeys(actors, publishes))
    state = Manifest(any_root).view().state
    total = PROCESSES * publishes if work is publish_many else 0
    assert state.current_version(PERSON) == 1 + total
    assert state.current_version(KNOWS) == 1


@pytest.mark.slow
def test_processes_on_different_branches_do_not_disturb_each_other(root: Location) -> None:
    manifest = make_manifest(root)
    names = ["main", "a", "b"]
    for name in names[1:]:
        manifest.create_branch(name, "main")
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        lost = pool.starmap(
            publish_many, [(root.uri, name, name, 30) for name in names], chunksize=1
        )
    assert lost == [0, 0, 0]
    for name in names:
        check_chain(root, name, {name: 30})
