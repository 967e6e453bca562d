"""How the demonstration tells its story: chapters, commands, and what was seen.

Owns the numbering of the chapters and the end of the demo when something is not so.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from itertools import count
from pathlib import Path

HERE = Path(__file__).parent
OMNIGRAPH = Path(sys.executable).with_name("omnigraph")

_chapters = count(1)


def say(title: str, text: str) -> None:
    """Open a chapter."""
    heading = f"{next(_chapters)}. {title}"
    print(f"\n\n{heading}\n{'─' * len(heading)}\n{text}\n")


def run(*arguments: str, expect: int = 0, cwd: Path = HERE) -> None:
    """Show a command and what it prints; any other exit code than expected ends the demo."""
    print(f"$ omnigraph {shlex.join(arguments)}", flush=True)
    code = subprocess.run([OMNIGRAPH, *arguments], cwd=cwd, check=False).returncode
    if code != expect:
        sys.exit(f"the command above exited with {code}, the demo expected {expect}")


def check(holds: bool, text: str) -> None:  # noqa: FBT001 - it reads as a sentence
    """Say what has been seen, or end the demo."""
    if not holds:
        sys.exit(f"not so: {text.strip()}")
    print(text)
