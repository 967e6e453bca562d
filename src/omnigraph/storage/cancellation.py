"""The switch that stops a query.

Owns nothing but that; light to import, for those who only hand it on.
"""

from __future__ import annotations

import threading


class Cancellation:
    """A switch that another thread turns to stop a query."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Stop the query at its next step.

        >>> stop = og.Cancellation()
        >>> stop.cancel()
        >>> graph.query("match { $p: Person } return { $p.name }", cancellation=stop)
        Traceback (most recent call last):
        omnigraph.errors.QueryCancelled: ...
        """
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether it was turned."""
        return self._event.is_set()
