"""The process that is killed: it maintains a graph, up to one passing of a point."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.connection import Connection

import omnigraph as og
from omnigraph.maintain import wanted
from tests import faults
from tests.write.processes import die


def count_points(root: str, answer: Connection) -> None:
    """Maintain to the end, and tell the points that were passed."""
    passed: list[str] = []
    _maintain(root, lambda point, _: passed.append(point))
    answer.send(passed)
    answer.close()


def maintain_until(root: str, fatal: int) -> None:
    """Maintain, and die at the n-th point."""
    left = fatal

    def watch(_: str, __: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    _maintain(root, watch)


def _maintain(root: str, watch: faults.Watch) -> None:
    wanted.FEW_FRAGMENTS = 1
    wanted.LEFTOVER_BYTES = 1
    wanted.MANY_COMMITS = 1
    graph = og.open(root)
    with faults.watched(watch):
        graph.maintain(keep=3, grace=timedelta(0))
