"""The process that is killed: it runs one write, up to one passing of one point.

Owns how a passing is named, so that the same one is found again in another process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from threading import Lock
from typing import NamedTuple

import omnigraph as og
from omnigraph.write.recovery import intent_scope
from tests import faults
from tests.write.crash.writers import WRITERS, Writer
from tests.write.processes import die

RIVAL = "(the other writer)"
_OF_THE_GRAPH = {"cleanup_listed", "cleanup_named", "cleanup_traced"}
_PLACES = {
    "__recovery": "intent",
    "__probe": "probe",
    "__refs": "names",
    "__runs": "run",
    "__manifest": "manifest",
    "_graph_commit_recoveries.lance": "audit",
}


class Passing(NamedTuple):
    """A point, what it concerns, and which passing of it is meant."""

    point: str
    target: str
    nth: int

    def __str__(self) -> str:
        return f"{self.point} of {self.target}, passing {self.nth}"


def target_name(point: str, target: str) -> str:
    """What a point concerns, in words that are the same in every run."""
    if point.startswith(("intent_", "sweep_")):
        return "operation"
    if point == "cleanup_fencing":
        return "main" if target == "main" else "another branch"
    if point in _OF_THE_GRAPH:
        return "graph"
    parts = target.split("/")
    for part, name in _PLACES.items():
        if part in parts:
            return name
    return "/".join(parts[-2:])


@dataclass(slots=True)
class Watcher:
    """Counts passings, lets the rival in at its point, and calls ``at`` with each of them."""

    writer: Writer
    rival: Callable[[], object] | None
    at: Callable[[Passing], object]
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)
    _is_away: bool = False

    def __call__(self, point: str, target: str) -> None:
        if self._is_away:
            return
        with self._lock:
            named = point, target_name(point, target)
            self._counts[named] += 1
            self.at(Passing(*named, self._counts[named]))
        if self.rival is not None and point == self.writer.overtaken_at:
            rival, self.rival = self.rival, None
            self._is_away = True
            rival()
            self._is_away = False
            self.at(Passing(RIVAL, self.writer.overtaken_at, 1))


def perform(root: str, kind: str, at: Callable[[Passing], object]) -> None:
    """Run one write; everything before it passes unseen."""
    writer = WRITERS[kind]
    if writer.announced:
        intent_scope.REQUEST_BYTES = -1
    graph = og.open(root, actor="crasher", read_only=writer.family == "sweep")
    rival = None
    if (step := writer.rival) is not None:
        other = og.open(root, actor="rival")
        rival = lambda: step(other)  # noqa: E731
    with faults.watched(Watcher(writer, rival, at)):
        writer.write(graph)


def rehearse(root: str, kind: str, answer: Connection) -> None:
    """Run a write to its end, and tell every passing in order."""
    passings: list[Passing] = []
    perform(root, kind, passings.append)
    answer.send(passings)
    answer.close()


def crash(root: str, kind: str, fatal: Passing) -> None:
    """Run a write, and die at one passing."""

    def at(passing: Passing) -> None:
        if passing == fatal:
            die()

    perform(root, kind, at)
