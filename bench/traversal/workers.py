"""Processes that answer, seen from the benchmark.

Owns starting and ending them. A process that dies takes its error output with it into
the message.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
PROGRAM = "bench.traversal.worker"


@dataclass(slots=True)
class Worker:
    """One system in a process of its own."""

    name: str
    directory: Path
    program: str = field(default=PROGRAM, kw_only=True)
    """The module that is run in the process."""
    process: subprocess.Popen[str] = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.program, self.name, str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def tell(self, do: str, **more: Any) -> dict[str, Any]:
        """Send a message and wait for the reply."""
        sent, replies = self.process.stdin, self.process.stdout
        if sent is None or replies is None:
            raise AssertionError("the process has pipes")
        sent.write(json.dumps({"do": do, **more}) + "\n")
        sent.flush()
        reply = replies.readline()
        if not reply:
            raise RuntimeError(f"{self.name} ended with {self.process.wait()} at {do}")
        found: dict[str, Any] = json.loads(reply)
        return found

    def close(self) -> None:
        """End the process."""
        with self.process:
            if self.process.stdin is not None:
                self.process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
