"""One measured ratio and its limit, and how to measure two commands fairly.

Owns the data and the timing. Must never print.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ratio:
    """Time of the thing under test over the time of its yardstick."""

    name: str
    numerator_s: float
    denominator_s: float
    limit: float
    unit: str = "s"
    """Of what is no time, what it is."""

    @property
    def value(self) -> float:
        """How many yardsticks the thing takes."""
        return self.numerator_s / self.denominator_s

    @property
    def passed(self) -> bool:
        """Whether the ratio keeps its limit."""
        return self.value <= self.limit


def interleaved(
    numerator: Callable[[], object],
    denominator: Callable[[], object],
    *,
    runs: int = 15,
    pick: Callable[[Sequence[float]], float] = statistics.median,
) -> tuple[float, float]:
    """Median seconds of both, measured in turns so that noise hits both alike.

    One run of each goes unmeasured, to fill caches. For long runs the fastest
    (``pick=min``) says more than the median: noise only ever adds.
    """
    numerator()
    denominator()
    samples = [(_seconds(numerator), _seconds(denominator)) for _ in range(runs)]
    tops, bottoms = zip(*samples, strict=True)
    return pick(tops), pick(bottoms)


def _seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
