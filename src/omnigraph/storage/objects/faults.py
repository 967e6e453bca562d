"""Fault injection: named points at which a test can make the storage fail.

Owns the points and what is armed at them, in this process only. Must never be
armed by configuration or environment: nothing but a test calls `watched`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Point = str
"""`before_put`, `after_put`, `before_commit`, `after_commit`, or one of a layer above.

An `after_…` point is passed when the effect has happened.
"""
Watch = Callable[[Point, str], None]


# Replaced as a whole, never changed in place: `reach` reads it without a lock.
_armed: tuple[Watch, ...] = ()
_arming = threading.Lock()


def reach(point: Point, target: str) -> None:
    """Pass a point with the object or table it concerns; costs one comparison when idle."""
    if _armed:
        for watch in _armed:
            watch(point, target)


@contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Within the block, be called with every point that is passed and its target."""
    global _armed  # noqa: PLW0603 - one switch for the process is the point of it
    with _arming:
        _armed = (*_armed, watch)
    try:
        yield
    finally:
        with _arming:
            _armed = tuple(other for other in _armed if other is not watch)
