"""Stages of work as a person sees them: one bar each on the terminal, whoever does the work.

Owns drawing, on standard error and only when that is a terminal. Must never change or slow the
work it shows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass(frozen=True, slots=True)
class TaskCount:
    """Tasks that are done, and all that are known of."""

    done: int
    total: int


class Stage:
    """One stage of work while it runs."""

    def __init__(self, draw: Callable[..., None] | None, total_tasks: int | None) -> None:
        self._draw = draw
        self._total = total_tasks

    def note(self, text: str) -> None:
        """Show something beside the bar: rows, rejects."""
        if self._draw is not None:
            self._draw(note=text)

    def count(self, tasks: TaskCount) -> None:
        """Show how far it is."""
        if self._draw is not None and tasks.total:
            total = max(self._total or 0, tasks.total)
            self._draw(completed=tasks.done, total=total, tasks=f"{tasks.done}/{total} tasks")


class StageBars:
    """The bars of one piece of work; none are drawn where nobody can see them."""

    def __init__(self, bars: Progress | None = None) -> None:
        self._bars = bars

    @property
    def are_shown(self) -> bool:
        """Whether somebody sees them."""
        return self._bars is not None

    @contextmanager
    def stage(self, title: str, total_tasks: int | None = None) -> Iterator[Stage]:
        """The bar of what the block does."""
        if self._bars is None:
            yield Stage(None, total_tasks)
            return
        bar = self._bars.add_task(title, total=total_tasks, tasks="", note="")
        yield Stage(partial(self._bars.update, bar), total_tasks)
        # Work that ran no task is done as well.
        done = self._bars.tasks[bar].completed or 1
        self._bars.update(bar, completed=done, total=done)


@contextmanager
def stage_bars(*, show: bool) -> Iterator[StageBars]:
    """Bars for the stages of the block, if they are wanted and somebody can see them."""
    if not show or sys.stderr is None or not sys.stderr.isatty():
        yield StageBars()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[tasks]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}"),
        console=Console(stderr=True),
    ) as bars:
        yield StageBars(bars)
