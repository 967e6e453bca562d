"""The cost of a step: requests and time, and the table that shows them.

Owns the data, the measuring and the text. Must never print.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnigraph.storage.objects.meter import measure

LABEL, CELL = 22, 21


@dataclass(frozen=True, slots=True)
class Cost:
    """The medians of several runs."""

    requests: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.requests:>4} req {self.seconds * 1e3:>8.1f} ms"


def costs(
    actions: Sequence[Callable[[], object]],
    *,
    runs: int,
    before: Callable[[], object] = lambda: None,
) -> list[Cost]:
    """The cost of each action, measured in turns so that noise hits all alike.

    One run of each goes unmeasured, to fill the caches that ``before`` does not
    empty; it is called before every run, and not measured.
    """
    rounds: list[list[Cost]] = []
    for _ in range(1 + runs):
        measured: list[Cost] = []
        for action in actions:
            before()
            measured.append(_cost(action))
        rounds.append(measured)
    return [
        Cost(
            statistics.median_low(cost.requests for cost in samples),
            statistics.median(cost.seconds for cost in samples),
        )
        for samples in zip(*rounds[1:], strict=True)
    ]


def line(label: str, cells: Sequence[object]) -> str:
    """One line of the table."""
    return f"{label:<{LABEL}}" + "".join(f"{cell!s:>{CELL}}" for cell in cells)


def _cost(action: Callable[[], object]) -> Cost:
    with measure() as meter:
        start = time.perf_counter()
        action()
        seconds = time.perf_counter() - start
    return Cost(meter.total, seconds)
