"""The budget of a query: how long it may run, how much it may hold, and whether it is wanted.

Owns the checks between steps and before anything large is made. Exceeding a bound is
an error that names it; nothing is returned then.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from omnigraph.errors import QueryCancelled, ResourceLimit


class Cancellation:
    """A switch that another thread turns to stop a query."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Stop the query at its next step."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether it was turned."""
        return self._event.is_set()


@dataclass(frozen=True, slots=True)
class Budget:
    """The bounds of one run; None is no bound."""

    timeout: float | None = None
    max_bytes: int | None = None
    cancellation: Cancellation | None = None
    started: float = field(default_factory=time.monotonic)

    def check(self, needed: int = 0) -> None:
        """Stop when a bound is passed, or would be by making ``needed`` more bytes."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise QueryCancelled("the query was cancelled")
        spent = time.monotonic() - self.started
        if self.timeout is not None and spent > self.timeout:
            raise ResourceLimit(
                f"the query has run for {spent:.1f} s, longer than its timeout of "
                f"{self.timeout:g} s: narrow it down, or allow it more time",
                details={"resource": "query_seconds", "limit": self.timeout, "actual": spent},
            )
        if self.max_bytes is not None and needed > self.max_bytes:
            raise ResourceLimit(
                f"the query needs {needed:,} bytes at once, more than the {self.max_bytes:,} it "
                "may have: narrow it down, or allow it more memory",
                details={"resource": "query_bytes", "limit": self.max_bytes, "actual": needed},
            )
