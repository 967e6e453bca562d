"""Worker processes as the driver has them: started, told, stopped, resumed, killed.

Owns their pipes and the nurseries that fork them: importing everything anew for every worker
would take most of the time. A process that says nothing for long is stuck, which is a failure.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from tests import profile

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 900
"""Seconds after which a process that says nothing is taken for stuck."""
DAY = 86_400.0
SKEWS = (0.0, 0.0, 0.0, DAY, -DAY, 3_700.0, -3_700.0)


class Stuck(Exception):
    """A process does not answer, or ended without being killed."""


class Process:
    """One worker process."""

    def __init__(self, pid: int, pipes: tuple[int, int], skew: float, log: Path) -> None:
        self.skew = skew
        self.is_stopped = False
        self._pid = pid
        self._input, self._output = pipes
        self._is_dead = False
        self._log = log
        self._rest = b""
        self._answers: deque[dict[str, Any]] = deque()

    def tell(self, command: Mapping[str, Any]) -> None:
        """Hand over a command; it is done after those before it."""
        os.write(self._input, json.dumps(command).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """The next answer; waits for it."""
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
        return self._taken()

    def _taken(self) -> list[dict[str, Any]]:
        found = list(self._answers)
        self._answers.clear()
        return found

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._output], [], [], seconds)[0])

    def _receive(self) -> bool:
        data = os.read(self._output, 1 << 20)
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._answers.extend(json.loads(line) for line in lines)
        return bool(data)

    def stop(self) -> None:
        """Let it stand still in the middle of whatever it does."""
        os.kill(self._pid, signal.SIGSTOP)
        self.is_stopped = True

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self._pid, signal.SIGCONT)
        self.is_stopped = False

    def kill(self) -> list[dict[str, Any]]:
        """End it at once; gives what it had answered. Nothing happens to one that is dead."""
        if self._is_dead:
            return []
        self._is_dead = True
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        # Its end of the pipe is closed when all of its threads are over.
        while self._receive():
            pass
        for pipe in (self._input, self._output):
            os.close(pipe)
        return self._taken()


class Nursery:
    """A process that has imported everything under one clock, and forks workers."""

    def __init__(self, skew: float, environment: Mapping[str, str], log: Path) -> None:
        self._skew = skew
        self._log = log
        self._socket, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with far, log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.worker", str(skew), str(profile.CHOSEN.request)],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdin=far.fileno(),
                stdout=errors,
                stderr=errors,
            )

    def fork(self) -> Process:
        """A worker that has never seen a graph."""
        (its_input, tell), (hear, its_output) = os.pipe(), os.pipe()
        socket.send_fds(self._socket, [b"+"], [its_input, its_output])
        os.close(its_input)
        os.close(its_output)
        answer = self._socket.recv(8)
        if not answer:
            raise Stuck(f"no worker can be forked; see {self._log}")
        return Process(int.from_bytes(answer), (tell, hear), self._skew, self._log)

    def end(self) -> None:
        """End it; the workers that it has forked end with it."""
        self._process.kill()
        self._process.wait()
        self._socket.close()


class Nurseries:
    """Processes to be had at once, with clocks that are right or wrong."""

    def __init__(self, random: Random, environment: Mapping[str, str], log: Path) -> None:
        self._random = random
        self._nurseries = {skew: Nursery(skew, environment, log) for skew in sorted(set(SKEWS))}

    def take(self) -> Process:
        """A new process with some clock."""
        return self._nurseries[self._random.choice(SKEWS)].fork()

    def end(self) -> None:
        """Nobody is needed any more."""
        for nursery in self._nurseries.values():
            nursery.end()
