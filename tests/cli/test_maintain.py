"""`omnigraph maintain`: one round, on and on until a signal, and refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.maintain import wanted
from tests.maintain.cleaning import SCHEMA, insert

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wanted, "FEW_FRAGMENTS", 1)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    for number in range(18):
        insert(graph, f"p{number}")
    return graph


def test_one_round(run: Run, graph: og.Graph) -> None:
    uri = str(graph.location)
    ran = run("maintain", uri, "--dry-run")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("optimize main: planned: node:Person: ")
    body = json.loads(run("maintain", uri, "--max-bytes", "10", "--json", "--quiet").out)
    assert [step["outcome"] for step in body["steps"]] == ["left"]
    ran = run("maintain", uri, "--as", "keeper", "--max-seconds", "1000", "--max-bytes", "1GB")
    assert (ran.code, ran.err) == (0, f"omnigraph maintain → {uri} (direct, local)\n")
    head = og.open(uri).commits.list()[0]
    assert ran.out.endswith(f", commit {head.id}\n")
    assert head.actor == "keeper"
    assert run("maintain", uri, "--once", "--branch", "main").out == "nothing to do\n"
    assert run("maintain", uri, "--watch", "--dry-run").code == 2
    assert run("maintain", uri, "--max-bytes", "much").code == 2
    assert run("maintain", uri, "--max-seconds", "0").code == 1


@pytest.mark.slow
def test_on_and_on_until_a_signal(graph: og.Graph) -> None:
    uri = str(graph.location)
    arguments = ["maintain", uri, "--watch", "--every", "1s", "--quiet"]
    script = (
        "import sys; from omnigraph.maintain import wanted; from omnigraph.cli.main import main; "
        f"wanted.FEW_FRAGMENTS = 1; sys.exit(main({arguments!r}))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
    assert "Z optimize main: done: node:Person: " in line


@pytest.mark.slow
def test_ctrl_c_ends_it_orderly(run: Run, graph: og.Graph) -> None:
    graph.maintain()
    # A run in the background may have been told to ignore it.
    before = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        while signal.getsignal(signal.SIGINT) is before:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt, daemon=True)
    interrupting.start()
    ran = run("maintain", str(graph.location), "--watch", "--every", "1h", "--quiet")
    interrupting.join()
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert signal.getsignal(signal.SIGINT) is before
