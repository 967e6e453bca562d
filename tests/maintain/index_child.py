"""The process that is killed: it builds indexes, up to one passing of a point."""

from __future__ import annotations

from multiprocessing.connection import Connection

import omnigraph as og
from tests import faults
from tests.write.processes import die


def count_points(root: str, answer: Connection) -> None:
    """Build to the end, and tell the points that were passed."""
    passed: list[str] = []
    _build(root, lambda point, _: passed.append(point))
    answer.send(passed)
    answer.close()


def build_until(root: str, fatal: int) -> None:
    """Build, and die at the n-th point."""
    left = fatal

    def watch(_: str, __: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            die()

    _build(root, watch)


def _build(root: str, watch: faults.Watch) -> None:
    graph = og.open(root, actor="builder")
    with faults.watched(watch):
        graph.ensure_indices()
