"""Killing rounds of maintenance: no row is lost, and the next round comes to the same end."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.maintain import reconcile, wanted
from tests.maintain.cleaning import SCHEMA, forget_all, insert
from tests.maintain.maintain_child import count_points, maintain_until
from tests.write.processes import check_chain, context
from tests.write.writing import image

pytestmark = pytest.mark.slow


def test_a_round_that_is_killed_anywhere(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    monkeypatch.setattr(wanted, "FEW_FRAGMENTS", 1)
    monkeypatch.setattr(wanted, "LEFTOVER_BYTES", 1)
    monkeypatch.setattr(wanted, "MANY_COMMITS", 1)
    monkeypatch.setattr(reconcile, "CLAIMED", timedelta(0))
    root, backup = tmp_path / "film.omni", tmp_path / "backup"
    graph = og.init(root, SCHEMA)
    for number in range(18):
        insert(graph, f"p{number}")
    before = image(graph)
    shutil.copytree(root, backup)
    answer, question = context.Pipe(duplex=False)
    process = context.Process(target=count_points, args=(str(root), question))
    process.start()
    passed: list[str] = answer.recv()
    process.join()
    assert {"intent_written", "rows_written", "published", "cleanup_deleting"} <= set(passed)
    # Each kind of point once, the last passing of it.
    fatal_points = sorted({point: place for place, point in enumerate(passed, 1)}.values())
    for fatal in fatal_points:
        shutil.rmtree(root)
        shutil.copytree(backup, root)
        forget_all()
        process = context.Process(target=maintain_until, args=(str(root), fatal))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        try:
            assert image(og.open(root, read_only=True)) == before
            graph = og.open(root)
            graph.maintain(keep=3, grace=timedelta(0))
            report = graph.maintain(keep=3, grace=timedelta(0))
            assert (report.left, report.failed) == ((), ())
            assert not [step for step in report.done if step.work == "optimize"]
            assert image(graph) == before
            status = graph.status()
            assert [one.due for one in status.types if one.due] == []
            assert status.level != "damaged"
            check_chain(root)
        except Exception as error:
            error.add_note(f"killed at {passed[fatal - 1]}, point {fatal}")
            raise
    record_property("rounds of maintenance, processes killed", len(fatal_points))
