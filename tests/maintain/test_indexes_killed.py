"""Killing builds of indexes and optimizations: the graph is whole, and the next one does it."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery.sweep import stored_intents, sweep
from tests import profile
from tests.maintain.cleaning import clean, forget_all
from tests.maintain.index_child import WORK, count_points, work_until
from tests.maintain.indexing import book, check_filters, library, load, states
from tests.sound import check_sound
from tests.write.processes import check_chain, context
from tests.write.writing import Rows, image, mutate

pytestmark = [pytest.mark.slow, pytest.mark.soak]

FAR_FUTURE = 32_503_680_000_000_000


@pytest.mark.parametrize("work", WORK)
def test_work_that_is_killed_anywhere(
    work: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root, backup = tmp_path / "library.omni", tmp_path / "backup"
    graph = library(root, 8)
    graph.ensure_indices()
    load(graph, book(50))
    mutate(graph, 'delete Book where title = "book 0003"')
    before = image(graph)
    shutil.copytree(root, backup)
    passed = rehearse(root, work)
    assert {"intent_written", "rows_written", "table_staged", "published"} <= set(passed)
    fatal_points = places_to_die(passed, is_short=work == "optimize")
    for fatal in fatal_points:
        shutil.rmtree(root)
        shutil.copytree(backup, root)
        forget_all()
        process = context.Process(target=work_until, args=(str(root), work, fatal))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        try:
            check_left(root, work, before)
        except Exception as error:
            error.add_note(f"killed at {passed[fatal - 1]}, point {fatal}")
            raise
    record_property(f"{work}, processes killed", len(fatal_points))


def places_to_die(passed: list[str], *, is_short: bool) -> list[int]:
    """Of what happens many times, the first and the last will do; if short, the last alone."""
    places = range(1, len(passed) + 1)
    if profile.CHOSEN.every_passing:
        return list(places)
    last = {passed[place - 1]: place for place in places}
    first = {} if is_short else {passed[place - 1]: place for place in reversed(places)}
    return sorted({*first.values(), *last.values()})


def rehearse(root: Path, work: str) -> list[str]:
    answer, question = context.Pipe(duplex=False)
    process = context.Process(target=count_points, args=(str(root), work, question))
    process.start()
    passed: list[str] = answer.recv()
    process.join()
    return passed


def check_left(root: Path, work: str, before: dict[str, Rows]) -> None:
    """Every row is there, before anything is mended and after."""
    assert image(og.open(root, read_only=True)) == before
    objects = ControlObjects(og.open(root, read_only=True).location)
    intents = stored_intents(objects).intents
    graph = og.open(root)
    published = graph.commits.list()[0].actor == "builder"
    assert {intent.writer_kind for intent in intents} <= {WORK[work].kind}
    check_filters(graph)
    load(graph, book(51))
    WORK[work].run(graph)
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    check_filters(graph)
    sweep(graph.location, Manifest(graph.location), now=FAR_FUTURE)
    left = set(objects.list())
    for intent in intents:
        assert intent.name not in left
        assert published or not left.intersection(intent.files)
    check_filters(graph)
    clean(graph)
    forget_all()
    graph = og.open(root)
    check_filters(graph)
    assert set(image(graph)["node:Book"]) == {*before["node:Book"], "book 0051"}
    check_chain(root)
    check_sound(root)
