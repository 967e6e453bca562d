"""Writer processes on one graph, begun together.

Owns starting them and adding up what they did.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast


@dataclass(frozen=True, slots=True)
class Written:
    """What writers did: commits a second of each."""

    rates: tuple[float, ...]

    @property
    def together(self) -> float:
        """Commits a second of all of them."""
        return sum(self.rates)


def write_together(place: Path, names: Sequence[str], seconds: float, increments: int) -> Written:
    """Let so many processes append for some time, and then increment one counter."""
    command = [sys.executable, "-m", "bench.growth.writer", str(place)]
    children = [
        subprocess.Popen(
            [*command, name, str(seconds), str(increments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    try:
        for child in children:
            _output(child).readline()
        for child in children:
            stdin = cast("IO[str]", child.stdin)
            stdin.write("go\n")
            stdin.flush()
        found = [json.loads(_output(child).readline()) for child in children]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    return Written(tuple(one["commits"] / one["seconds"] for one in found))


def _output(child: subprocess.Popen[str]) -> IO[str]:
    return cast("IO[str]", child.stdout)
