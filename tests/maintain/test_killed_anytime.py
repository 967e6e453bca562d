"""Maintenance that is killed at any moment: all rows of all commits stay, and nothing is left.

Points that are named are passed in the tests beside this one; here a clock decides.
"""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from unittest.mock import patch

import pytest

import omnigraph as og
from omnigraph.maintain import wanted
from omnigraph.manifest.store import Manifest
from omnigraph.write.recovery.sweep import sweep
from tests import profile
from tests.maintain.cleaning import SCHEMA, clean, insert, shown
from tests.maintain.reachable import Lineage, reachable, stored
from tests.sound import check_sound
from tests.write.processes import context
from tests.write.writing import mutate

pytestmark = [pytest.mark.slow, pytest.mark.soak]
FAR_FUTURE = 4_000_000_000_000_000
KEPT = 3


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files, deletions, indexes that lag, and two branches."""
    root = tmp_path_factory.mktemp("seed") / "film.omni"
    graph = og.init(root, SCHEMA)
    people = [{"type": "Person", "data": {"name": f"p{number}"}} for number in range(500)]
    graph.load(people, mode="append")
    graph.ensure_indices()
    graph.branches.create("dev")
    for branch in ("main", "dev"):
        for number in range(5):
            insert(graph, f"{branch}{number}", branch)
        mutate(graph, 'insert Knows { from: "p1", to: "p2" }', branch=branch)
        mutate(graph, 'delete Person where name = "p3"', branch=branch)
    return root


def optimize(graph: og.Graph) -> None:
    graph.optimize(cluster=True)


def maintain(graph: og.Graph) -> None:
    with patch.multiple(wanted, FEW_FRAGMENTS=1, LEFTOVER_BYTES=1, MANY_COMMITS=1):
        graph.maintain(keep=KEPT, grace=timedelta(0))


def cleanup(graph: og.Graph) -> None:
    graph.cleanup(KEPT, grace=timedelta(0))


def repair(graph: og.Graph) -> None:
    graph.repair(confirm=True, force=True)


WORKS = {work.__name__: work for work in (optimize, maintain, cleanup, repair)}


def work_when_told(root: str, name: str, line: Connection) -> None:
    """Open a graph, and begin once somebody says so."""
    graph = og.open(root, actor="janitor")
    line.send("ready")
    line.recv()
    WORKS[name](graph)
    line.send("done")


def killed_after(root: Path, name: str, delay: float | None) -> float:
    """Work, and die after so many seconds; how long it took, if it was left alone."""
    here, there = context.Pipe()
    process = context.Process(target=work_when_told, args=(str(root), name, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    here.send("go")
    begun = time.monotonic()
    if delay is None:
        assert here.recv() == "done"
    else:
        time.sleep(delay)
        process.kill()
    took = time.monotonic() - begun
    process.join()
    return took


@pytest.mark.parametrize("name", WORKS)
def test_maintenance_that_is_killed_at_any_moment(
    name: str, seed: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    graph = og.open(seed, read_only=True)
    lineage = Lineage.of(graph)
    # Rounds of maintenance make commits themselves, of which so many are kept, too.
    kept = {"cleanup": lineage.needed(KEPT), "maintain": lineage.needed(1)}.get(
        name, lineage.listed
    )
    before = {commit: shown(graph, commit) for commit in kept}
    whole = tmp_path / "whole"
    shutil.copytree(seed, whole)
    longest = killed_after(whole, name, None)
    moments = random.Random(f"{profile.SEED}{name}")  # noqa: S311 - moments, not secrets
    count = profile.CHOSEN.instants // 4
    for number in range(count):
        root = tmp_path / str(number)
        shutil.copytree(seed, root)
        delay = (number + moments.random()) / count * longest
        killed_after(root, name, delay)
        try:
            check(root, name, before)
        except Exception as error:
            error.add_note(f"killed after {delay * 1e3:.1f} ms of {longest * 1e3:.1f}: {root}")
            raise
        shutil.rmtree(root)
    record_property(f"killed at any moment, {name}", count)


def check(root: Path, name: str, before: dict[str, tuple[str, ...]]) -> None:
    """Every commit shows what it showed; done again it is done, and the dead leave no file."""
    graph = og.open(root, read_only=True)
    assert {commit: shown(graph, commit) for commit in before} == before
    heads = {branch: shown(graph, graph.snapshot(branch).commit_id) for branch in ("main", "dev")}
    check_sound(root, with_crashes=True)
    graph = og.open(root, actor="next")
    insert(graph, "next")
    WORKS[name](graph)
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    clean(graph)
    assert stored(root) == reachable(root, 1)
    assert shown(graph, graph.snapshot("dev").commit_id) == heads["dev"]
    assert len(shown(graph, graph.snapshot("main").commit_id)) == len(heads["main"]) + 1
    check_sound(root)
