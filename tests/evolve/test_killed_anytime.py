"""Schema changes killed at any moment: all of it or nothing, and what is left is collected."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.manifest.root_copies import copies_of
from omnigraph.manifest.store import Manifest
from omnigraph.write.recovery import intent_scope
from omnigraph.write.recovery.sweep import sweep
from tests import profile
from tests.evolve.evolving import Rows, edge, make, node, run, shown
from tests.maintain.reachable import reachable, stored
from tests.write.processes import context

pytestmark = [pytest.mark.slow, pytest.mark.soak]
PIECES = 8
FAR_FUTURE = 4_000_000_000_000_000
SCHEMA = """\
node Person { name: String @key  age: I32?  mail: String? }
node Film { title: String @key }
edge Knows: Person -> Person { since: I32? }
"""
AFTER = """\
node Person { name: String @key  years: I64 @default(-1) @rename_from("age")
              mail: String? @unique  rank: I32 @default(5)  tags: [String]? }
node Song { title: String @key }
node Band { name: String @key }
edge Met: Person -> Person @rename_from("Knows") { since: I32?  @key(src, dst) }
edge Plays: Band -> Song
"""


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph whose tables lie in several pieces, some of them with holes."""
    root = tmp_path_factory.mktemp("seed") / "graph"
    graph = make(root, SCHEMA)
    for piece in range(PIECES):
        names = [f"p{piece}-{n}" for n in range(20)]
        people = [node("Person", name=name, age=piece, mail=name) for name in names]
        links = [edge("Knows", names[n], names[n + 1]) for n in range(5)]
        graph.load([*people, *links], mode="append")
        run(graph, f'delete Person where name = "p{piece}-7"')
    run(graph, 'update Person set { age: null } where name = "p3-3"')
    return root


def apply_when_told(root: str, is_announced: bool, line: Connection) -> None:
    """Change the schema as soon as somebody watches; tells when it is over."""
    if is_announced:
        intent_scope.REQUEST_BYTES = -1
    graph = og.open(root, actor="crasher")
    graph.snapshot()
    line.send("ready")
    line.recv()
    graph.apply_schema(AFTER)
    line.send("done")


def killed_after(root: Path, is_announced: bool, delay: float | None) -> float:
    """Run the change, and kill it after so many seconds; how long it took, if it was left."""
    here, there = context.Pipe()
    process = context.Process(target=apply_when_told, args=(str(root), is_announced, there))
    process.start()
    there.close()
    assert here.recv() == "ready"
    here.send("go")
    begun = time.monotonic()
    if delay is None:
        assert here.recv() == "done"
        took = time.monotonic() - begun
    else:
        took = delay
        time.sleep(delay)
        process.kill()
    process.join()
    return took


def check(root: Path, before: Rows, after: Rows) -> bool:
    """Everything that must be so, whenever the process died; whether it had happened."""
    looking = og.open(root, read_only=True)
    happened = looking.schema == AFTER
    assert happened or looking.schema == SCHEMA
    assert shown(looking) == (after if happened else before)
    graph = og.open(root, actor="next")
    for name, copy in copies_of(graph.manifest.view().state.schema).items():
        assert (root / name).read_bytes() == copy, "a copy of the schema lags"
    assert graph.apply_schema(AFTER).applied == (not happened)
    assert shown(graph) == after
    run(graph, 'insert Person { name: "Next" } insert Song { title: "Hey" }')
    now = shown(graph)
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    assert graph.cleanup(1, grace=timedelta(0)).errors == {}
    for place in ("nodes/", "edges/"):
        found, needed = (
            {name for name in names if name.startswith(place)}
            for names in (stored(root), reachable(root))
        )
        assert found == needed
    assert shown(og.open(root)) == now
    return happened


@pytest.mark.parametrize("is_announced", [False, True], ids=["small", "announced"])
def test_a_change_that_is_killed_at_any_moment(
    seed: Path,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
    is_announced: bool,
) -> None:
    before = shown(og.open(seed, read_only=True))
    whole = tmp_path / "whole"
    shutil.copytree(seed, whole)
    longest = killed_after(whole, is_announced, None)
    after = shown(og.open(whole, read_only=True))
    assert len(after["Person"]) == len(before["Person"])
    moments = random.Random(f"{profile.SEED}{is_announced}")  # noqa: S311 - moments, not secrets
    outcomes = []
    for number in range(profile.CHOSEN.instants // 2):
        root = tmp_path / str(number)
        shutil.copytree(seed, root)
        delay = moments.uniform(0, 1.2 * longest)
        killed_after(root, is_announced, delay)
        try:
            outcomes.append(check(root, before, after))
        except Exception as error:
            error.add_note(f"killed after {delay * 1e3:.1f} ms of {longest * 1e3:.1f}: {root}")
            raise
        shutil.rmtree(root)
    record_property("schema changes killed at any moment", len(outcomes))
    record_property("of which had happened", sum(outcomes))
    # However the machine was busy, some die before the publish.
    assert not all(outcomes)
