"""Processes that load, seen from the benchmark.

Owns what they are asked and the check that every system has loaded everything.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from bench.load.data import LoadFiles
from bench.load.systems import Loaded
from bench.traversal.workers import ROOT, Worker


@dataclass(slots=True)
class LoadWorker(Worker):
    """One system in a process of its own."""

    loads: int = 0

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.load.worker", self.name, str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def start(self, *, warm_up: bool = True) -> dict[str, float]:
        """Get it ready; the seconds of each step."""
        seconds: dict[str, float] = self.tell("start", warm_up=warm_up)["seconds"]
        return seconds

    def load(self, shape: str, files: LoadFiles) -> Loaded:
        """Load into something empty, which is gone afterwards."""
        into = self._next()
        loaded = self._load(shape, files, into, files.edges)
        self.tell("remove", into=into)
        return loaded

    def load_and_merge(self, files: LoadFiles) -> tuple[Loaded, Loaded]:
        """Load edges that have ids, then merge the delta into them."""
        into = self._next()
        full = self._load("named", files, into, files.edges)
        merged = self._load("delta", files, into, files.edges_after_delta)
        self.tell("remove", into=into)
        return full, merged

    def peak_memory(self) -> int:
        """The most bytes that the process itself, without its children, ever had."""
        found: int = self.tell("memory")["bytes"]
        return found

    def _next(self) -> str:
        self.loads += 1
        return f"load-{self.loads}"

    def _load(self, shape: str, files: LoadFiles, into: str, edges: int) -> Loaded:
        reply = self.tell("load", shape=shape, files=str(files.directory), into=into)
        loaded = Loaded(**reply)
        if loaded.edges != edges:
            raise RuntimeError(f"{self.name} has {loaded.edges} edges of {edges} after {shape}")
        return loaded
