"""`omnigraph pipeline`: which graph, what is printed, and the exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.pilot_graph import DATA, SCHEMA

Run = Callable[..., Any]

PIPELINE = """\
graph: pilots.omni
mode: merge
sources:
  staff: { format: csv, path: staff.csv, options: { header: true } }
nodes:
  Pilot: { from: staff, set: { name: name, hours: cast(hours as int) } }
edges:
  StationedAt: { from: staff, where: base is not null, src: name, dst: base }
"""


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "pilots.omni"
    og.init(path, SCHEMA).load(DATA, mode="append")
    return str(path)


@pytest.fixture
def pipeline(tmp_path: Path, uri: str) -> Path:
    (tmp_path / "staff.csv").write_text("name,hours,base\nEve,7,Arda\nAnn,31,\n", encoding="utf-8")
    path = tmp_path / "staff.yaml"
    path.write_text(PIPELINE, encoding="utf-8")
    assert uri == str(tmp_path / "pilots.omni")
    return path


def changed(path: Path, old: str, new: str) -> str:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return str(path)


# -- without Spark -----------------------------------------------------------------


def test_help(run: Run) -> None:
    ran = run("pipeline", "--help")
    assert ran.code == 0
    assert "run " in ran.out
    assert "validate " in ran.out
    assert "Load foreign tables" in run("--help").out


@pytest.mark.parametrize("verb", ["run", "validate"])
def test_what_is_wrong_is_told_with_its_place(run: Run, pipeline: Path, verb: str) -> None:
    path = changed(pipeline, "hours: cast", "hour: cast")
    changed(pipeline, "mode: merge", "mod: merge")
    ran = run("pipeline", verb, path, "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"error: {path}:1: mode: this key is missing\n"
        f"{path}:2: mod: there is no such key; did you mean `mode`?\n"
        f"{path}:6: nodes.Pilot.set.hour: unknown property 'hour' for Pilot;"
        " did you mean `hours`?\n"
        "3 problems; nothing was loaded\n"
    )


def test_what_is_wrong_for_programs(run: Run, pipeline: Path, uri: str) -> None:
    path = changed(pipeline, "from: staff, set", "from: staf, set")
    ran = run("pipeline", "validate", path, "--json")
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "uri": uri,
        "pipeline": path,
        "valid": False,
        "problems": [
            {
                "path": "nodes.Pilot.from",
                "line": 6,
                "message": "there is no source 'staf'; did you mean `staff`?",
            }
        ],
    }


def test_a_document_that_is_none(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    assert "No such file" in run("pipeline", "run", str(path)).err
    path.write_text("{", encoding="utf-8")
    ran = run("pipeline", "validate", str(path), "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]
    assert "is no YAML: line 1" in ran.err


def test_which_graph(run: Run, pipeline: Path, tmp_path: Path) -> None:
    path = str(pipeline)
    other = str(tmp_path / "other.omni")
    assert f"there is no graph at {other}" in run("pipeline", "run", path, "--store", other).err
    changed(pipeline, "graph: pilots.omni\n", "")
    ran = run("pipeline", "run", path)
    assert ran.code == 2
    assert "which graph?" in ran.err


def test_scope_flags(run: Run, pipeline: Path) -> None:
    ran = run("pipeline", "validate", str(pipeline), "--as", "ann")
    assert ran.code == 2
    assert "takes no --as" in ran.err
    assert "--cluster" in run("pipeline", "run", str(pipeline), "--cluster", "x").err


def test_overwriting_somewhere_else_needs_consent(run: Run, pipeline: Path) -> None:
    path = changed(pipeline, "mode: merge", "mode: overwrite")
    changed(pipeline, "graph: pilots.omni", "graph: s3://nowhere/pilots.omni")
    ran = run("pipeline", "run", path, "--json")
    assert ran.code == 1
    assert "agree to it with --yes" in ran.err


# -- with Spark --------------------------------------------------------------------


@pytest.mark.slow
def test_validate_try_and_run(run: Run, pipeline: Path, uri: str) -> None:
    path = str(pipeline)
    ran = run("pipeline", "validate", path)
    assert (ran.code, ran.out) == (0, f"{path} is valid: 1 sources, 2 types\n")
    assert json.loads(run("pipeline", "validate", path, "--json").out)["valid"] is True

    before = og.open(uri).snapshot().commit_id
    ran = run("pipeline", "run", path, "--dry-run", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        f"would load {uri} on branch main with merge: "
        "3 entities across 1 node types and 1 edge types\n"
    )
    assert og.open(uri).snapshot().commit_id == before

    ran = run("pipeline", "run", path, "--json", "--as", "zoe")
    assert ran.code == 0
    assert ran.err == f"omnigraph pipeline run → {uri} (direct, local)\n"
    done = json.loads(ran.out)
    assert (done["pipeline"], done["uri"], done["total_entities"]) == (path, uri, 3)
    assert done["commit"]["parent_commit_id"] == before
    assert done["actor_id"] == "zoe"
    pilots = {
        one["data"]["name"]: one["data"]
        for one in map(json.loads, og.open(uri).export(types=["Pilot"]))
    }
    assert pilots["Eve"]["hours"] == 7
    assert pilots["Ann"]["hours"] == 31

    changed(pipeline, "name: name", "name: nam")
    ran = run("pipeline", "run", path)
    assert ran.code == 1
    assert "nodes.Pilot.set.name: source 'staff' has no column 'nam'" in ran.err
