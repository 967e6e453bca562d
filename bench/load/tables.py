"""The tables of the load benchmark: who took how long, and which goals were reached.

Owns the text. A goal that is missed is told and fails nothing: it depends on the machine and
on the versions of the peers. Must never print or measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.load.systems import Loaded
from bench.ratio import Ratio


@dataclass(frozen=True, slots=True)
class Line:
    """The fastest of several loads, and how many rows it had."""

    name: str
    loaded: Loaded
    rows: int

    @classmethod
    def fastest(cls, name: str, loads: Sequence[Loaded], rows: int) -> Line:
        """What others do on this machine only ever adds to a time."""
        return cls(name, min(loads, key=lambda one: one.seconds), rows)

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.loaded.seconds


@dataclass(frozen=True, slots=True)
class Goal:
    """Something over its yardstick, in any unit, and what it should be at most."""

    name: str
    value: float
    yardstick: float
    goal: float

    @property
    def quotient(self) -> float:
        """How many yardsticks it is."""
        return self.value / self.yardstick

    @property
    def is_reached(self) -> bool:
        """Whether it is as small as it should be."""
        return self.quotient <= self.goal

    def ratio(self) -> Ratio:
        """The same for the table of all benchmarks, with no limit."""
        return Ratio(self.name, self.value, self.yardstick, float("inf"))


def load_table(lines: Sequence[Line]) -> str:
    """Seconds and rows a second, and the stages of loads that have some."""
    width = max(len(line.name) for line in lines)
    text = [f"{'load':<{width}}{'seconds':>9}{'rows/s':>12}  stages, seconds"]
    for line in lines:
        stages = ", ".join(f"{name} {took:.2f}" for name, took in line.loaded.stages.items())
        speed = f"{line.rows / line.seconds:,.0f}"
        text.append(f"{line.name:<{width}}{line.seconds:>9.2f}{speed:>12}  {stages}".rstrip())
    return "\n".join(text)


def goal_table(goals: Sequence[Goal]) -> str:
    """What was hoped for and what was found."""
    width = max(len(goal.name) for goal in goals)
    text = [f"{'ratio':<{width}}{'found':>8}{'goal':>8}"]
    for goal in goals:
        verdict = "reached" if goal.is_reached else "missed"
        text.append(f"{goal.name:<{width}}{goal.quotient:>8.2f}{goal.goal:>8.2f}  {verdict}")
    return "\n".join(text)
