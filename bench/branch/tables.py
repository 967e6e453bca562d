"""The tables of the branch benchmark: merges beside the peer's, and merges into larger tables.

Owns the text. Must never print or measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.branch.rounds import Round, Step


@dataclass(slots=True)
class Rounds:
    """All rounds of one step by one system; of the times, the fastest count.

    What others do on this machine only ever adds to a time.
    """

    step: Step
    done: list[Round] = field(default_factory=list)

    @property
    def merge(self) -> float:
        """The fastest merge."""
        return min(one.merge for one in self.done)

    @property
    def diff(self) -> float:
        """The fastest diff."""
        return min(one.diff for one in self.done)

    @property
    def requests(self) -> int:
        """The fewest requests: now and then one more file is written for good measure."""
        return min(one.requests for one in self.done)


def merge_table(ours: Sequence[Rounds], peer: Sequence[Rounds], name: str) -> str:
    """Milliseconds and rows a second of both, step by step."""
    shown = ["merge ms", "rows/s", "diff ms"]
    heads = [*(f"ours {head}" for head in shown), *(f"{name} {head}" for head in shown if peer)]
    width = max(len(found.step.name) for found in ours)
    text = ["".join([f"{'merge':<{width}}", *(f"{head:>20}" for head in heads)])]
    for number, found in enumerate(ours):
        cells = [*_cells(found), *(_cells(peer[number]) if peer else ())]
        text.append("".join([f"{found.step.name:<{width}}", *(f"{cell:>20}" for cell in cells)]))
    return "\n".join(text)


def growth_table(found: Mapping[int, Rounds]) -> str:
    """The same delta in tables of several sizes."""
    text = [f"{'rows in the table':<18}{'merge ms':>10}{'requests':>10}"]
    for size, rounds in found.items():
        text.append(f"{size:<18,}{1e3 * rounds.merge:>10.1f}{rounds.requests:>10}")
    return "\n".join(text)


def _cells(found: Rounds) -> tuple[str, str, str]:
    speed = found.step.changed / found.merge
    return f"{1e3 * found.merge:.1f}", f"{speed:,.0f}", f"{1e3 * found.diff:.1f}"
