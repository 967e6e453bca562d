"""`omnigraph status`: for people, for programs, and what its exit code says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.render.sizes import size_text
from omnigraph.cli.verbs.maintain import status
from omnigraph.maintain import wanted
from tests.maintain.cleaning import SCHEMA, insert
from tests.maintain.indexing import book, library, load

Run = Callable[..., Any]


def test_a_graph_in_order(run: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "film.omni")
    graph = og.init(uri, SCHEMA, actor="ann")
    commit = insert(graph, "bob")
    ran = run("status", uri)
    assert (ran.code, ran.err) == (0, "")
    first, blank, head, commits, branches, space, writes, *_ = ran.out.splitlines()
    assert (first, blank) == (f"{uri}: in order: nothing to do", "")
    assert head.startswith(f"head      {commit} of ")
    assert head.endswith("Z by ann on main")
    assert commits.startswith("commits   2 can be read, the oldest ")
    assert branches == "branches  1, 0 of them stale"
    assert space.endswith("stored, 0 B reclaimable")
    assert writes == "writes    0 at work, 0 dead"
    rows = [[cell.strip() for cell in line.split("|")] for line in ran.out.splitlines()]
    assert ["node:Person", "1", "1", "0", "0 of 3, 3 pending"] in [row[:5] for row in rows]


def test_what_is_due_comes_first(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = library(tmp_path / "library.omni", 2)
    for number in range(10, 27):
        load(graph, book(number))
    monkeypatch.setattr(status, "SHOWN", 1)
    monkeypatch.setattr(wanted, "FEW_FRAGMENTS", 1)
    ran = run("status", str(graph.location))
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0].endswith(": maintenance is due")
    assert lines[1].startswith("  node:Book  ")
    assert lines[1].endswith(" small fragments → run omnigraph maintain")
    assert lines[-2].startswith("node:Book")
    assert lines[-1] == "and 1 types more, all in order"


def test_damage_is_an_exit_code(run: Run, tmp_path: Path) -> None:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    insert(graph, "ann")
    uri = str(graph.location)
    people = graph.snapshot().tables["node:Person"].table.path
    body = json.loads(run("status", uri, "--branch", "main", "--json").out)
    assert (body["uri"], body["level"], body["rows"]) == (uri, "ok", 1)
    shutil.rmtree(tmp_path / "film.omni" / people / "data")
    ran = run("status", uri)
    assert ran.code == 1
    assert ": DAMAGED" in ran.out
    assert json.loads(run("status", uri, "--json").out)["level"] == "damaged"
    assert run("status", uri, "--branch", "nowhere").code == 1


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.00 kB"),
        (9_996, "10.0 kB"),
        (99_960, "100 kB"),
        (999_400, "999 kB"),
        (999_600, "1.00 MB"),
        (5 * 10**18, "5,000 PB"),
    ],
)
def test_sizes(count: int, text: str) -> None:
    assert size_text(count) == text
