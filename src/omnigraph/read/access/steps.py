"""Steps that may be walked: along an edge type, under what holds of each step.

Owns judging steps, and what shortest ways are made of. Searches are in levels.py and pairs.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from omnigraph.read.access.entity_sets import Many
from omnigraph.read.access.expand import Hops
from omnigraph.read.access.id_ranks import id_ranks
from omnigraph.read.access.way_tree import WayTree
from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.read.execute.sorting import sort_pairs
from omnigraph.storage.budget import need, took

Tracing = Literal["distances", "one", "every"]


class StepRule(Protocol):
    """What holds of steps: the edge, the node it enters on the way from left to right."""

    def __call__(
        self, units: Positions, edges: Positions, entered: Positions, left: Positions
    ) -> Mask:
        """Which steps may be walked."""


@dataclass(frozen=True)
class Explorer:
    """Steps along an edge type that may be walked; ``backwards`` is from right to left."""

    hops: Hops
    nodes: Many
    edges: Many
    rule: StepRule | None = None
    backwards: bool = False

    @property
    def turned(self) -> Explorer:
        """The same steps, walked from where they lead to."""
        hops = self.hops.turned
        return Explorer(hops, self.nodes, self.edges, self.rule, not self.backwards)

    def allowed(self, units: Positions, steps: Candidates) -> Candidates:
        """The steps that may be walked."""
        if self.rule is None or not len(steps.targets):
            return steps
        if steps.edges is None:
            raise AssertionError("steps are judged by their edges")
        entered, left = steps.targets, steps.starts
        if self.backwards:
            entered, left = left, entered
        return steps.keep(self.rule(units[steps.origins], steps.edges, entered, left))

    def steps(self, at: Positions) -> Candidates:
        """Every step from nodes."""
        found = self.hops.from_(at)
        return Candidates(found.origins, at[found.origins], found.targets, found.edges)

    def first_edges(self, groups: Positions, edges: Positions) -> Positions:
        """For each group the place of the edge that has the smallest id; groups are ascending."""
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        if len(starts) == len(groups):
            return starts
        sizes = np.diff(np.append(starts, len(groups)))
        several = np.flatnonzero(np.repeat(sizes > 1, sizes))
        ranks = np.zeros(len(groups), dtype=np.int64)
        ranks[several] = id_ranks(self.edges, edges[several])
        order = np.lexsort([ranks, groups])
        chosen: Positions = order[starts]
        return chosen


@dataclass(frozen=True, slots=True)
class Candidates:
    """Steps from nodes of a frontier: from which of them, from and to which node, by which edge."""

    origins: Positions
    starts: Positions
    targets: Positions
    edges: Positions | None

    def keep(self, mask: Mask | Positions) -> Candidates:
        """Some of them."""
        need(4 * self.origins.nbytes)
        edges = None if self.edges is None else took(self.edges[mask])
        return Candidates(
            took(self.origins[mask]), took(self.starts[mask]), took(self.targets[mask]), edges
        )


@dataclass(frozen=True, slots=True)
class Links:
    """The steps of all shortest ways: from an entry that is nearer to the root, to one behind it.

    Ordered by child.
    """

    children: Positions
    parents: Positions
    edges: Positions

    @classmethod
    def of(cls, children: Positions, parents: Positions, edges: Positions) -> Links:
        """Links in order."""
        order = sort_pairs(children, parents)
        return cls(children[order], parents[order], edges[order])


@dataclass(frozen=True, slots=True)
class Found:
    """What a search has found: entries, each a node for a unit at its distance from the root."""

    units: Positions
    nodes: Positions
    hops: Positions
    ends: Positions
    """The entries that ways may end at."""
    tree: WayTree | None = None
    """With one way to each entry."""
    links: Links | None = None
    """With every way to each entry."""


def runs(ordered: Positions) -> Positions:
    """The number of the run of equal values that each one is in."""
    if not len(ordered):
        return ordered
    return np.cumsum(np.concatenate([[False], ordered[1:] != ordered[:-1]]), dtype=np.int64)
