"""Killing cleanups: whatever one has left, every retained commit reads, and the next finishes."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import ChangeFeedGap
from tests.maintain.cleaning import SCHEMA, clean, forget_all, insert, shown
from tests.maintain.cleanup_child import clean_until, count_points
from tests.maintain.reachable import Lineage, reachable, stored
from tests.write.processes import context
from tests.write.writing import index_all, mutate

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A graph with two branches, an index, deletions and what a deleted branch leaves."""
    place = tmp_path / "film.omni"
    graph = og.init(place, SCHEMA)
    for name in ("ann", "bob"):
        insert(graph, name)
    graph.branches.create("dev")
    graph.branches.create("gone")
    for branch in ("main", "dev", "gone"):
        insert(graph, f"on {branch}", branch)
        mutate(graph, 'insert Knows { from: "ann", to: "bob" }', branch=branch)
        mutate(graph, 'delete Person where name = "bob"', branch=branch)
    index_all(graph, "dev")
    insert(graph, "last", "dev")
    graph.branches.delete("gone")
    return place


def test_a_cleanup_that_is_killed_anywhere(
    root: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    # At the same place each time: a branch knows where its parent lies.
    backup = tmp_path / "backup"
    shutil.copytree(root, backup)
    graph = og.open(root)
    kept = Lineage.of(graph).needed(2)
    images = {commit: shown(graph, commit) for commit in Lineage.of(graph).listed}
    passed = rehearse(root)
    assert passed[0] == "cleanup_listed"
    assert len(passed) > 12
    assert stored(root) == reachable(root, 2)
    for fatal in count(1):
        shutil.rmtree(root)
        shutil.copytree(backup, root)
        process = context.Process(target=clean_until, args=(str(root), fatal))
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        assert reachable(root, 2) <= stored(root)
        check(root, images, kept)
        clean(og.open(root), 2)
        assert stored(root) == reachable(root, 2), f"killed at passing {fatal}"
        check(root, images, kept)
    assert fatal > len(passed) // 2
    record_property("cleanups killed", fatal - 1)


def rehearse(root: Path) -> list[str]:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=count_points, args=(str(root), sender))
    process.start()
    sender.close()
    passed: list[str] = receiver.recv()
    process.join()
    assert process.exitcode == 0
    return passed


def check(root: Path, images: dict[str, tuple[str, ...]], kept: set[str]) -> None:
    """A commit shows what it always showed, or it says that it was reclaimed."""
    forget_all()
    graph = og.open(root, read_only=True)
    for commit, image in images.items():
        try:
            found = shown(graph, commit)
        except ChangeFeedGap:
            assert commit not in kept
        else:
            assert found == image
