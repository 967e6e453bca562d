"""Walks of several hops: every node whose distance from a start lies within bounds.

Owns the breadth-first search, for many starts at once. Distances are those of
shortest paths; a loop counts only for the start, as one hop.
"""

from __future__ import annotations

import numpy as np

from omnigraph.read.entities import Positions
from omnigraph.read.hops import Hops, Steps
from omnigraph.read.topology import adjacency

# Marks of visited nodes that one round may hold: one byte per start and node.
MAX_MARKS = 64 * 2**20


def walk(hops: Hops, starts: Positions, min_hops: int, max_hops: int, space: int) -> Steps:
    """Every (start, node) within the bounds; ``space`` is one more than the largest position."""
    known, inverse = np.unique(starts, return_inverse=True)
    alive = known[known >= 0]
    pairs_of: list[Positions] = []
    targets: list[Positions] = []
    chunk = max(1, MAX_MARKS // max(space, 1))
    for begin in range(0, len(alive), chunk):
        origins, found = _search(hops, alive[begin : begin + chunk], min_hops, max_hops, space)
        pairs_of.append(origins + begin)
        targets.append(found)
    nothing = np.empty(0, dtype=np.int64)
    reached = adjacency(
        np.concatenate([nothing, *pairs_of]), np.concatenate([nothing, *targets]), None
    )
    # Nobody, where it occurs, sorts first and reaches nothing.
    shift = len(known) - len(alive)
    origins, ends, _ = reached.expand(inverse.astype(np.int64) - shift)
    return Steps(origins, ends)


def _search(
    hops: Hops, starts: Positions, min_hops: int, max_hops: int, space: int
) -> tuple[Positions, Positions]:
    """Pairs of the ordinal of a start and a node, for starts that are marked together."""
    ordinals = np.arange(len(starts))
    visited = np.zeros(len(starts) * space, dtype=bool)
    visited[ordinals * space + starts] = True
    found: list[Positions] = []
    if min_hops <= 1:
        loops = np.flatnonzero(hops.connects(starts, starts))
        found.append(loops * space + starts[loops])
    frontier_of, frontier = ordinals, starts
    for depth in range(1, max_hops + 1):
        hops.ctx.budget.check(visited.nbytes)
        steps = hops.from_(frontier)
        marks = frontier_of[steps.origins] * space + steps.targets
        marks = np.unique(marks[~visited[marks]])
        if not len(marks):
            break
        visited[marks] = True
        if depth >= min_hops:
            found.append(marks)
        frontier_of, frontier = marks // space, marks % space
    every = np.concatenate([np.empty(0, dtype=np.int64), *found])
    return every // space, every % space
