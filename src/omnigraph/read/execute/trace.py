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

    @property
    def identity(self) -> tuple[str, str, int]:
        """What is the same each time it is at work."""
        return self.name, self.detail, self.depth

    def add(self, again: Operator) -> None:
        """Count in what it did when it was at work again."""
        self.rows = (self.rows or 0) + (again.rows or 0)
        self.seconds = (self.seconds or 0.0) + (again.seconds or 0.0)
        if again.requests is None:
            return
        self.requests = (self.requests or 0) + again.requests
        for name in ("cache_hits", "cache_misses"):
            self.notes[name] = self.notes.get(name, 0) + again.notes.get(name, 0)


@dataclass(slots=True)
class Trace:
    """The operators in the order they began; ``is_on`` says whether anybody wants them."""

    is_on: bool = False
    operators: list[Operator] = field(default_factory=list)
    columns: ColumnCache = field(default_factory=lambda: shared_columns)
    counts_reads: bool = True
    """Whether it tells what was read of storage and of caches."""
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
            if self.counts_reads:
                done.requests = meter.total
                after = self.columns.use()
                done.notes["cache_hits"] = after.hits - before.hits
                done.notes["cache_misses"] = after.misses - before.misses

    def fold(self, first: int, since: int) -> None:
        """Make operators that began after ``since`` one with their likes from ``first`` on."""
        likes = {found.identity: found for found in self.operators[first:since]}
        again = self.operators[since:]
        del self.operators[since:]
        for operator in again:
            if operator.identity in likes:
                likes[operator.identity].add(operator)
            else:
                self.operators.append(operator)

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
