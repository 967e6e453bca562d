"""`omnigraph blob`: bytes as they are, ranges, files that are not touched for nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.read.test_blobs import SCHEMA, people

Run = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
VALUE = ("node", "Person", "Ann", "photo")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    graph.load(people({"Ann": b"\xff\x00photo", "Ben": b"", "Cid": None}), mode="append")
    return str(graph.location)


@pytest.mark.slow
def test_bytes_on_stdout_are_as_they_are(uri: str) -> None:
    ran = subprocess.run(
        [PROGRAM, "blob", "get", *VALUE, "--store", uri, "--offset", "1", "--length", "99"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert (ran.stdout, ran.stderr) == (b"\x00photo", b"")


def test_a_file_is_touched_when_there_is_something_to_write(
    run: Run, uri: str, tmp_path: Path
) -> None:
    out = tmp_path / "photo"
    get = ("blob", "get", "--store", uri, "--out", str(out))
    assert (run(*get, *VALUE).code, out.read_bytes()) == (0, b"\xff\x00photo")
    for more, words in (
        (("--offset", "7"), "Blob range is not satisfiable"),
        (("--offset", "7", "--length", "1"), "Blob range is not satisfiable"),
        (("--branch", "dev"), "there is no branch dev"),
    ):
        ran = run(*get, *VALUE, *more)
        assert ran.code == 1
        assert words in ran.err
    assert run(*get, "node", "Person", "Cid", "photo").code == 1
    assert out.read_bytes() == b"\xff\x00photo"
    assert (run(*get, "node", "Person", "Ben", "photo").code, out.read_bytes()) == (0, b"")
    ran = run(*get, "node", "Person", "Ben", "photo", "--offset", "0")
    assert "Blob range is not satisfiable" in ran.err
    assert run("blob", "get", *VALUE, "--store", uri, "--out", str(tmp_path)).code == 1


def test_wrong_ranges_are_told_before_anything_is_opened(run: Run) -> None:
    get = ("blob", "get", *VALUE, "--store", "nowhere.omni")
    for more in (
        ("--length", "0"),
        ("--offset", "-1"),
        ("--length", str(2**63)),
        ("--offset", str(2**63 - 1), "--length", "1"),
    ):
        ran = run(*get, *more)
        assert (ran.code, ran.out) == (2, "")
    assert run("blob", "get", "vertex", *VALUE[1:], "--store", "x").code == 2
    assert "takes no --as" in run(*get, "--as", "ann").err
    assert "which graph?" in run("blob", "get", *VALUE).err


def test_stat(run: Run, uri: str) -> None:
    graph = og.open(uri)
    head = graph.commits.list()[0].id
    tag = graph.blob("node", "Person", "Ann", "photo").etag
    ran = run("blob", "stat", *VALUE, "--store", uri)
    assert ran.out == f"kind: managed\nsize: 7\netag: {tag}\ncommit: {head}\n"
    body = {
        "selector": {"entity": "node", "type": "Person", "id": "Ann", "property": "photo"},
        "kind": "managed",
        "size": 7,
        "etag": tag,
        "target": {"branch": "main", "resolved_snapshot": head},
    }
    assert json.loads(run("blob", "stat", *VALUE, "--store", uri, "--json").out) == body
    body["target"] = {"snapshot": head, "resolved_snapshot": head}
    at = ("--snapshot", head)
    assert json.loads(run("blob", "stat", *VALUE, *at, "--store", uri, "--json").out) == body
