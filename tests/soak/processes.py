"""Worker processes as the driver has them: started ahead, told, stopped, resumed, killed.

Owns their pipes. A process that says nothing for long is stuck, and that is a failure.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120
"""Seconds after which a process that says nothing is taken for stuck."""
DAY = 86_400.0
SKEWS = (0.0, 0.0, 0.0, DAY, -DAY, 3_700.0, -3_700.0)
AHEAD = 2


class Stuck(Exception):
    """A process does not answer, or ended without being killed."""


class Process:
    """One worker process."""

    def __init__(self, skew: float, environment: Mapping[str, str], log: Path) -> None:
        self.skew = skew
        self.is_stopped = False
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.worker", str(skew)],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
            )
        self._log = log
        self._rest = b""
        self._answers: deque[dict[str, Any]] = deque()
        self._is_ready = False

    def tell(self, command: Mapping[str, Any]) -> None:
        """Hand over a command; it is done after those before it."""
        if self._process.stdin is None:
            raise AssertionError("a worker has a pipe")
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """The next answer; waits for it."""
        while not self._is_ready:
            self._is_ready = "ready" in self._next()
        return self._next()

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while not self._answers:
            left = deadline - time.monotonic()
            if left <= 0 or not self._readable(left):
                raise Stuck(f"a worker says nothing for {PATIENCE} s; see {self._log}")
            if not self._receive():
                raise Stuck(f"a worker ended by itself; see {self._log}")
        return self._answers.popleft()

    def answered(self) -> list[dict[str, Any]]:
        """The answers that are there already."""
        while self._readable(0) and self._receive():
            pass
        found = [answer for answer in self._answers if "ready" not in answer]
        self._is_ready = self._is_ready or len(found) < len(self._answers)
        self._answers.clear()
        return found

    @property
    def _output(self) -> int:
        if self._process.stdout is None:
            raise AssertionError("a worker has a pipe")
        return self._process.stdout.fileno()

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._output], [], [], seconds)[0])

    def _receive(self) -> bool:
        data = os.read(self._output, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._answers.extend(json.loads(line) for line in lines)
        return bool(data)

    def stop(self) -> None:
        """Let it stand still in the middle of whatever it does."""
        self._process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def resume(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def kill(self) -> list[dict[str, Any]]:
        """End it at once; gives what it had answered. Nothing happens to one that is dead."""
        if self._process.stdout is None or self._process.stdout.closed:
            return []
        self._process.kill()
        self._process.wait()
        while self._receive():
            pass
        found = self.answered() if self._answers else []
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        return found


class Spares:
    """Processes that start while others work, and have never seen the graph."""

    def __init__(self, random: Random, environment: Mapping[str, str], log: Path) -> None:
        self._random = random
        self._environment = environment
        self._log = log
        self._waiting: deque[Process] = deque()
        self.prepare()

    def prepare(self) -> None:
        """Start as many as will be needed soon."""
        while len(self._waiting) < AHEAD:
            skew = self._random.choice(SKEWS)
            self._waiting.append(Process(skew, self._environment, self._log))

    def take(self) -> Process:
        """One that has started first; another takes its place."""
        found = self._waiting.popleft()
        self.prepare()
        return found

    def end(self) -> None:
        """Nobody is needed any more."""
        for process in self._waiting:
            process.kill()
        self._waiting.clear()
