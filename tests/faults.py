"""Faults: what tests do at the named points of the storage and of the layers above."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal, get_args

from omnigraph.errors import StorageError
from omnigraph.storage.objects.faults import Point, Watch, reach, watched

__all__ = [
    "STORAGE_POINTS",
    "Failure",
    "Fault",
    "Point",
    "StoragePoint",
    "Watch",
    "armed",
    "observed",
    "reach",
    "unavailable",
    "watched",
]

StoragePoint = Literal["before_put", "after_put", "before_commit", "after_commit"]
STORAGE_POINTS: tuple[StoragePoint, ...] = get_args(StoragePoint)
Failure = Callable[[], StorageError | None]


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
