"""A task runner of processes that are measured: CPU seconds of each stage, and memory of workers.

Owns the workers, which are what executors of Spark would be, without a JVM beside them. Must
never know what the tasks do.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

WORKERS = 2
_STATUS = Path("/proc/self/status")


def memory(name: str) -> int:
    """Bytes of this process by a name of the kernel's: VmHWM is the peak."""
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"the kernel knows no {name}")


def forget_peak() -> None:
    """Let the peak begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _measured(function: Callable[[Any], Any], item: Any) -> tuple[Any, float, int]:
    forget_peak()
    begun = time.process_time()
    result = function(item)
    return result, time.process_time() - begun, memory("VmHWM")


@dataclass
class MeasuredRunner:
    """Runs tasks in a few processes, and books what they take: a `TaskRunner`."""

    pool: ProcessPoolExecutor
    seconds: dict[str, float] = field(default_factory=dict)
    task_seconds: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> Literal["inline", "spark"]:
        """The engine that results name."""
        return "inline"

    @property
    def cores(self) -> int:
        """As many as there are processes."""
        return WORKERS

    @property
    def share(self) -> int:
        """One: every task has a process of its own."""
        return 1

    @property
    def log_file(self) -> Path | None:
        """Nothing is written down."""
        return None

    def run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """One task for each item."""
        with self.stage(title):
            found = list(self.pool.map(_measured, [function] * len(items), items))
        self.task_seconds.setdefault(title, []).extend(cpu for _, cpu, _ in found)
        for _, cpu, peak in found:
            self.cpu[title] = self.cpu.get(title, 0.0) + cpu
            self.peak[title] = max(self.peak.get(title, 0), peak)
        return [result for result, _, _ in found]

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Book the time of the block, and what this process does meanwhile."""
        begun, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds[title] = self.seconds.get(title, 0.0) + time.perf_counter() - begun
            self.cpu[title] = self.cpu.get(title, 0.0) + time.process_time() - cpu


@contextmanager
def measured_runner() -> Iterator[MeasuredRunner]:
    """Workers for the block; they are spawned, and warm when they are first measured."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        list(pool.map(_warm, range(WORKERS)))
        yield MeasuredRunner(pool)


def _warm(_: int) -> None:
    """Import what tasks need, in every worker: the others are asked while one of them waits."""
    for name in ("lance", "omnigraph.pipeline.load.operation"):
        import_module(name)
    time.sleep(0.5)
