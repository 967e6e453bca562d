"""`omnigraph optimize`: for people, for programs, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.maintain.indexing import book, library, load

Run = Callable[..., Any]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = library(tmp_path / "library.omni", 3)
    for number in (7, 5):
        load(graph, book(number))
    return str(graph.location)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


@pytest.mark.slow
def test_optimizing(run: Run, uri: str) -> None:
    ran = run("optimize", uri, "--dry-run")
    head, _, *rows, last = ran.out.splitlines()
    assert (ran.code, last) == (0, "nothing was done: a dry run")
    assert cells(head) == ["type", "fragments", "become", "rows written", "indexes", "note"]
    assert [cells(row)[:4] for row in rows] == [
        ["edge:Cites", "0", "0", "0"],
        ["node:Book", "3", "1", "5"],
        ["__manifest", "0", "0", "0"],
    ]
    before = og.open(uri).snapshot()
    ran = run("optimize", uri, "--type", "Book", "--json", "--quiet")
    body = json.loads(ran.out)
    commit = og.open(uri).commits.list()[0].id
    assert (body["uri"], body["branch"], body["graph_commit_id"]) == (uri, "main", commit)
    assert (body["engine"], body["dry_run"]) == ("inline", False)
    books, log = body["datasets"]
    indexes = books.pop("indexes")
    assert {one["action"] for one in indexes} == {"built"}
    assert (
        books.pop("lance_head_version") == og.open(uri).snapshot().tables["node:Book"].pin.version
    )
    assert books == {
        "type_key": "node:Book",
        "fragments_removed": 3,
        "fragments_added": 1,
        "rows_rewritten": 5,
        "committed": True,
        "skipped": None,
        "published_dataset_version": before.tables["node:Book"].version + 1,
        "indexes_dropped": [],
        "pending_indexes": [],
    }
    assert (log["type_key"], log["committed"]) == ("__manifest", False)
    ran = run("optimize", "--store", uri, "--clustered", "--engine", "inline")
    assert ran.out.splitlines()[-1].startswith("optimized main in commit ")
    assert ran.err == f"omnigraph optimize → {uri} (direct, local)\n"
    assert run("optimize", uri, "--clustered").out.splitlines()[-1] == "nothing to do: no commit"
    assert run("optimize", uri, "--dry-run").out.splitlines()[-1] == "nothing to do"


def test_what_is_refused(run: Run, uri: str) -> None:
    ran = run("optimize", uri, "--type", "Bok")
    assert ran.code == 1
    assert "there is no type Bok" in ran.err
    assert "Book" in ran.err
    assert run("optimize", uri, "--engine", "flink").code == 2
    assert run("optimize", uri, "--branch", "gone").code == 1
