"""Processes: who may use the storage, and how a process that uses it comes to its end.

Owns two refusals: in a forked child, where the threads of the libraries are missing, and in
other threads while the interpreter goes down. Must be asked before a lock is taken: in a
forked child it may be held for ever by a thread that is not there.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from types import FrameType

from omnigraph.errors import StorageError

PATIENCE = 60.0
"""For so many seconds the end of a process waits for the storage calls of its threads."""

_POLL = 0.005
# Whose frames stand right above native code that must not be cut off.
_NATIVE = ("omnigraph.storage", "lance", "obstore")
_NEAR = ("omnigraph", "pyarrow")

# The process that used the storage first, and the thread that ends it; 0 is none.
_user = 0
_ender = 0


def require_usable() -> None:
    """Refuse a storage call that would hang or crash; every way into the storage passes here.

    A thread that asks while the process ends is ended itself, quietly, as the interpreter
    does with threads that nobody waits for.
    """
    global _user  # noqa: PLW0603 - one per process is what it is for
    process = os.getpid()
    if _user != process:
        if _user:
            raise StorageError(
                "this process was forked from one that had opened tables: "
                'start it with the "spawn" method instead',
                kind="configuration",
            )
        _user = process
    if _ender and _ender != threading.get_ident():
        # Threads end at it without a word; a report could be cut off in the middle of writing.
        raise SystemExit


def _end() -> None:
    """Let running storage calls finish and begin no new ones, except in this thread.

    The interpreter kills a thread that comes back to Python too late; where native code is
    on its stack, that takes the whole process down.
    """
    global _ender  # noqa: PLW0603 - as above
    _ender = threading.get_ident()
    deadline = time.monotonic() + PATIENCE
    while _others_are_inside() and time.monotonic() < deadline:
        time.sleep(_POLL)


def _others_are_inside() -> bool:
    own = threading.get_ident()
    frames = sys._current_frames()  # noqa: SLF001 - the documented way to see other threads
    return any(_is_inside(frame) for ident, frame in frames.items() if ident != own)


def _is_inside(frame: FrameType) -> bool:
    """Whether a thread may be in native code: a generator that waits is on no stack."""
    if _belongs(frame, _NEAR):
        return True
    level: FrameType | None = frame
    while level is not None:
        if _belongs(level, _NATIVE):
            return True
        level = level.f_back
    return False


def _belongs(frame: FrameType, packages: tuple[str, ...]) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == package or module.startswith(f"{package}.") for package in packages)


atexit.register(_end)
