"""`omnigraph index`: for people, for programs, and refused."""

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
    return str(library(tmp_path / "library.omni").location)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def test_status_for_people(run: Run, uri: str) -> None:
    ran = run("index", "status", uri)
    assert (ran.code, ran.err) == (0, "")
    heading, head, _, *rows = ran.out.splitlines()
    assert heading == f"branch main, commit {og.open(uri).snapshot().commit_id}"
    assert cells(head) == ["type", "property", "index", "rows covered", "state", "reason"]
    assert [
        *("node:Book", "blurb", "NGRAM", "0 of 20", "pending", "not built yet"),
    ] in [cells(row) for row in rows]
    run("index", "ensure", uri)
    load(og.open(uri), book(50))
    shown = [cells(row) for row in run("index", "status", uri).out.splitlines()]
    assert ["node:Book", "pages", "BTREE", "20 of 21", "partial"] in [row[:5] for row in shown]
    assert ["edge:Cites", "src", "BTREE", "19 of 19", "complete"] in [row[:5] for row in shown]


def test_status_for_programs(run: Run, uri: str) -> None:
    run("index", "ensure", uri)
    ran = run("index", "status", uri, "--json")
    body = json.loads(ran.out)
    assert (body["uri"], body["branch"]) == (uri, "main")
    assert body["graph_commit_id"] == og.open(uri).snapshot().commit_id
    found = {(one["type_key"], one["property"], one["kind"]): one for one in body["indexes"]}
    pages = found["node:Book", "pages", "BTREE"]
    assert pages.pop("size_bytes") > 0
    assert pages == {
        "type_key": "node:Book",
        "property": "pages",
        "kind": "BTREE",
        "state": "complete",
        "rows_covered": 20,
        "rows_total": 20,
        "uncovered_fragments": 0,
        "segments": 1,
        "why": "@index on I64",
        "reason": None,
    }
    assert found["node:Book", "genre, pages", None]["state"] == "none"


def test_ensure_for_people(run: Run, uri: str) -> None:
    ran = run("index", "ensure", uri)
    assert ran.code == 0
    assert ran.err == f"omnigraph index ensure → {uri} (direct, local)\n"
    head, _, *rows, done = ran.out.splitlines()
    assert cells(head) == ["type", "property", "index", "what was done", "rows", "reason"]
    assert ["node:Book", "title", "BTREE", "built", "20"] in [cells(row)[:5] for row in rows]
    assert done == f"13 indexes in commit {og.open(uri).snapshot().commit_id}"
    assert run("index", "ensure", uri).out.splitlines()[-1] == "nothing to do: no commit"


def test_ensure_for_programs(run: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "notes.omni")
    graph = og.init(uri, "node Note { name: String @key  like: Vector(2)? @index }")
    body = json.loads(run("--quiet", "index", "ensure", uri, "--json").out)
    assert body["graph_commit_id"] is None
    assert {"type_key": "node:Note", "property": "like", "reason": "the table is empty"} in body[
        "pending"
    ]
    load(graph, {"type": "Note", "data": {"name": "a"}})
    body = json.loads(run("--quiet", "index", "ensure", uri, "--json").out)
    assert body["graph_commit_id"] == og.open(uri).snapshot().commit_id
    assert {
        "type_key": "node:Note",
        "property": "name",
        "kind": "INVERTED",
        "action": "built",
        "rows": 1,
    } in body["changes"]
    assert body["pending"] == [
        {"type_key": "node:Note", "property": "like", "reason": "no row has a vector"}
    ]


def test_on_a_branch(run: Run, uri: str) -> None:
    og.open(uri).branches.create("dev")
    assert run("index", "ensure", uri, "--branch", "dev").code == 0
    assert " pending " not in run("index", "status", uri, "--branch", "dev").out
    assert " pending " in run("index", "status", uri).out
    ran = run("index", "status", uri, "--branch", "gone")
    assert ran.code == 1
    assert "gone" in ran.err


def test_refused(run: Run, uri: str, tmp_path: Path) -> None:
    ran = run("--as", "ann", "index", "ensure", uri)
    assert ran.code == 2
    assert "takes no --as" in ran.err
    ran = run("index", "status", str(tmp_path / "nothing"))
    assert (ran.code, ran.out) == (1, "")
