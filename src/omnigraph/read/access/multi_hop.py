"""Walks of several hops: every node whose distance from a start lies within bounds.

Owns the breadth-first search, for many starts at once. Distances are those of
shortest paths; a loop counts only for the start, as one hop.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from omnigraph.read.access.csr import adjacency
from omnigraph.read.access.entities import Positions
from omnigraph.read.access.expand import EdgeExpansion, ExpandedRows
from omnigraph.read.execute.sorting import distinct, missing_from

# Marks of visited nodes that one round may hold: one byte per start and node.
MAX_MARKS = 64 * 2**20
# Beyond this part of all marks, counting them off beats sorting them.
DENSE = 1 / 16
# Room for the positions of one start among the marks of many.
SPACE = 1 << 40


def walk(hops: EdgeExpansion, starts: Positions, min_hops: int, max_hops: int) -> ExpandedRows:
    """Every (start, node) within the bounds."""
    known, inverse = np.unique(starts, return_inverse=True)
    alive = known[known >= 0]
    nothing = np.empty(0, dtype=np.int64)
    if not hops.wiring.edges.count or not len(alive):
        return ExpandedRows(nothing, nothing)
    dense = hops.strategy(alive) == "csr"
    extent = max(hops.adjacency().extent, int(alive.max()) + 1) if dense else 0
    chunk = max(1, MAX_MARKS // extent) if dense else len(alive)
    owners: list[Positions] = [nothing]
    targets: list[Positions] = [nothing]
    for begin in range(0, len(alive), chunk):
        some = alive[begin : begin + chunk]
        visited: _Visited = _Flags(len(some), extent) if dense else _Listed()
        found_of, found = _search(hops, some, min_hops, max_hops, visited)
        owners.append(found_of + begin)
        targets.append(found)
    reached = adjacency(np.concatenate(owners), np.concatenate(targets), None)
    # Nobody, where it occurs, sorts first and reaches nothing.
    origins, ends, _ = reached.expand(inverse.astype(np.int64) - (len(known) - len(alive)))
    return ExpandedRows(origins, ends)


def _search(
    hops: EdgeExpansion, starts: Positions, min_hops: int, max_hops: int, visited: _Visited
) -> tuple[Positions, Positions]:
    """Pairs of the ordinal of a start and a node, for starts that are marked together."""
    space = visited.space
    ordinals = np.arange(len(starts))
    visited.add(ordinals * space + starts)
    found: list[Positions] = [np.empty(0, dtype=np.int64)]
    if min_hops <= 1 and hops.may_loop:
        loops = np.flatnonzero(hops.connects(starts, starts))
        found.append(loops * space + starts[loops])
    frontier_of, frontier = ordinals, starts
    for depth in range(1, max_hops + 1):
        hops.ctx.budget.check()
        steps = hops.from_(frontier)
        marks = visited.add(frontier_of[steps.origins] * space + steps.targets)
        if not len(marks):
            break
        if depth >= min_hops:
            found.append(marks)
        frontier_of, frontier = np.divmod(marks, space)
    owners, nodes = np.divmod(np.concatenate(found), space)
    return owners, nodes


class _Visited(Protocol):
    """The marks of what has been visited; a mark is a start and a node in one number."""

    space: int

    def add(self, marks: Positions) -> Positions:
        """Add marks, and give back those that are new, each once."""


class _Flags:
    """One flag for every possible mark: for searches that may reach most of a graph."""

    def __init__(self, starts: int, extent: int) -> None:
        self.space = extent
        self._flags = np.zeros(starts * extent, dtype=bool)

    def add(self, marks: Positions) -> Positions:
        """Count off where they are many, sort where they are few."""
        fresh = marks[~self._flags[marks]]
        self._flags[fresh] = True
        if len(fresh) < DENSE * len(self._flags):
            return distinct(fresh)
        seen = np.zeros(len(self._flags), dtype=bool)
        seen[fresh] = True
        return np.flatnonzero(seen)


class _Listed:
    """Only the marks themselves: for searches that look at little of a large graph."""

    space = SPACE

    def __init__(self) -> None:
        self._marks = np.empty(0, dtype=np.int64)

    def add(self, marks: Positions) -> Positions:
        """Keep them sorted."""
        fresh = missing_from(distinct(marks), self._marks)
        self._marks = np.sort(np.concatenate([self._marks, fresh]))
        return fresh
