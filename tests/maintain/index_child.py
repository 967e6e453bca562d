"""The process that is killed: it builds indexes or optimizes, up to one passing of a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import omnigraph as og
from tests import faults
from tests.write.processes import die


@dataclass(frozen=True, slots=True)
class Work:
    """Something that makes one maintenance commit."""

    kind: str
    """What its intent says."""
    run: Callable[[og.Graph], object]


WORK = {
    "index": Work("EnsureIndices", lambda graph: graph.ensure_indices()),
    "optimize": Work("Optimize", lambda graph: graph.optimize()),
}


def count_points(root: str, work: str, answer: Connection) -> None:
    """Work to the end, and tell the points that were passed."""
    passed: list[str] = []
    _work(root, work, lambda point, _: passed.append(point))
    answer.send(passed)
    answer.close()


def work_until(root: str, work: str, fatal: int) -> None:
    """Work, and die at the n-th point."""
    left = fatal

    def watch(_: str, __: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    _work(root, work, watch)


def _work(root: str, work: str, watch: faults.Watch) -> None:
    graph = og.open(root, actor="builder")
    with faults.watched(watch):
        WORK[work].run(graph)
