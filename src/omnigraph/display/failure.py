"""Failures as notebooks show them: what is wrong, on one screen, and which line asked for it.

Owns how much is shown. The frames of the product tell nothing to who uses it; whoever wants them
has `%tb`, or the exception.
"""

from __future__ import annotations

from linecache import getline
from traceback import walk_tb
from types import TracebackType

MOST_LINES = 24
PACKAGE = "omnigraph"


def failure_lines(error: BaseException, code: str) -> list[str]:
    """The lines of a traceback for a notebook."""
    lines = str(error).splitlines() or [""]
    if len(lines) > MOST_LINES:
        more = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], f"… and {more} more lines: print(error) shows them"]
    asked = _asked_by(error.__traceback__)
    return [f"{type(error).__name__} ({code})", *([] if asked is None else [asked]), *lines]


def _asked_by(traceback: TracebackType | None) -> str | None:
    """The line of a person that led here: the last before the product began."""
    found = None
    for frame, line in walk_tb(traceback):
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == PACKAGE:
            break
        if module == "__main__":
            text = getline(frame.f_code.co_filename, line, frame.f_globals).strip()
            # Of a magic nothing is left but how IPython calls it.
            is_written = bool(text) and not text.startswith("get_ipython().")
            found = f"  line {line}: {text}" if is_written else None
    return found
