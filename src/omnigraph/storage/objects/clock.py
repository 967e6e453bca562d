"""The clock of this machine, and ids that carry its time.

Owns the refusal of a clock that cannot be right. Whoever only looks never asks it.
"""

from __future__ import annotations

from time import time_ns

from ulid import ULID

from omnigraph.errors import StorageError


def microseconds_now() -> int:
    """The time, in microseconds since the epoch."""
    now = time_ns() // 1000
    if now < 0:
        raise StorageError(
            "the clock of this machine shows a time before 1970: set it, nothing was written",
            kind="configuration",
        )
    return now


def new_id() -> str:
    """A new ULID: ids that are made later sort behind it."""
    microseconds_now()
    return str(ULID())
