"""`omnigraph export`: lines on stdout, chosen types, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.read.graphs import add_rows, make_graph

Run = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("omnigraph"))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = make_graph(tmp_path / "graph")
    add_rows(graph, "node:Person", [{"id": name, "name": name} for name in ("Żan", "Ann")])
    add_rows(graph, "edge:Knows", [{"id": "1", "src": "Ann", "dst": "Żan"}])
    return graph


def test_lines_on_stdout(run: Run, graph: og.Graph) -> None:
    ran = run("export", str(graph.location))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        '{"edge":"Knows","from":"Ann","to":"Żan","data":{"id":"1","note":null,"since":null}}\n'
        '{"type":"Person","data":{"id":"Ann","age":null,"joined":null,"name":"Ann","tags":null}}\n'
        '{"type":"Person","data":{"id":"Żan","age":null,"joined":null,"name":"Żan","tags":null}}\n'
    )
    assert ran.out.splitlines() == list(graph.export())


def test_types_and_branches(run: Run, graph: og.Graph) -> None:
    uri = str(graph.location)
    graph.branches.create("draft")
    add_rows(graph, "node:Person", [{"id": "Ben", "name": "Ben"}], branch="draft")
    ran = run("export", "--branch", "draft", "--type", "Person", "--type", "Sample", "--store", uri)
    assert ran.code == 0
    found = [json.loads(line)["data"]["id"] for line in ran.out.splitlines()]
    assert found == ["Ann", "Ben", "Żan"]


def test_a_commit_of_the_past(run: Run, graph: og.Graph, tmp_path: Path) -> None:
    uri, commit, lines = str(graph.location), graph.snapshot().commit_id, list(graph.export())
    graph.apply_schema(graph.schema.replace("age: I32?", 'years: I32? @rename_from("age")'))
    assert '"years"' in run("export", uri).out
    ran = run("export", uri, "--snapshot", commit)
    assert (ran.code, ran.out.splitlines()) == (0, lines)
    out = str(tmp_path / "old.jsonl")
    ran = run("export", uri, "--snapshot", commit, "--out", out)
    assert ran.out.startswith(f"exported {uri} at commit {commit} to {out}: 3 entities")
    body = json.loads(run("export", uri, "--snapshot", commit, "--out", out, "--json").out)
    assert (body["branch"], body["snapshot"]) == (None, commit)
    assert Path(out).read_text().splitlines() == lines
    assert run("export", uri, "--snapshot", commit, "--branch", "main").code == 2
    assert run("export", uri, "--snapshot", "").code == 2
    assert run("export", uri, "--snapshot", "nothing").code == 1


def test_an_empty_export_prints_nothing(run: Run, graph: og.Graph) -> None:
    ran = run("export", str(graph.location), "--type", "Sample")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def test_wrong_names(run: Run, graph: og.Graph) -> None:
    ran = run("export", str(graph.location), "--type", "Persn")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: there is no type Persn: did you mean `Person`?\n"
    ran = run("export", str(graph.location), "--branch", "nowhere")
    assert (ran.code, ran.out) == (1, "")
    assert "nowhere" in ran.err


def test_the_old_flag_warns(run: Run, graph: og.Graph) -> None:
    ran = run("export", str(graph.location), "--jsonl", "--type", "Knows")
    assert ran.code == 0
    assert len(ran.out.splitlines()) == 1
    assert ran.err.startswith("warning: `--jsonl` is deprecated")


def test_a_file_from_python(graph: og.Graph, tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    report = graph.export(path, types=["Person"])
    assert (report.nodes, report.edges, report.total) == ({"Person": 2}, {}, 2)
    assert path.read_text(encoding="utf-8").splitlines() == list(graph.export(types=["Person"]))


@pytest.mark.slow
def test_a_reader_that_went_away_is_no_error_message(graph: og.Graph) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ran = subprocess.run(
            [PROGRAM, "export", str(graph.location)],
            stdout=write_end,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(write_end)
    assert ran.stderr == ""
    assert ran.returncode == 0
