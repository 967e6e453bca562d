"""The trace of a run: what each operator did, for whoever asks to have it explained.

Owns collecting it. Costs nothing unless it is switched on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from omnigraph.storage.meter import RequestMeter, measure


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
    _depth: int = 0

    @contextmanager
    def operator(self, name: str, detail: str = "") -> Iterator[Operator]:
        """Within the block, an operator is at work; it says itself how many rows it gave."""
        done = Operator(name, detail, self._depth)
        if not self.is_on:
            yield done
            return
        self.operators.append(done)
        self._depth += 1
        start = time.perf_counter()
        meter = RequestMeter()
        try:
            with measure() as meter:
                yield done
        finally:
            self._depth -= 1
            done.seconds = time.perf_counter() - start
            done.requests = meter.total
