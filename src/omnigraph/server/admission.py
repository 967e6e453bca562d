"""Admission: how much each actor may have under way at once.

Owns the counts of one process. Reads and streams are not counted here.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from omnigraph.server.answers import Refusal

ANONYMOUS = "anonymous"
RETRY_SECONDS = 60


class Admission:
    """Requests and estimated bytes by actor."""

    def __init__(self, requests: int, size: int) -> None:
        self._most_requests = requests
        self._most_bytes = size
        self._under_way: dict[str, tuple[int, int]] = {}
        self._lock = Lock()

    def admit(self, actor: str | None, size: int) -> Callable[[], None]:
        """Count a request; returns what ends it. Raises if the actor has too much under way."""
        name = ANONYMOUS if actor is None else actor
        with self._lock:
            requests, held = self._under_way.get(name, (0, 0))
            if requests >= self._most_requests:
                raise _too_many(
                    f"actor '{name}' has {requests} requests under way, which is all it may have"
                )
            if held + size > self._most_bytes:
                raise _too_many(
                    f"actor '{name}' has {held:,} bytes under way: {size:,} more would be more "
                    f"than the {self._most_bytes:,} it may have"
                )
            self._under_way[name] = requests + 1, held + size

        def end() -> None:
            with self._lock:
                requests, held = self._under_way[name]
                if requests == 1:
                    del self._under_way[name]
                else:
                    self._under_way[name] = requests - 1, held - size

        return end


def _too_many(text: str) -> Refusal:
    return Refusal(429, f"{text}: try again later", headers={"Retry-After": str(RETRY_SECONDS)})
