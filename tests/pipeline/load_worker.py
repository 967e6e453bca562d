"""A driver of Spark that loads as it is ordered: held, failing or slow where a test wants it.

A script: what it defines reaches the workers by value. It and its tasks leave signs, which are
empty files, and wait for those of the test; never for longer than a test may take.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.stage import stage_input
from omnigraph.pipeline.spark import tasks
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.session import SparkSettings, spark_session
from omnigraph.pipeline.spark.tasks import run_tasks
from omnigraph.storage.objects import faults

LONGEST = 300.0
Trouble = Literal["wait", "raise", "exit", "race", "raise always"]


@dataclass(frozen=True)
class Order:
    """One load, and the trouble it runs into.

    ``trouble`` says by the name of a function what its tasks do when they have done their work:
    by the number of the task, or "*" for all. ``held_at`` is a point of the driver, and which
    passing of it is meant.
    """

    root: str
    data: Sequence[str]
    signs: str
    options: Mapping[str, Any] = field(default_factory=dict)
    trouble: Mapping[str, Mapping[str, Trouble]] = field(default_factory=dict)
    held_at: tuple[str, int] | None = None


def await_sign(path: Path) -> None:
    """Wait until a sign is there, or too long."""
    end = time.monotonic() + LONGEST
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"nobody has made {path}")
        time.sleep(0.02)


def name_of(function: Callable[..., Any]) -> str:
    """What a task does, whether it is timed or not."""
    return str(getattr(function, "function", function).__name__)


@dataclass(frozen=True)
class Troubled:
    """A function for tasks: it does its work, leaves a sign of that, and gets into trouble."""

    function: Callable[[Any], Any]
    trouble: Mapping[str, Trouble]
    signs: str

    def __call__(self, item: Any) -> Any:
        from pyspark import TaskContext

        result = self.function(item)
        task = TaskContext.get()
        assert task is not None
        number, attempt = task.partitionId(), task.attemptNumber()
        signs = Path(self.signs)
        (signs / f"{name_of(self.function)}-{number}-{attempt}").touch()
        match self.trouble.get(str(number), self.trouble.get("*")):
            case "wait":
                await_sign(signs / "go")
            case "raise" if attempt == 0:
                raise RuntimeError("the first attempt fails when all is done")
            case "raise always":
                raise RuntimeError("this task never succeeds")
            case "exit" if attempt == 0:
                os._exit(1)
            case "race" if attempt == 0:
                # Whatever the other attempt does now, both have written their rows.
                await_sign(signs / f"{name_of(self.function)}-{number}-1")
        return result


@contextmanager
def _trouble(order: Order) -> Iterator[None]:
    def run(engine: SparkEngine, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        found = order.trouble.get(name_of(function))
        given = function if found is None else Troubled(function, found, order.signs)
        return run_tasks(engine, given, items)

    passed = 0

    def watch(point: str, _: str) -> None:
        nonlocal passed
        if order.held_at is None or point != order.held_at[0]:
            return
        passed += 1
        if passed == order.held_at[1]:
            (Path(order.signs) / "held").touch()
            await_sign(Path(order.signs) / "go")

    with patch.object(tasks, "run_tasks", run), faults.watched(watch):
        yield


def perform(order: Order, settings: SparkSettings) -> dict[str, Any]:
    """Load, and say what became of it."""
    graph = og.open(order.root, actor="driver")
    with _trouble(order):
        try:
            done = graph.load(list(order.data), engine="spark", spark=settings, **order.options)
        except OmniGraphError as error:
            return {"error": error.code, "message": error.message}
    return {"nodes": done.nodes, "edges": done.edges, "repeats": done.repeats_run}


def one_by_one(splits: Iterable[Split], *_: object) -> list[tuple[Split, ...]]:
    """A task for each split, however small the files of a test are."""
    return [(split,) for split in splits]


def main() -> None:
    """Carry out the orders in one session, and print a line about each."""
    settings = SparkSettings(**json.loads(sys.argv[1]))
    with patch.object(stage_input, "pack", one_by_one), spark_session(settings):
        for text in sys.argv[2:]:
            print(json.dumps(perform(Order(**json.loads(text)), settings)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
