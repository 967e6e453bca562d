"""Writers that slept: what counts is whether a collection has begun, not how long it took."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery import intents
from tests import faults
from tests.film_graph import SCHEMA
from tests.write.beside import DAY, collect, collect_ahead, meanwhile, reopened
from tests.write.writing import mutate, rows

NIGHT = timedelta(hours=9)
INSERT = 'insert Person { name: "Ann" }'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "film.omni", SCHEMA)


def sleep(monkeypatch: pytest.MonkeyPatch, slept: timedelta) -> None:
    """Let the writer's clock be so much later than it was."""
    later = microseconds_now() + intents.microseconds(slept)
    monkeypatch.setattr(intents, "microseconds_now", lambda: later)


def data_files(graph: og.Graph) -> int:
    path = graph.snapshot().tables["node:Person"].table.path
    return len(ControlObjects(graph.location).list(f"{path}/data"))


@pytest.mark.parametrize("point", ["table_staged", "publish_ready"])
@pytest.mark.parametrize("slept", [timedelta(minutes=31), NIGHT, -NIGHT])
def test_a_writer_that_slept_just_publishes(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, point: str, slept: timedelta
) -> None:
    with (
        faults.observed(point, lambda: sleep(monkeypatch, slept)) as fault,
        faults.observed("rows_written", list, times=None) as staged,
    ):
        result = mutate(graph, INSERT)
    assert (fault.fired, staged.fired) == (1, 1)
    assert result.commit is not None
    assert result.commit.id == reopened(graph).snapshot().commit_id
    assert rows(reopened(graph), "Person").keys() == {"Ann"}


@pytest.mark.parametrize("point", ["table_staged", "publish_ready"])
@pytest.mark.parametrize("ahead", [timedelta(0), NIGHT, DAY, -DAY])
def test_a_writer_that_slept_through_a_collection_stages_again(
    graph: og.Graph, point: str, ahead: timedelta
) -> None:
    with (
        meanwhile(graph, point, collect_ahead(ahead)) as fault,
        faults.observed("rows_written", list, times=None) as staged,
    ):
        result = mutate(graph, INSERT)
    assert (fault.fired, staged.fired) == (1, 2)
    assert result.commit is not None
    assert graph.commits.list()[0].id == result.commit.id
    assert rows(reopened(graph), "Person").keys() == {"Ann"}
    # What it had staged before is gone, and so is all that it does not need.
    collect(graph)
    assert data_files(graph) == 1
    assert rows(reopened(graph), "Person").keys() == {"Ann"}
