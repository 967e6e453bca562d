"""How long a user waits for `omnigraph --help`, against the bare cost of click.

Owns one ratio. Runs the installed console script: what a user really starts.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench.ratio import Ratio, interleaved

LIMIT = 3.0


def run() -> list[Ratio]:
    """Measure whole processes, from start to exit."""
    script = Path(sys.executable).with_name("omnigraph")
    help_s, click_s = interleaved(
        partial(_run, str(script), "--help"), partial(_run, sys.executable, "-c", "import click")
    )
    return [Ratio("omnigraph --help / import click", help_s, click_s, LIMIT)]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
