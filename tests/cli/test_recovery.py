"""`omnigraph recovery list`: for people, for programs, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.results import Recovery, TableOutcome
from omnigraph.write.recovery.sweep import record
from tests.film_graph import SCHEMA, files

Run = Callable[..., Any]

DONE = [
    Recovery(
        "01KA5QWZ7N4T3M8YB0C2D6E9FG",
        "RolledBack",
        "ann",
        "01KA5QWZ7N4T3M8YB0C2D6E9FH",
        "Load",
        (TableOutcome("node:Film", 1, 1), TableOutcome("node:Person", 3, 3)),
        1_769_860_800_000_000,
    ),
    Recovery(
        "01KA5QWZ7N4T3M8YB0C2D6E9FJ",
        "RolledForward",
        None,
        "01KA5QWZ7N4T3M8YB0C2D6E9FK",
        "Optimize",
        (TableOutcome("node:Person", 3, 4),),
        1_769_947_200_000_001,
    ),
]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "film.omni"
    og.init(path, SCHEMA)
    return str(path)


@pytest.fixture
def recovered(uri: str) -> str:
    for done in DONE:
        record(Location.parse(uri), done)
    return uri


def test_for_people_newest_first(run: Run, recovered: str) -> None:
    ran = run("recovery", "list", recovered)
    assert (ran.code, ran.err) == (0, "")
    head, rule, *rows = ran.out.splitlines()
    assert [cell.strip() for cell in head.split("|")] == [
        *("operation", "outcome", "writer", "actor", "commit", "recovered", "tables")
    ]
    assert set(rule) == {"-", "+"}
    assert [[cell.strip() for cell in row.split("|")] for row in rows] == [
        [
            "01KA5QWZ7N4T3M8YB0C2D6E9FK",
            "RolledForward",
            "Optimize",
            "",
            "01KA5QWZ7N4T3M8YB0C2D6E9FJ",
            "2026-02-01T12:00:00Z",
            "node:Person 3 → 4",
        ],
        [
            "01KA5QWZ7N4T3M8YB0C2D6E9FH",
            "RolledBack",
            "Load",
            "ann",
            "01KA5QWZ7N4T3M8YB0C2D6E9FG",
            "2026-01-31T12:00:00Z",
            "node:Film 1, node:Person 3",
        ],
    ]


def test_for_programs(run: Run, recovered: str) -> None:
    ran = run("recovery", "list", "--store", recovered, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "recoveries": [
            {
                "graph_commit_id": "01KA5QWZ7N4T3M8YB0C2D6E9FJ",
                "recovery_kind": "RolledForward",
                "recovery_for_actor": None,
                "operation_id": "01KA5QWZ7N4T3M8YB0C2D6E9FK",
                "writer_kind": "Optimize",
                "tables": [{"table_key": "node:Person", "from_version": 3, "to_version": 4}],
                "created_at": 1_769_947_200_000_001,
            },
            {
                "graph_commit_id": "01KA5QWZ7N4T3M8YB0C2D6E9FG",
                "recovery_kind": "RolledBack",
                "recovery_for_actor": "ann",
                "operation_id": "01KA5QWZ7N4T3M8YB0C2D6E9FH",
                "writer_kind": "Load",
                "tables": [
                    {"table_key": "node:Film", "from_version": 1, "to_version": 1},
                    {"table_key": "node:Person", "from_version": 3, "to_version": 3},
                ],
                "created_at": 1_769_860_800_000_000,
            },
        ]
    }


def test_a_graph_without_recoveries_and_nothing_is_written(run: Run, uri: str) -> None:
    before = files(Path(uri))
    assert json.loads(run("recovery", "list", uri, "--json").out) == {"recoveries": []}
    ran = run("recovery", "list", uri)
    assert (ran.code, len(ran.out.splitlines())) == (0, 2)
    assert files(Path(uri)) == before


def test_it_takes_no_actor(run: Run, uri: str) -> None:
    ran = run("recovery", "list", uri, "--as", "ann")
    assert ran.code == 2
    assert "`recovery list` is a data command and takes no --as" in ran.err


def test_there_must_be_a_graph(run: Run, tmp_path: Path) -> None:
    assert run("recovery", "list", str(tmp_path / "none")).code == 1
    assert run("recovery", "list").code == 2
