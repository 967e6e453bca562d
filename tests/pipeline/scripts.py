"""Drivers of Spark in processes of their own: a process has one session, and some must die."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

SECONDS = 300


def run_script(
    text: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python text with warnings as errors; its functions reach executors by value."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(text), *arguments],
        env=None if environment is None else {**os.environ, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def output_of(
    text: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> list[str]:
    """The lines that a script prints; it must end well and say nothing on standard error."""
    ran = run_script(text, *arguments, environment=environment, cwd=cwd)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.splitlines()
