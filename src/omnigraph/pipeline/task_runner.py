"""Task runners: a function of ours run for each of many items, stage by stage.

Owns what the stages of a load may ask of whatever runs them, and the runner of this process: a few
threads, since decoding, hashing and writing leave the interpreter free. Must never import Spark,
whose runner is in spark/tasks.py, nor know what the tasks do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Protocol

from omnigraph.pipeline.stage_bars import StageBars, TaskCount
from omnigraph.storage.memory import give_memory_back

# A task holds some hundred megabytes: more of them at once would need the memory of a cluster.
MOST_THREADS = 4
LONG_SECONDS = 0.1
"""After a task that took longer, to give memory back takes next to no time."""
# Not on every system.
_HAS_AFFINITY = hasattr(os, "sched_getaffinity")


class TaskRunner(Protocol):
    """Runs the stages of some work, shown and timed."""

    @property
    def seconds(self) -> dict[str, float]:
        """Those of each stage so far."""

    @property
    def task_seconds(self) -> dict[str, list[float]]:
        """Those of each task, by stage."""

    @property
    def name(self) -> Literal["inline", "spark"]:
        """The engine, as results call it."""

    @property
    def cores(self) -> int:
        """How many tasks run at once."""

    @property
    def share(self) -> int:
        """Into how many parts a task of usual size is cut, since several share one memory."""

    @property
    def log_file(self) -> Path | None:
        """Where the engine writes what it does, if it does."""

    def run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """A stage of one task for each item; the results in the order of the items."""

    def stage(self, title: str) -> AbstractContextManager[None]:
        """A stage of whatever the block does, with the engine's errors told as ours."""


@contextmanager
def timed(seconds: dict[str, float], title: str) -> Iterator[None]:
    """Book the time of the block to a stage."""
    begun = monotonic()
    try:
        yield
    finally:
        seconds[title] = seconds.get(title, 0.0) + monotonic() - begun


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A function whose results come with the seconds that they took, wherever it runs."""

    function: Callable[..., Any]

    def __call__(self, item: Any) -> tuple[Any, float]:
        """Run it."""
        begun = monotonic()
        return self.function(item), monotonic() - begun


def untimed(
    booked: dict[str, list[float]], title: str, results: Sequence[tuple[Any, float]]
) -> list[Any]:
    """Book the seconds of tasks to a stage; their results."""
    booked.setdefault(title, []).extend(took for _, took in results)
    return [result for result, _ in results]


@dataclass(frozen=True, slots=True)
class _Tidy:
    """A timed task of this process, which gives memory back after it has taken a while."""

    task: TimedTask

    def __call__(self, item: Any) -> tuple[Any, float]:
        """Run it."""
        result, took = self.task(item)
        if took > LONG_SECONDS:
            give_memory_back()
        return result, took


@dataclass(frozen=True, slots=True)
class InProcessRunner:
    """Runs tasks in threads of this process."""

    bars: StageBars = field(default_factory=StageBars)
    seconds: dict[str, float] = field(default_factory=dict)
    task_seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> Literal["inline", "spark"]:
        """The engine of this process."""
        return "inline"

    @property
    def cores(self) -> int:
        """As many as this process may use, and memory allows."""
        usable = len(os.sched_getaffinity(0)) if _HAS_AFFINITY else os.cpu_count() or 1
        return min(usable, MOST_THREADS)

    @property
    def share(self) -> int:
        """One more than there are threads: beside their tasks the process has memory of its own."""
        return self.cores + 1

    @property
    def log_file(self) -> Path | None:
        """Nothing is written down."""
        return None

    def run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """All items; when one fails, those that have not begun are left."""
        if not items:
            return []
        with timed(self.seconds, title), self.bars.stage(title, len(items)) as shown:
            work = _Tidy(TimedTask(function))
            if len(items) == 1:
                return untimed(self.task_seconds, title, [work(items[0])])
            with ThreadPoolExecutor(min(self.cores, len(items))) as pool:
                try:
                    asked = [pool.submit(work, item) for item in items]
                    pending = set(asked)
                    while pending:
                        done, pending = wait(pending, timeout=0.1, return_when=FIRST_EXCEPTION)
                        for one in done:
                            one.result()
                        shown.count(TaskCount(len(items) - len(pending), len(items)))
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)
            return untimed(self.task_seconds, title, [one.result() for one in asked])

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """A stage of whatever the block does."""
        with timed(self.seconds, title), self.bars.stage(title):
            yield
