"""Bulk loads that are killed at any moment, with all their threads: whole or not there, and clean.

Points that are named are passed in tests/pipeline/test_atomic.py; here a clock decides.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery.intents import STAGING
from omnigraph.write.recovery.sweep import sweep
from tests import profile
from tests.pipeline import kill_points
from tests.pipeline.engines import content, run_tasks_here
from tests.pipeline.killing import FAR_FUTURE, RUN
from tests.s3_server import S3Server
from tests.sound import check_sound
from tests.write.processes import context

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key
 mail: String? @unique }
edge Knows: Person -> Person @card(0..2)
"""
OPTIONS: dict[str, Any] = {"mode": "merge", "on_error": "skip", "run_id": RUN}
STORED = [
    {"type": "Person", "data": {"name": "p1", "mail": "m9"}},
    {"type": "Person", "data": {"name": "old"}},
    {"edge": "Knows", "from": "old", "to": "p1"},
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Tables that replace what is stored, and have some rows that are wrong."""
    place = tmp_path_factory.mktemp("files")
    people = [f"p{number},m{number % 990}" for number in range(1_000)]
    knows = [f"p{number},p{number * 7 % 1_010}" for number in range(1_500)]
    (place / "Person.csv").write_text("\n".join(["name,mail", *people, ""]))
    (place / "Knows.csv").write_text("\n".join(["from,to", *knows, ""]))
    return [str(place / "Person.csv"), str(place / "Knows.csv")]


@pytest.mark.parametrize("way", ["inline", "spark"])
def test_on_a_local_disk(
    way: str,
    files: list[str],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    seed = tmp_path / "seed"
    og.init(seed, SCHEMA).load(STORED, mode="append")

    def fresh(name: str) -> str:
        shutil.copytree(seed, tmp_path / name)
        return str(tmp_path / name)

    check_instants(way, files, fresh, profile.CHOSEN.instants // 3, record_property)


def test_on_an_object_store(
    files: list[str],
    s3_server: S3Server,
    s3_bucket: str,
    record_property: Callable[[str, object], None],
) -> None:
    def fresh(name: str) -> str:
        og.init(f"{s3_bucket}/{name}", SCHEMA).load(STORED, mode="append")
        return f"{s3_bucket}/{name}"

    check_instants("inline", files, fresh, profile.CHOSEN.instants // 6, record_property)
    assert not s3_server.uploads()


def check_instants(
    way: str,
    files: Sequence[str],
    fresh: Callable[[str], str],
    count: int,
    record_property: Callable[[str, object], None],
) -> None:
    """Kill so many loads of copies of one graph, each at some moment."""
    whole = fresh("whole")
    before = content(og.open(whole, read_only=True))
    longest = killed_after(whole, files, way, None)
    after = content(og.open(whole, read_only=True))
    moments = random.Random(f"{profile.SEED}{way}")  # noqa: S311 - moments, not secrets
    happened = 0
    for number in range(count):
        # One in each part of the time that it takes.
        delay = (number + moments.random()) / count * 1.1 * longest
        root = fresh(str(number))
        killed_after(root, files, way, delay)
        try:
            happened += check_left(root, files, way, before, after)
        except Exception as error:
            error.add_note(f"killed after {delay:.3f} s of {longest:.3f}: {root}")
            raise
    record_property(f"loads killed at any moment, {way}", count)
    assert happened < count


def killed_after(root: str, files: Sequence[str], way: str, delay: float | None) -> float:
    """Load, and die after so many seconds; how long it took, if it was left alone."""
    here, there = context.Pipe()
    aws = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    process = context.Process(
        target=kill_points.load_when_told,
        args=(root, list(files), OPTIONS, way),
        kwargs={"environment": aws, "line": there},
    )
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


def check_left(
    root: str, files: Sequence[str], way: str, before: list[str], after: list[str]
) -> bool:
    """It has happened or not; done again it has happened once, and nothing is left of the dead."""
    found = content(og.open(root, read_only=True))
    happened = found == after
    assert happened or found == before
    graph = og.open(root, actor="next")
    # Nobody waits for the dead: the next load goes on at once.
    with pytest.MonkeyPatch.context() as patch:
        if way == "spark":
            run_tasks_here(patch)
        done = graph.load(list(files), engine=way, **OPTIONS)
    assert done.repeats_run == happened
    assert content(graph) == after
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    assert not ControlObjects(graph.location.join(STAGING)).list()
    assert graph.cleanup(keep=1, grace=timedelta(0)).errors == {}
    assert content(og.open(root)) == after
    check_sound(root)
    return happened
