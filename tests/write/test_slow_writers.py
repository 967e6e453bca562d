"""A write that nobody has announced and that took too long does not publish."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import Conflict
from omnigraph.storage import faults
from omnigraph.write import announcement
from omnigraph.write.intents import microseconds, microseconds_now
from tests.film_graph import SCHEMA
from tests.write.writing import mutate, unchanged


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "film.omni", SCHEMA)


def test_a_writer_that_slept_starts_anew(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    # Files as old as this may be gone, and what they were to say with them.
    slept = microseconds_now() + microseconds(announcement.PATIENCE + timedelta(seconds=1))

    def sleep() -> None:
        monkeypatch.setattr(announcement, "microseconds_now", lambda: slept)

    with (
        unchanged(graph),
        faults.observed("table_staged", sleep),
        pytest.raises(Conflict, match="took longer than 0:30:00"),
    ):
        mutate(graph, 'insert Person { name: "Ann" }')
    monkeypatch.undo()
    assert mutate(graph, 'insert Person { name: "Ann" }').commit is not None
