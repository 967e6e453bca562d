"""Rewriting expectation sections of fixture files from actual output.

Run `pytest --bless` after a change, then read the difference: a blessed result
is only as right as its reader.
"""

from __future__ import annotations

from pathlib import Path


def bless(path: Path, case: str, actual: dict[str, str]) -> None:
    """Put the actual text into these sections of one case; everything else stays."""
    lines = path.read_text(encoding="utf-8").split("\n")
    kept: list[str] = []
    inside = replacing = False
    for line in lines:
        if line.startswith(("=== ", "### ", "--- ")):
            if replacing:
                kept.append("")
            replacing = False
        if line.startswith("=== "):
            inside = line.removeprefix("=== ").strip() == case
        if not replacing:
            _append(kept, line, compact=inside)
        section = line.removeprefix("--- ").strip() if line.startswith("--- ") else None
        if inside and section in actual:
            kept += actual[section].rstrip("\n").split("\n") if actual[section] else []
            replacing = True
    path.write_text("\n".join(kept).rstrip("\n") + "\n", encoding="utf-8")


def _append(kept: list[str], line: str, *, compact: bool) -> None:
    # Within a case a section follows the one before it without a gap.
    if compact and line.startswith("--- "):
        while kept and not kept[-1].strip():
            kept.pop()
    kept.append(line)
