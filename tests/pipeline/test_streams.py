"""Input without an end: a typed error after as much as was to be read, and nothing more."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from tests.pipeline.engines import run_tasks_here
from tests.write.writing import rows, unchanged

SCHEMA = "node Person { name: String @key\n    photo: Blob? }"
BOUND = 1 << 20
SLACK = 4 << 20
"""Pieces, and what a pipe holds."""
BOUNDED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
from omnigraph.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
LINE = b'{"type": "Person", "data": {"name": "%d"}}\n'


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    run_tasks_here(monkeypatch)
    return og.init(tmp_path / "graph", SCHEMA)


def zeros() -> Iterator[bytes]:
    while True:
        yield bytes(1 << 16)


def lines() -> Iterator[bytes]:
    for start in count(0, 1000):
        yield b"".join(LINE % number for number in range(start, start + 1000))


class Feeder(threading.Thread):
    """Writes to a pipe for as long as somebody reads, and counts."""

    def __init__(self, open_pipe: Callable[[], Any], pieces: Iterator[bytes]) -> None:
        super().__init__(daemon=True)
        self._open, self._pieces = open_pipe, pieces
        self.written = 0

    def run(self) -> None:
        with suppress(OSError), self._open() as pipe:
            for piece in self._pieces:
                self.written += pipe.write(piece) or 0


@contextmanager
def pipe_of(pieces: Iterator[bytes]) -> Iterator[tuple[io.BufferedReader, Feeder]]:
    reading, writing = os.pipe()
    feeder = Feeder(lambda: os.fdopen(writing, "wb", buffering=0), pieces)
    feeder.start()
    with os.fdopen(reading, "rb") as stream:
        yield stream, feeder
    feeder.join(60)
    assert not feeder.is_alive()


@pytest.mark.parametrize("engine", ["inline", "spark"])
def test_a_pipe_with_one_line_that_never_ends(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", str(BOUND))
    wanted = pytest.raises(errors.ResourceLimit)
    with pipe_of(zeros()) as (stream, feeder), unchanged(graph), wanted as caught:
        graph.load(stream, mode="append", engine=engine)
    assert caught.value.details["resource"] == "graph_batch_line_bytes"
    assert caught.value.details["limit"] == BOUND
    assert BOUND < feeder.written <= BOUND + SLACK


def test_a_pipe_with_lines_that_never_end(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STREAM_BYTES", str(BOUND))
    wanted = pytest.raises(errors.ResourceLimit, match="engine spark")
    with pipe_of(lines()) as (stream, feeder), unchanged(graph), wanted as caught:
        graph.load(stream, mode="append")
    assert caught.value.details["resource"] == "load_stream_bytes"
    assert caught.value.details["limit"] == BOUND
    assert BOUND < feeder.written <= BOUND + SLACK


@pytest.mark.parametrize("pieces", [zeros, lines])
def test_a_named_pipe(
    graph: og.Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pieces: Callable[[], Iterator[bytes]],
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", str(BOUND))
    monkeypatch.setenv("OMNIGRAPH_STREAM_BYTES", str(BOUND))
    path = tmp_path / "endless.jsonl"
    os.mkfifo(path)
    feeder = Feeder(lambda: path.open("wb", buffering=0), pieces())
    feeder.start()
    with unchanged(graph), pytest.raises(errors.ResourceLimit):
        graph.load(path, mode="append")
    feeder.join(60)
    assert BOUND < feeder.written <= BOUND + SLACK


def test_a_device(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", str(BOUND))
    with unchanged(graph), pytest.raises(errors.ResourceLimit, match="a line has"):
        graph.load("/dev/zero", mode="append", engine="inline")
    with unchanged(graph), pytest.raises(errors.BadRequest, match="no regular file"):
        graph.load("/dev/zero", mode="append", engine="spark")


@pytest.mark.slow
def test_a_file_with_a_hole(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", str(BOUND))
    path = tmp_path / "hole.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with unchanged(graph), pytest.raises(errors.ResourceLimit, match="bytes in one line"):
        graph.load(path, mode="append", engine="inline")


def test_records_that_never_end(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_STREAM_BYTES", str(BOUND))
    made = count()
    endless = ({"type": "Person", "data": {"name": str(number)}} for number in made)
    with unchanged(graph), pytest.raises(errors.ResourceLimit, match="load_stream_bytes"):
        graph.load(endless, mode="append")
    assert next(made) < BOUND // 30


def test_what_has_a_size_has_no_such_bound(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_STREAM_BYTES", "1000")
    text = b"".join(LINE % number for number in range(100))
    path = tmp_path / "people.jsonl"
    path.write_bytes(text)
    records = [json.loads(line) for line in text.splitlines()]
    for data in (text, path, records):
        assert graph.load(data, mode="overwrite", engine="inline").nodes == {"Person": 100}


@pytest.mark.parametrize("engine", ["inline", "spark"])
def test_a_stream_is_loaded_as_its_text(graph: og.Graph, engine: str) -> None:
    text = b"".join(LINE % number for number in range(50_000))
    with pipe_of(iter([text])) as (stream, _):
        done = graph.load(stream, mode="append", engine=engine)
    assert done.nodes == {"Person": 50_000}
    done = graph.load(io.StringIO('{"type": "Person", "data": {"name": "ż"}}'), mode="append")
    assert "ż" in rows(graph, "Person")


@pytest.mark.parametrize("engine", ["inline", "spark"])
def test_a_stream_that_cannot_be_read(graph: og.Graph, engine: str) -> None:
    closed = io.BytesIO(LINE % 1)
    closed.close()
    latin = io.TextIOWrapper(io.BytesIO(b"\xff\xff"), encoding="utf-8")
    for stream in (closed, latin):
        with unchanged(graph), pytest.raises(errors.BadRequest, match="cannot read the stream"):
            graph.load(stream, mode="append", engine=engine)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["-", "/dev/zero"])
def test_the_command_ends_within_bounded_memory(tmp_path: Path, data: str) -> None:
    """With the limits that hold for everybody, and less memory than to read on would take."""
    og.init(tmp_path / "graph", SCHEMA)
    graph, options = str(tmp_path / "graph"), ["--mode", "append", "--engine", "inline"]
    command = [sys.executable, "-c", BOUNDED, "load", graph, "--data", data, *options]
    with Path("/dev/zero").open("rb") as zero:
        ran = subprocess.run(command, stdin=zero, capture_output=True, timeout=300, check=False)
    said = (ran.stdout + ran.stderr).decode()
    assert ran.returncode == 1, said
    assert "graph_batch_line_bytes" in said
    assert "Traceback" not in said
