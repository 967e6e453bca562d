"""The process that is killed: it runs one cleanup, up to one passing of a point."""

from __future__ import annotations

from multiprocessing.connection import Connection

import omnigraph as og
from omnigraph.maintain import garbage
from tests import faults
from tests.maintain.cleaning import clean
from tests.write.processes import die


def count_points(root: str, answer: Connection) -> None:
    """Run a cleanup to its end, and tell the points it passed."""
    passed: list[str] = []
    _clean(root, lambda point, _: passed.append(point))
    answer.send(passed)
    answer.close()


def clean_until(root: str, fatal: int) -> None:
    """Run a cleanup, and die when it passes its n-th point."""
    left = fatal

    def watch(point: str, _: str) -> None:
        nonlocal left
        left -= point.startswith("cleanup_")
        if left == 0:
            die()

    _clean(root, watch)


def _clean(root: str, watch: faults.Watch) -> None:
    garbage.BATCH = 2
    graph = og.open(root)
    with faults.watched(watch):
        clean(graph, 2)
