"""The same verbs on a real S3-compatible server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.storage.objects import meter
from tests import faults

Run = Callable[..., Any]

SCHEMA = "node Person {\n    name: String @key\n}\n"


@pytest.fixture
def uri(s3_bucket: str) -> str:
    return f"{s3_bucket}/people.omni"


def test_the_verbs_on_s3(run: Run, tmp_path: Path, uri: str) -> None:
    path = tmp_path / "people.pg"
    path.write_text(SCHEMA)
    assert run("snapshot", uri).err == f"error: there is no graph at {uri}\n"
    assert run("init", "--schema", str(path), uri).out == f"initialized {uri}\n"
    ran = run("init", "--schema", str(path), uri, "--force")
    assert (ran.code, ran.err) == (1, f"error: {uri} holds a graph already\n")
    (dataset,) = json.loads(run("snapshot", uri, "--json").out)["datasets"]
    assert dataset["type_name"] == "Person"
    assert len(json.loads(run("commit", "list", uri, "--json").out)["commits"]) == 1
    ran = run("branch", "create", "draft", "--store", uri)
    assert ran.err == f"omnigraph branch create → {uri} (direct, remote)\n"
    ran = run("branch", "delete", "draft", "--store", uri, "--json")
    assert ran.code == 1
    assert "agree to it with --yes" in json.loads(ran.out)["error"]
    assert "agree to it with --yes" in ran.err
    assert run("branch", "list", "--uri", uri).out == "draft\nmain\n"
    assert run("branch", "delete", "draft", "--store", uri, "--yes", "--quiet").err == ""
    assert run("branch", "list", "--uri", uri).out == "main\n"
    assert run("schema", "show", uri).out == SCHEMA


def test_read_only_writes_nothing(uri: str) -> None:
    og.init(uri, SCHEMA)
    with meter.measure() as counted:
        graph = og.open(uri, read_only=True)
        assert graph.table("Person").count_rows() == 0
        assert graph.commits.list()
    assert (counted.puts, counted.deletes) == (0, 0), str(counted)


@pytest.mark.parametrize("point", ["before_put", "after_put", "before_commit", "after_commit"])
def test_a_crash_on_the_way_is_cleared_by_force(uri: str, point: faults.Point) -> None:
    with (
        faults.armed(point, skip=0 if point.endswith("commit") else 3),
        pytest.raises(errors.StorageError),
    ):
        og.init(uri, SCHEMA)
    with pytest.raises(errors.NotFound):
        og.open(uri)
    og.init(uri, SCHEMA, force=True)
    assert og.open(uri).table("Person").count_rows() == 0
