"""A load with its tasks in the driver's process, killed at each point and task that it passes.

Owns what such a process does; without Spark it costs little enough to die everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.spark import tasks
from tests import faults
from tests.pipeline.engines import run_tasks_here
from tests.pipeline.load_worker import name_of
from tests.write.crash.crash_child import Passing, target_name
from tests.write.processes import context, die

# As many processes as there are points: what they import is imported once.
context.set_forkserver_preload(["omnigraph.graph", "tests.pipeline.kill_points"])

At = Callable[[Passing], object]


@dataclass(slots=True)
class Passings:
    """Counts what is passed, and calls ``at`` with each passing."""

    at: At
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def point(self, point: str, target: str) -> None:
        """A point of the driver."""
        # Directories of tables and files of the staging area have names of their own each time.
        self._pass(
            point, "staging" if target.startswith("__staging") else target_name(point, target)
        )

    def run_tasks(
        self, _: object, function: Callable[[Any], Any], items: Sequence[Any]
    ) -> list[Any]:
        """The tasks, with a passing when each of them is done."""
        results = []
        for item in items:
            results.append(function(item))
            self._pass("task", name_of(function))
        return results

    def _pass(self, point: str, target: str) -> None:
        self.counts[point, target] += 1
        self.at(Passing(point, target, self.counts[point, target]))


def load(root: str, files: Sequence[str], options: Mapping[str, Any], at: At) -> None:
    """Load on no Spark at all."""
    graph = og.open(root, actor="driver")
    passings = Passings(at)
    with pytest.MonkeyPatch.context() as patch, faults.watched(passings.point):
        run_tasks_here(patch)
        patch.setattr(tasks, "run_tasks", passings.run_tasks)
        graph.load(list(files), engine="spark", **options)


def rehearse(
    root: str, files: Sequence[str], options: Mapping[str, Any], answer: Connection
) -> None:
    """Load, and tell every passing in order."""
    passings: list[Passing] = []
    load(root, files, options, passings.append)
    answer.send(passings)
    answer.close()


def crash(root: str, files: Sequence[str], options: Mapping[str, Any], fatal: Passing) -> None:
    """Load, and die at one passing."""

    def at(passing: Passing) -> None:
        if passing == fatal:
            die()

    load(root, files, options, at)
