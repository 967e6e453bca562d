"""One round of the branch benchmark: fork, change both sides, count the difference, merge.

Owns the order of the steps, and the check that the merge left what it had to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bench.branch.data import People
from bench.branch.systems import Brancher


@dataclass(frozen=True, slots=True)
class Step:
    """How many rows the source changes, and whether the target stays as it was."""

    changed: int
    fast_forward: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.changed:,} rows, {'fast-forward' if self.fast_forward else 'three-way'}"


@dataclass(frozen=True, slots=True)
class Round:
    """What the two steps that count have cost."""

    diff: float
    merge: float
    requests: int = 0


def run_round(asked: Brancher, people: People, step: Step) -> Round:
    """Everything once; only the diff and the merge count."""
    delta = people.next_round(step.changed, fast_forward=step.fast_forward)
    asked.branch(delta.name)
    asked.change(delta.name, delta.source)
    if delta.target is not None:
        asked.change("main", delta.target)
    differing = asked.diff(delta.name)
    merged = asked.merge(delta.name)
    if differing.rows != delta.differing:
        raise RuntimeError(
            f"{differing.rows} rows differ before {step.name}, not {delta.differing}"
        )
    found, wanted = asked.sums(), people.sums
    if found[:2] != wanted[:2] or not math.isclose(found[2], wanted[2], rel_tol=1e-9):
        raise RuntimeError(f"after {step.name} there are {found}, not {wanted}")
    return Round(differing.seconds, merged.seconds, merged.requests)
