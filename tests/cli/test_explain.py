"""`omnigraph explain`: the plan, the run, and both as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.ferry_graph import QUERIES, make_ferries

Run = Callable[..., Any]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_ferries(tmp_path / "f.omni")


@pytest.fixture
def base(graph: og.Graph) -> tuple[str, ...]:
    return ("explain", "calls", "--store", str(graph.location), "--query", str(QUERIES))


def test_a_plan_needs_no_parameters(run: Run, graph: og.Graph, base: tuple[str, ...]) -> None:
    ran = run(*base)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"plan of calls on branch main, commit {graph.snapshot().commit_id}\n"
        "scan $port: Port where $port.code = $code:String\n"
        "    lookup by id, 5 nodes, about 1 row\n"
        "expand $port <-[$call:CallsAt]- $ship: Ship\n"
        "    csr (to build), 5 edges, about 1 row\n"
        "order $ship.name asc\n"
        "project ship := $ship.name, draught := $ship.draught, since := $call.since\n"
    )


def test_a_run_needs_them(run: Run, base: tuple[str, ...]) -> None:
    ran = run(*base, "--analyze")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: parameter 'code' not provided\n")
    ran = run(*base, "--analyze", "--params", '{"code": "BRE"}')
    assert ran.code == 0
    assert ": 2 rows, " in ran.out.splitlines()[0]
    assert "    hop from 1 node: csr\n" in ran.out


def test_json(run: Run, graph: og.Graph, base: tuple[str, ...]) -> None:
    planned = json.loads(run(*base, "--json").out)
    commit = graph.snapshot().commit_id
    assert planned["target"] == {"branch": "main", "snapshot": None}
    assert (planned["analyzed"], planned["graph_commit_id"]) == (False, commit)
    assert "total" not in planned
    params = ("--params", '{"code": "BRE"}')
    ran = json.loads(run(*base, *params, "--analyze", "--json", "--snapshot", commit).out)
    assert ran["target"] == {"branch": None, "snapshot": commit}
    assert ran["total"]["rows"] == 2
    names = ["scan", "expand", "order", "project"]
    assert [found["operator"] for found in planned["operators"]] == names
    assert [found["operator"] for found in ran["operators"]] == names


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "which query? give --query FILE or -e GQ"),
        (["-e", "query q() {}", "--branch", "a", "--snapshot", "b"], "--snapshot ID, not both"),
        (["-e", "query q() {}", "--format", "csv"], "No such option"),
        (["-e", "query q() {}", "--as", "ann"], "`explain` is a data command and takes no --as"),
    ],
)
def test_usage_errors(run: Run, graph: og.Graph, args: list[str], message: str) -> None:
    ran = run("explain", "--store", str(graph.location), *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_a_mutation_is_refused(run: Run, graph: og.Graph) -> None:
    uri = str(graph.location)
    ran = run("explain", "open_route", "--store", uri, "--query", str(QUERIES))
    assert (ran.code, ran.out) == (1, "")
    assert "query `open_route` is a mutation" in ran.err
