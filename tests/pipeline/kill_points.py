"""A load with its tasks in the driver's process, killed at each point and task that it passes.

Owns what such a process does, as the driver of Spark and as the load of one process; without
Spark it costs little enough to die everywhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import pytest

import omnigraph as og
from omnigraph.pipeline.spark import tasks
from omnigraph.pipeline.task_runner import InProcessRunner
from omnigraph.write.load import input as load_input
from tests import faults
from tests.pipeline.engines import run_tasks_here
from tests.pipeline.load_worker import name_of
from tests.write.crash.crash_child import Passing, target_name
from tests.write.processes import context, die

# As many processes as there are points: what they import is imported once.
context.set_forkserver_preload(["omnigraph.graph", "tests.pipeline.kill_points"])

At = Callable[[Passing], object]
_run_in_process = InProcessRunner.run


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

    def in_process(self) -> Callable[..., list[Any]]:
        """What the runner of one process is to run instead: the same with such passings."""

        def run(
            runner: InProcessRunner, title: str, function: Callable[[Any], Any], items: Any
        ) -> list[Any]:
            def passed(item: Any) -> Any:
                result = function(item)
                self._pass("task", name_of(function))
                return result

            return _run_in_process(runner, title, passed, items)

        return run

    def _pass(self, point: str, target: str) -> None:
        self.counts[point, target] += 1
        self.at(Passing(point, target, self.counts[point, target]))


def load(root: str, files: Sequence[str], options: Mapping[str, Any], at: At, way: str) -> None:
    """Load as the driver of no Spark at all, or in one process ("inline")."""
    graph = og.open(root, actor="driver")
    passings = Passings(at)
    with pytest.MonkeyPatch.context() as patch, faults.watched(passings.point):
        if way == "spark":
            run_tasks_here(patch)
            patch.setattr(tasks, "run_tasks", passings.run_tasks)
        else:
            patch.setattr(load_input, "is_request_sized", lambda *_: False)
            # One after the other, so that they pass in the same order each time.
            patch.setattr(InProcessRunner, "cores", property(lambda _: 1))
            patch.setattr(InProcessRunner, "run", passings.in_process())
        graph.load(list(files), engine=way, **options)


def rehearse(
    root: str, files: Sequence[str], options: Mapping[str, Any], way: str, answer: Connection
) -> None:
    """Load, and tell every passing in order."""
    passings: list[Passing] = []
    load(root, files, options, passings.append, way)
    answer.send(passings)
    answer.close()


def crash(
    root: str, files: Sequence[str], options: Mapping[str, Any], way: str, fatal: Passing
) -> None:
    """Load, and die at one passing."""

    def at(passing: Passing) -> None:
        if passing == fatal:
            die()

    load(root, files, options, at, way)


def load_when_told(
    root: str,
    files: Sequence[str],
    options: Mapping[str, Any],
    way: str,
    *,
    environment: Mapping[str, str],
    line: Connection,
) -> None:
    """Load as it is, with its threads, once somebody says so."""
    os.environ.update(environment)
    graph = og.open(root, actor="driver")
    with pytest.MonkeyPatch.context() as patch:
        if way == "spark":
            run_tasks_here(patch)
        line.send("ready")
        line.recv()
        graph.load(list(files), engine=way, **options)
    line.send("done")
