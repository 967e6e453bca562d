"""Ways as trees: a way is a node, and behind it the way that leads on from there.

Owns their compact form, in which ways share what they have in common, and laying some of them
out as lists. Knows nothing of types or properties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.storage.budget import look, need, took

Positions = npt.NDArray[np.int64]
Costs = npt.NDArray[np.float64]
NOTHING: Positions = np.empty(0, dtype=np.int64)
_ENTRY = 40


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Ways as lists: the nodes of way ``i`` stand between ``starts[i]`` and ``starts[i + 1]``.

    It has one edge less than nodes; ``edges`` begin at ``starts[i] - i``.
    """

    starts: Positions
    nodes: Positions
    edges: Positions

    @property
    def edge_starts(self) -> Positions:
        """Where the edges of each way begin."""
        return self.starts - np.arange(len(self.starts))


@dataclass(frozen=True, slots=True)
class WayTree:
    """``parents`` of entries are entries, or -1 at the root; ``edges`` lead there.

    From an entry to its root, a way is read from left to right, or from right to left.
    """

    nodes: Positions
    parents: Positions
    edges: Positions
    hops: Positions
    costs: Costs | None = None
    from_right: bool = False
    """Whether entries are right ends, so that they are read backwards."""

    @property
    def count(self) -> int:
        """How many entries there are."""
        return len(self.nodes)

    def laid_out(self, entries: Positions) -> LaidOut:
        """Some ways, from left to right."""
        hops = self.hops[entries]
        starts = np.concatenate([[0], np.cumsum(hops + 1)])
        need(2 * 8 * int(starts[-1]))
        nodes = np.empty(int(starts[-1]), dtype=np.int64)
        edges = np.empty(int(starts[-1]) - len(entries), dtype=np.int64)
        edge_starts = starts[:-1] - np.arange(len(entries))
        at, ways, depth = entries, np.arange(len(entries)), 0
        while len(at):
            look()
            left = hops[ways] - depth
            place = left if self.from_right else depth
            nodes[starts[ways] + place] = self.nodes[at]
            going = np.flatnonzero(left > 0)
            ways, at = ways[going], at[going]
            between = left[going] - 1 if self.from_right else depth
            edges[edge_starts[ways] + between] = self.edges[at]
            at, depth = self.parents[at], depth + 1
        return LaidOut(starts, took(nodes), took(edges))

    def only(self, entries: Positions) -> tuple[WayTree, Positions]:
        """A tree of these ways alone, and their entries in it, in the same order."""
        needed = [np.unique(entries)]
        at = self.parents[needed[0]]
        while len(at := np.unique(at[at >= 0])):
            look()
            needed.append(at)
            at = self.parents[at]
        kept = np.unique(np.concatenate(needed))
        need(_ENTRY * len(kept))
        parents = self.parents[kept]
        moved = np.where(parents < 0, -1, np.searchsorted(kept, parents))
        costs = None if self.costs is None else self.costs[kept]
        tree = WayTree(
            self.nodes[kept], moved, self.edges[kept], self.hops[kept], costs, self.from_right
        )
        return tree, np.searchsorted(kept, entries)
