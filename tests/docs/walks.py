"""The walks of the architecture page, and which modules are really at work."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PAGE = Path(__file__).parents[2] / "docs" / "developer" / "architecture.md"


def walk(title: str) -> list[str]:
    """The lines of a walk."""
    text = PAGE.read_text(encoding="utf-8")
    section = text.split(f"\n### {title}\n", 1)[1].split("\n## ", 1)[0].split("\n### ", 1)[0]
    return [line for line in section.splitlines() if re.match(r"\d+\. ", line)]


def modules(lines: list[str]) -> list[str]:
    """The modules that lines name, in their order."""
    return list(dict.fromkeys(re.findall(r"`([a-z_/]+\.py)`", "\n".join(lines))))


def at_work(action: Callable[[], object]) -> set[str]:
    """The modules of which a function is called, in any thread."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            name = str(frame.f_globals.get("__name__", ""))
            if name.startswith("omnigraph."):
                seen.add(f"{name.removeprefix('omnigraph.').replace('.', '/')}.py")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen
