"""The trace of a run: what each operator did, for whoever asks to have it explained.

Owns collecting it. Costs nothing unless it is switched on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from omnigraph.read.access.column_cache import ColumnCache
from omnigraph.read.access.column_cache import columns as shared_columns
from omnigraph.storage.objects.meter import RequestMeter, measure


@dataclass(slots=True)
class Operator:
    """One operator of a plan, and what it did."""

    name: str
    detail: str = ""
    depth: int = 0
    rows: int | None = None
    seconds: float | None = None
    requests: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Trace:
    """The operators in the order they began; ``is_on`` says whether anybody wants them."""

    is_on: bool = False
    operators: list[Operator] = field(default_factory=list)
    columns: ColumnCache = field(default_factory=lambda: shared_columns)
    _open: list[Operator] = field(default_factory=list)

    @contextmanager
    def operator(self, name: str, detail: str = "") -> Iterator[Operator]:
        """Within the block, an operator is at work; it says itself how many rows it gave."""
        done = Operator(name, detail, len(self._open))
        if not self.is_on:
            yield done
            return
        self.operators.append(done)
        self._open.append(done)
        before = self.columns.use()
        start = time.perf_counter()
        meter = RequestMeter()
        try:
            with measure() as meter:
                yield done
        finally:
            self._open.pop()
            done.seconds = time.perf_counter() - start
            done.requests = meter.total
            after = self.columns.use()
            done.notes["cache_hits"] = after.hits - before.hits
            done.notes["cache_misses"] = after.misses - before.misses

    def note(self, **facts: Any) -> None:
        """Something about the operator at work."""
        if self._open:
            self._open[-1].notes.update(facts)

    def note_first(self, name: str, fact: Any) -> None:
        """The same for a fact that is true of the first time only."""
        if self._open:
            self._open[-1].notes.setdefault(name, fact)

    def hop(self, sources: int, expansion: str) -> None:
        """One hop of the operator at work: from how many nodes, and how."""
        if self._open:
            hops = self._open[-1].notes.setdefault("hops", [])
            hops.append({"sources": sources, "expansion": expansion})

    def pairs(self, count: int, expansion: str) -> None:
        """Pairs of nodes that the operator at work has tested for a connection, and how."""
        if self._open:
            tests = self._open[-1].notes.setdefault("pairs", [])
            tests.append({"pairs": count, "expansion": expansion})
