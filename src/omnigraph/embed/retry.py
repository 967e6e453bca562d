"""Patience: how often a request is made, how long each attempt may take, and all of them.

Owns the clock of one call: every attempt with the pauses between them. Knows nothing of
what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic, sleep


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of one call; a ``deadline_ms`` of 0 is none."""

    timeout_ms: int = 30_000
    deadline_ms: int = 60_000
    attempts: int = 4
    backoff_ms: int = 200

    def begin(self) -> RetryState:
        """Start the clock of a call."""
        ends = monotonic() + self.deadline_ms / 1000 if self.deadline_ms else None
        return RetryState(self, ends)


@dataclass(slots=True)
class RetryState:
    """The attempts of one call."""

    patience: RetryPolicy
    ends: float | None
    made: int = field(default=0)

    def attempt(self) -> float:
        """Count another attempt; returns how many seconds it may take."""
        self.made += 1
        timeout = self.patience.timeout_ms / 1000
        return timeout if self.ends is None else max(min(timeout, self.ends - monotonic()), 0.001)

    def wait(self, asked: float | None = None) -> bool:
        """Wait before the next attempt; False, at once, when there is to be none.

        ``asked`` is how many seconds the other side wants to be left alone. A pause that
        would end after the deadline is not begun.
        """
        if self.made >= self.patience.attempts:
            return False
        pause = self.patience.backoff_ms / 1000 * 2 ** (self.made - 1)
        pause = max(pause, asked or 0.0)
        if self.ends is not None and monotonic() + pause >= self.ends:
            return False
        sleep(pause)
        return True
