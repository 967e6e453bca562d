"""Pausing Python's cycle collector while a large tree grows.

A syntax tree has no cycles, but the collector would walk all of it again and
again while it is built, which makes large texts cost more than their share.
Owns the pause; never leaves the collector in another state than it found.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

LARGE_TEXT = 50_000
"""Below this many characters the collector hardly notices the tree."""

_lock = Lock()
_pauses = 0
_was_enabled = False


@contextmanager
def collection_paused(size: int) -> Iterator[None]:
    """Pause the collector for the body if the text is large; pauses of threads may overlap."""
    if size < LARGE_TEXT:
        yield
        return
    _pause()
    try:
        yield
    finally:
        _resume()


def _pause() -> None:
    global _pauses, _was_enabled  # noqa: PLW0603 - the collector is global, and so is its pause
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1


def _resume() -> None:
    global _pauses  # noqa: PLW0603 - as above
    with _lock:
        _pauses -= 1
        if _pauses == 0 and _was_enabled:
            gc.enable()
