"""Fault injection: named points at which a test can make the storage fail.

Owns the points and what is armed at them, in this process only. Must never be
armed by configuration or environment: nothing but a test calls `armed` or `watched`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

from omnigraph.errors import StorageError

StoragePoint = Literal["before_put", "after_put", "before_commit", "after_commit"]
STORAGE_POINTS: tuple[StoragePoint, ...] = get_args(StoragePoint)
Point = str
"""One of the storage points, or one that a layer above names for itself."""
Failure = Callable[[], StorageError | None]
Watch = Callable[[Point, str], None]


def unavailable() -> StorageError:
    """The failure that is injected unless a test names another."""
    return StorageError("injected fault: the storage did not answer", kind="transient")


@dataclass(slots=True)
class Fault:
    """What is armed at a point; ``fired`` counts how often it happened."""

    point: Point
    failure: Failure
    skip: int
    times: int | None
    matching: str
    fired: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def reach(self, point: Point, target: str) -> None:
        """Fail if this is the armed point and its turn has come."""
        if point != self.point or self.matching not in target:
            return
        with self._lock:
            if self.skip > 0:
                self.skip -= 1
                return
            if self.times is not None and self.fired >= self.times:
                return
            self.fired += 1
        error = self.failure()
        if error is not None:
            raise error


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


@contextmanager
def armed(
    point: Point,
    failure: Failure = unavailable,
    *,
    skip: int = 0,
    times: int | None = 1,
    matching: str = "",
) -> Iterator[Fault]:
    """Within the block, let a point fail.

    ``after_…`` points are passed when the effect has happened: failing there is
    a lost acknowledgement. The first ``skip`` passes go through, then ``times``
    fail (None: all). ``matching`` limits it to targets that contain the text.
    """
    fault = Fault(point, failure, skip, times, matching)
    with watched(fault.reach):
        yield fault


@contextmanager
def observed(
    point: Point,
    action: Callable[[], object],
    *,
    skip: int = 0,
    times: int | None = 1,
    matching: str = "",
) -> Iterator[Fault]:
    """Within the block, do something when a point is passed; the pass itself goes well."""

    def act() -> None:
        action()

    with armed(point, act, skip=skip, times=times, matching=matching) as fault:
        yield fault
