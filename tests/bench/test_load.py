"""The load benchmark: what it hands to every system, what it checks, and its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bench.load.data import (
    DELTA_FILE,
    EDGES_LINES,
    NAMED_EDGES_FILE,
    PEOPLE_LINES,
    LoadFiles,
)
from bench.load.systems import LANCE, Loaded
from bench.load.tables import Goal, Line, goal_table, load_table
from bench.load.workers import LoadWorker
from bench.traversal.data import EDGES_FILE, PEOPLE_FILE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> LoadFiles:
    return LoadFiles.write(tmp_path_factory.mktemp("files"), 50, 400)


def lines_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_a_system_that_lost_edges_is_found(files: LoadFiles, tmp_path: Path) -> None:
    with LoadWorker(LANCE, tmp_path) as worker:
        assert worker.load("parquet", files).seconds > 0
        with pytest.raises(RuntimeError, match="lance has 400 edges of 401"):
            worker.load("parquet", replace(files, edges=401))


def test_lines_of_json_say_what_the_tables_say(files: LoadFiles) -> None:
    people = pq.read_table(files.directory / PEOPLE_FILE).to_pylist()
    assert lines_of(files.directory / PEOPLE_LINES) == [
        {"type": "Person", "data": person} for person in people
    ]
    edges = pq.read_table(files.directory / EDGES_FILE).to_pylist()
    assert lines_of(files.directory / EDGES_LINES) == [{"edge": "Knows", **edge} for edge in edges]
    assert (len(people), len(edges), files.rows) == (50, 400, 450)


def test_half_of_the_delta_has_ids_that_are_there(files: LoadFiles) -> None:
    stored = set(pq.read_table(files.directory / NAMED_EDGES_FILE)["id"].to_pylist())
    delta = pq.read_table(files.directory / DELTA_FILE)["id"].to_pylist()
    assert len(stored) == 400
    assert len(delta) == len(set(delta)) == files.delta == 40
    assert len(stored & set(delta)) == 20
    assert len(stored | set(delta)) == files.edges_after_delta


def test_the_fastest_load_counts() -> None:
    slow, fast = Loaded(2.0, 1, {"stage": 1.5}), Loaded(0.5, 1, {"stage": 0.25})
    line = Line.fastest("ours", [slow, fast], 1_000)
    assert load_table([line]).splitlines()[1].split() == ["ours", "0.50", "2,000", "stage", "0.25"]


@pytest.mark.parametrize(("value", "verdict"), [(3.0, "reached"), (3.1, "missed")])
def test_a_goal_that_is_missed_is_told_and_fails_nothing(value: float, verdict: str) -> None:
    goal = Goal("ours / theirs", value, 1.0, 3.0)
    assert goal_table([goal]).splitlines()[1].split()[-2:] == ["3.00", verdict]
    assert goal.ratio().passed
