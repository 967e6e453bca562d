"""A wrong clock: the wall clock of this process, moved by some seconds.

Owns the patches of everything that Python code asks for the time of day. File times stay
the kernel's, and the monotonic clock stays right. To be called before the project is
imported: a module that has taken a function by name keeps the one it has.
"""

from __future__ import annotations

import datetime as dt
import time
from datetime import datetime as TrueTime  # noqa: N812 - the one that stays
from typing import Any


def shift_clock(seconds: float) -> None:
    """Let this process believe that it is so many seconds later."""
    if not seconds:
        return
    true_time, true_time_ns = time.time, time.time_ns
    time.time = lambda: true_time() + seconds
    time.time_ns = lambda: true_time_ns() + int(seconds * 1e9)
    delta = dt.timedelta(seconds=seconds)

    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            # What C code makes is of the true class.
            return isinstance(value, TrueTime)

    class Shifted(TrueTime, metaclass=Kind):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return TrueTime.now(tz) + delta

        @classmethod
        def utcnow(cls) -> Any:
            return TrueTime.now(dt.UTC).replace(tzinfo=None) + delta

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    setattr(dt, "datetime", Shifted)  # noqa: B010 - an assignment to a type is refused
