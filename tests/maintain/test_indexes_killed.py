"""Killing builds of indexes: the graph is whole, and the next build does it."""

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
from tests.maintain.cleaning import clean, forget_all
from tests.maintain.index_child import build_until, count_points
from tests.maintain.indexing import book, check_filters, library, load, states
from tests.write.processes import check_chain, context
from tests.write.writing import Rows, image

pytestmark = pytest.mark.slow

FAR_FUTURE = 32_503_680_000_000_000


def test_a_build_that_is_killed_anywhere(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    root, backup = tmp_path / "library.omni", tmp_path / "backup"
    graph = library(root, 8)
    graph.ensure_indices()
    load(graph, book(50))
    before = image(graph)
    shutil.copytree(root, backup)
    passed = rehearse(root)
    assert {"intent_written", "rows_written", "table_staged", "published"} <= set(passed)
    for fatal in range(1, len(passed) + 1):
        shutil.rmtree(root)
        shutil.copytree(backup, root)
        forget_all()
        process = context.Process(target=build_until, args=(str(root), fatal))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        try:
            check_left(root, before)
        except Exception as error:
            error.add_note(f"killed at {passed[fatal - 1]}, point {fatal}")
            raise
    record_property("builds of indexes, processes killed", len(passed))


def rehearse(root: Path) -> list[str]:
    answer, question = context.Pipe(duplex=False)
    process = context.Process(target=count_points, args=(str(root), question))
    process.start()
    passed: list[str] = answer.recv()
    process.join()
    return passed


def check_left(root: Path, before: dict[str, Rows]) -> None:
    """Every row is there, before anything is mended and after."""
    assert image(og.open(root, read_only=True)) == before
    objects = ControlObjects(og.open(root, read_only=True).location)
    intents = stored_intents(objects).intents
    graph = og.open(root)
    published = graph.commits.list()[0].actor == "builder"
    assert {intent.writer_kind for intent in intents} <= {"EnsureIndices"}
    check_filters(graph)
    load(graph, book(51))
    graph.ensure_indices()
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
