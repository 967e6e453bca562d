"""What is said of a failure that no verb had thought of: one line, and never a traceback.

Owns those words. Must never fail itself.
"""

from __future__ import annotations

from pathlib import PurePath


def unforeseen(error: BaseException) -> str:
    """The failure in a line, with what can be done about it."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError):
        return "memory ran out: ask for less at once, or give the process more"
    if isinstance(error, RecursionError):
        return "what was given is nested too deeply"
    if isinstance(error, UnicodeEncodeError):
        letter = ascii(error.object[error.start : error.start + 1])
        return (
            f"{error.encoding} has no letter {letter}: set PYTHONUTF8=1, and PYTHONIOENCODING to "
            "nothing else than utf-8"
        )
    return (
        f"{type(error).__name__}: {error} ({_place(error)}): this is a defect of OmniGraph, "
        "please report it"
    )


def _place(error: BaseException) -> str:
    """The line of code where it was raised."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return "nowhere"
    return f"{PurePath(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}"
