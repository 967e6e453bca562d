"""A command that made a commit and cannot print it: the commit stays, and stderr names it."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import EXIT_OUTPUT_LOST, main
from tests.pilot_graph import DATA, SCHEMA

PROGRAM = str(Path(sys.executable).with_name("omnigraph"))
ADD = 'query add() { insert Pilot { name: "Eve", hours: 1 } }'
NOTHING = 'query drop() { delete Pilot where name = "Nobody" }'
EVE = '{"type": "Pilot", "data": {"name": "Eve"}}\n'


class FullDisk(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


class Western(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="latin-1", write_through=True)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "pilots.omni", SCHEMA)
    graph.load(DATA, mode="append")
    return graph


@pytest.fixture
def eve(tmp_path: Path) -> str:
    path = tmp_path / "eve.jsonl"
    path.write_text(EVE, encoding="utf-8")
    return str(path)


Command = Callable[[og.Graph, str], list[str]]


def mutate(graph: og.Graph, _: str) -> list[str]:
    return ["mutate", "--store", str(graph.location), "-e", ADD]


def load(graph: og.Graph, eve: str) -> list[str]:
    return ["load", str(graph.location), "--data", eve, "--mode", "append"]


def merge(graph: og.Graph, _: str) -> list[str]:
    graph.branches.create("b")
    graph.mutate(ADD, branch="b")
    return ["branch", "merge", "b", "--uri", str(graph.location)]


def head(graph: og.Graph) -> str:
    return og.open(str(graph.location), read_only=True).snapshot().commit_id


def as_json(command: Command) -> Command:
    return lambda graph, eve: [*command(graph, eve), "--json"]


@pytest.mark.parametrize(
    "command",
    [mutate, load, merge, as_json(mutate), as_json(load), as_json(merge)],
    ids=["mutate", "load", "merge", "mutate --json", "load --json", "merge --json"],
)
def test_the_commit_is_named_on_stderr(
    graph: og.Graph,
    eve: str,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = command(graph, eve)
    before = head(graph)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", FullDisk())
        code = main(args)
    assert head(graph) != before
    assert code == EXIT_OUTPUT_LOST == 5
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"error: committed as {head(graph)}, but the result could not be written "
        "([Errno 28] No space left on device): do not run it again"
    )


def test_an_actor_that_the_terminal_cannot_show_is_no_failed_write(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Western())
        code = main([*mutate(graph, ""), "--as", "Žofie"])
    assert code == EXIT_OUTPUT_LOST
    assert f"committed as {head(graph)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "args",
    [
        ["mutate", "-e", NOTHING],
        ["load", "--data", "EVE", "--mode", "append", "--dry-run"],
        ["branch", "list"],
    ],
    ids=lambda args: args[0],
)
def test_without_a_commit_it_is_an_error_like_any_other(
    graph: og.Graph,
    eve: str,
    args: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = head(graph)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", FullDisk())
        given = [eve if arg == "EVE" else arg for arg in args]
        code = main([*given, "--store", str(graph.location)])
    assert code == 1
    assert "error: [Errno 28] No space left on device" in capsys.readouterr().err
    assert head(graph) == before


def test_the_code_tells_when_stderr_is_full_as_well(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", FullDisk())
        patch.setattr(sys, "stderr", FullDisk())
        assert main(mutate(graph, "")) == EXIT_OUTPUT_LOST


@pytest.mark.parametrize("command", [mutate, load, merge])
def test_a_stdout_that_is_closed(
    graph: og.Graph,
    eve: str,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    args = command(graph, eve)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        code = main(args)
    assert code == EXIT_OUTPUT_LOST
    assert f"committed as {head(graph)}, but" in capsys.readouterr().err


def run(args: list[str], **streams: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *args], stderr=subprocess.PIPE, text=True, check=False, timeout=60, **streams
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", [mutate, load, merge])
def test_a_reader_that_went_away(graph: og.Graph, eve: str, command: Command) -> None:
    args = command(graph, eve)
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        ran = run(args, stdout=write_end)
    finally:
        os.close(write_end)
    assert ran.returncode == EXIT_OUTPUT_LOST
    assert ran.stderr.splitlines()[-1].startswith(f"error: committed as {head(graph)}, but")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize("command", [mutate, load, merge])
def test_a_full_device(graph: og.Graph, eve: str, command: Command) -> None:
    args = command(graph, eve)
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        ran = run(args, stdout=full)
    assert ran.returncode == EXIT_OUTPUT_LOST
    assert ran.stderr.splitlines()[-1].startswith(f"error: committed as {head(graph)}, but")
