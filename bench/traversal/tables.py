"""The table of the traversal benchmark: ours and the peers side by side.

Owns judging the answers and the text of the table. Must never print or measure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.ratio import Ratio
from bench.traversal.questions import Question
from bench.traversal.systems import OURS, Rows


@dataclass(frozen=True, slots=True)
class Times:
    """The seconds of one system for one question, one for each set of parameters."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Half are faster."""
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        """All but one in twenty are at least as fast."""
        return sorted(self.seconds)[int(0.95 * (len(self.seconds) - 1))]


@dataclass(frozen=True, slots=True)
class Line:
    """What was measured for one question."""

    question: Question
    times: dict[str, Times]

    @property
    def best_peer(self) -> float | None:
        """The median of the fastest peer."""
        peers = [found.median for name, found in self.times.items() if name != OURS]
        return min(peers, default=None)

    def ratio(self) -> Ratio | None:
        """Ours over the fastest peer; None without one."""
        best = self.best_peer
        if best is None:
            return None
        name = f"{self.question.name} / fastest peer"
        return Ratio(name, self.times[OURS].median, best, self.question.limit)


def agree(question: Question, ours: Rows, theirs: Rows) -> bool:
    """Whether two answers are the same; the order matters only if it was asked for."""
    if not question.ordered:
        ours, theirs = sorted(ours, key=_text), sorted(theirs, key=_text)
    return len(ours) == len(theirs) and all(map(_equal, ours, theirs))


def _text(row: Sequence[object]) -> str:
    return str([round(cell, 6) if isinstance(cell, float) else cell for cell in row])


def _equal(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return _text(ours) == _text(theirs)


def table(lines: Sequence[Line], peers: Sequence[str]) -> str:
    """Milliseconds; the last column is our median over that of the fastest peer."""
    heads = ["ours", "p95", *peers, "ratio"]
    width = max(len(line.question.name) for line in lines)
    text = [f"{'ms, median':<{width}}" + "".join(f"{head:>10}" for head in heads)]
    for line in lines:
        ours = line.times[OURS]
        theirs = [line.times.get(peer) for peer in peers]
        cells = [
            ours.median,
            ours.p95,
            *(None if found is None else found.median for found in theirs),
        ]
        shown = "".join(f"{'':>10}" if cell is None else f"{1e3 * cell:>10.2f}" for cell in cells)
        best = line.best_peer
        ratio = "" if best is None else f"{ours.median / best:>10.2f}"
        text.append(f"{line.question.name:<{width}}{shown}{ratio}")
    return "\n".join(text)
