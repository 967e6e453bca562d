"""Processes that search, seen from the benchmark.

Owns starting them and what they are asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.search.fusion import Rows
from bench.search.questions import Params, Question
from bench.traversal.workers import ROOT, Worker

# The peer leaves it to us to say that its own warnings need no reader.
_QUIET = {"LANCE_LOG": "error", "LANCEDB_LOG": "error", "RUST_LOG": "error"}


@dataclass(frozen=True, slots=True)
class Built:
    """Indexes that were built, and how long all of them took."""

    seconds: float
    names: tuple[str, ...]


@dataclass(slots=True)
class SearchWorker(Worker):
    """One system in a process of its own."""

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.search.worker", self.name, str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **_QUIET},
        )

    def load(self, files: Path) -> float:
        """Store the library; the seconds it took."""
        seconds: float = self.tell("load", files=str(files))["seconds"]
        return seconds

    def index(self) -> Built:
        """Build the indexes."""
        reply = self.tell("index")
        return Built(reply["seconds"], tuple(reply["built"]))

    def ask(self, question: Question, params: list[Params]) -> tuple[list[float], list[Rows]]:
        """The seconds and the answer of each."""
        reply = self.tell("ask", question=question.name, params=params)
        return reply["seconds"], reply["answers"]
