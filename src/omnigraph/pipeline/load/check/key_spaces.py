"""Key spaces: keys of one kind, cut by one number of ranges wherever they come from.

Owns running the tasks that cut keys and those that decide. What
is decided is said in ranges.py; this only hands it out and puts together what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.pipeline.load.check.cuts import Cut, CutJob, KeySlices, cut
from omnigraph.pipeline.load.check.ranges import Decision, Found, RangeJob, decide, kinds_of
from omnigraph.pipeline.load.stage.area import StagingArea

RunTasks = Callable[[str, Callable[..., Any], Sequence[Any]], list[Any]]


@dataclass(slots=True)
class KeySpaces:
    """The cuts of one round, by name."""

    run: RunTasks
    area: StagingArea
    made: dict[str, KeySlices] = field(default_factory=dict)

    def cut(self, jobs: Sequence[tuple[str, CutJob]]) -> None:
        """Cut keys; those of one name belong together, in the order of the jobs."""
        cuts: list[Cut] = self.run("cut keys", cut, [job for _, job in jobs])
        by_name: dict[str, list[tuple[CutJob, Cut]]] = {}
        for (name, job), made in zip(jobs, cuts, strict=True):
            by_name.setdefault(name, []).append((job, made))
        for name, found in by_name.items():
            job = found[0][0]
            listed = self.area.keep("cuts", tuple(made.name for _, made in found))
            count = sum(made.keys for _, made in found)
            self.made[name] = KeySlices(self.area, listed, job.columns, job.ranges, count)

    def some(self, *names: str) -> tuple[KeySlices, ...]:
        """Those that there are."""
        return tuple(self.made[name] for name in names if name in self.made)

    def decide(self, decisions: Sequence[tuple[Decision, int]]) -> dict[str, list[Found]]:
        """What is found about all ranges of some decisions, kind by kind."""
        jobs = []
        for decision, ranges in decisions:
            kept = self.area.keep("decision", decision)
            jobs += [RangeJob(self.area, kept, number) for number in range(ranges)]
        made: list[list[Found]] = self.run("check", decide, jobs)
        return kinds_of([one for found in made for one in found])
