"""The process of the peer, seen from the benchmark.

Owns starting it and what it is asked.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, dataclass

from bench.branch.rounds import Round, Step
from bench.traversal.workers import ROOT, Worker


@dataclass(slots=True)
class PeerWorker(Worker):
    """The peer with a table of a size, in a process of its own."""

    size: int = 0

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "bench.branch.worker", str(self.directory), str(self.size)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        )

    def load(self) -> None:
        """Make its table."""
        self.tell("load")

    def branch(self, name: str) -> float:
        """Fork a branch; the seconds it took."""
        seconds: float = self.tell("branch", name=name)["seconds"]
        return seconds

    def round(self, step: Step) -> Round:
        """Everything once."""
        return Round(**self.tell("round", step=asdict(step)))
