"""Searches between pairs of nodes: from both ends at once, until they meet.

Owns the distance of each pair, and which steps lead along its shortest ways. The side that has
fewer nodes to go on from goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.read.access.id_ranks import id_ranks
from omnigraph.read.access.steps import Explorer, Found, Links
from omnigraph.read.access.way_tree import NOTHING, WayTree
from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.read.execute.sorting import distinct
from omnigraph.storage.budget import look, need, took

Distances = npt.NDArray[np.int32]
# What a node takes among the marks of a pair: its distances from both ends.
MARK = 8
UNSEEN = -1


@dataclass(slots=True)
class _Side:
    """How far nodes are from one end of each pair, and where the search goes on."""

    explorer: Explorer
    distances: Distances
    units: Positions
    nodes: Positions
    depths: Positions
    """How far each pair has been searched from here."""

    @classmethod
    def of(cls, explorer: Explorer, starts: Positions, open_: Mask, extent: int) -> _Side:
        """Before the first step."""
        need(4 * len(starts) * extent)
        distances = took(np.full(len(starts) * extent, UNSEEN, dtype=np.int32))
        units = np.flatnonzero(open_)
        distances[units * extent + starts[units]] = 0
        depths = np.zeros(len(starts), dtype=np.int64)
        return cls(explorer, distances, units, starts[units], depths)

    def go_on(self, going: Mask, extent: int) -> Positions:
        """One level more for some pairs; the marks that are new."""
        mine = going[self.units]
        units, nodes = self.units[mine], self.nodes[mine]
        steps = self.explorer.steps(nodes)
        marks = units[steps.origins] * extent + steps.targets
        steps = self.explorer.allowed(units, steps.keep(self.distances[marks] == UNSEEN))
        new = distinct(units[steps.origins] * extent + steps.targets)
        self.depths[going] += 1
        new_units, new_nodes = np.divmod(new, extent)
        self.distances[new] = self.depths[new_units]
        self.units = np.concatenate([self.units[~mine], new_units])
        self.nodes = np.concatenate([self.nodes[~mine], new_nodes])
        return new

    def close(self, done: Mask) -> None:
        """Leave off searching for some pairs."""
        kept = ~done[self.units]
        self.units, self.nodes = self.units[kept], self.nodes[kept]


@dataclass(frozen=True, slots=True)
class Met:
    """Pairs that are connected, where their two searches have met, and the searches."""

    lengths: Positions
    """How many hops apart the two ends are; -1 where they are not connected."""
    middles: Positions
    left: _Side
    right: _Side
    extent: int


def meet(
    explorer: Explorer, lefts: Positions, rights: Positions, most: int | None, extent: int
) -> Met:
    """How far apart the nodes of each pair are, by steps that may be walked, up to a bound."""
    lengths = np.full(len(lefts), UNSEEN, dtype=np.int64)
    lengths[lefts == rights] = 0
    open_ = lefts != rights
    left = _Side.of(explorer, lefts, open_, extent)
    right = _Side.of(explorer.turned, rights, open_, extent)
    middles: list[Positions] = [NOTHING]
    while open_.any():
        look()
        sizes = [np.bincount(side.units, minlength=len(lefts)) for side in (left, right)]
        for side, other, going in (
            (left, right, open_ & (sizes[0] <= sizes[1])),
            (right, left, open_ & (sizes[0] > sizes[1])),
        ):
            if not going.any():
                continue
            new = side.go_on(going, extent)
            met = new[other.distances[new] != UNSEEN]
            middles.append(met)
            found = distinct(met // extent)
            lengths[found] = left.depths[found] + right.depths[found]
            open_[found] = False
            alive = np.zeros(len(lefts), dtype=bool)
            alive[new // extent] = True
            open_ &= alive | ~going
        if most is not None:
            open_ &= left.depths + right.depths < most
        for side in (left, right):
            side.close(~open_)
    return Met(lengths, np.concatenate(middles), left, right, extent)


def links(met: Met, lefts: Positions) -> Found:
    """Every step of the shortest ways of each pair; entries lie between its ends, from the left."""
    extent = met.extent
    steps = [*_towards_left(met), *_towards_right(met)]
    parents, children, edges = (
        np.concatenate([part[number] for part in steps] or [NOTHING]) for number in range(3)
    )
    own = np.arange(len(lefts)) * extent + lefts
    entries = distinct(np.concatenate([own[met.lengths >= 0], parents, children]))
    units, nodes = np.divmod(entries, extent)
    need(3 * entries.nbytes)
    hops = met.left.distances[entries].astype(np.int64)
    from_right = met.right.distances[entries]
    beyond = (from_right != UNSEEN) & (units < len(lefts)) & (met.lengths[units] > 0)
    hops[beyond] = met.lengths[units[beyond]] - from_right[beyond]
    hops[met.lengths[units] == 0] = 0
    ends = np.flatnonzero(hops == met.lengths[units])
    found = Links.of(np.searchsorted(entries, children), np.searchsorted(entries, parents), edges)
    return Found(units, nodes, hops, ends, links=found)


_Steps = tuple[Positions, Positions, Positions]


def _towards_left(met: Met) -> Iterator[_Steps]:
    """Steps between the left ends and the middles: where they begin and end, and their edges."""
    distances, explorer = met.left.distances, met.right.explorer
    at = met.middles
    while len(at := at[distances[at] > 0]):
        units, nodes = np.divmod(at, met.extent)
        steps = explorer.steps(nodes)
        marks = units[steps.origins] * met.extent + steps.targets
        steps = steps.keep(distances[marks] == distances[at[steps.origins]] - 1)
        steps = explorer.allowed(units, steps)
        before = units[steps.origins] * met.extent + steps.targets
        if steps.edges is not None:
            yield before, at[steps.origins], steps.edges
        at = distinct(before)


def _towards_right(met: Met) -> Iterator[_Steps]:
    """The same between the middles and the right ends."""
    distances, explorer = met.right.distances, met.left.explorer
    at = met.middles
    while len(at := at[distances[at] > 0]):
        units, nodes = np.divmod(at, met.extent)
        steps = explorer.steps(nodes)
        marks = units[steps.origins] * met.extent + steps.targets
        steps = steps.keep(distances[marks] == distances[at[steps.origins]] - 1)
        steps = explorer.allowed(units, steps)
        after = units[steps.origins] * met.extent + steps.targets
        if steps.edges is not None:
            yield at[steps.origins], after, steps.edges
        at = distinct(after)


def one_each(explorer: Explorer, found: Found, count: int) -> Found:
    """Of the shortest ways of each pair the one with the smallest ids, as a tree.

    Every step leads on to the right end, so that the smallest next node is the one to take.
    """
    if found.links is None:
        raise AssertionError("ways are chosen among links")
    all_links = found.links
    level = found.hops[all_links.children]
    at = np.full(count, -1, dtype=np.int64)
    roots = np.flatnonzero(found.hops == 0)
    at[found.units[roots]] = roots
    parents = np.full(len(found.units), -1, dtype=np.int64)
    edges = np.full(len(found.units), -1, dtype=np.int64)
    is_end = np.zeros(len(found.units), dtype=bool)
    is_end[found.ends] = True
    for depth in range(1, int(level.max(initial=0)) + 1):
        look()
        here = np.flatnonzero(level == depth)
        parent, child = all_links.parents[here], all_links.children[here]
        units = found.units[child]
        mine = at[units] == parent
        here, child, units = here[mine], child[mine], units[mine]
        ranks = id_ranks(explorer.nodes, found.nodes[child])
        order = np.lexsort([ranks, units])
        first = np.flatnonzero(np.diff(units[order], prepend=-1))
        best = np.full(count, -1, dtype=np.int64)
        best[units[order][first]] = child[order][first]
        here, units = here[child == best[units]], units[child == best[units]]
        order = np.argsort(units, kind="stable")
        here, units = here[order], units[order]
        chosen = here[explorer.first_edges(units, all_links.edges[here])]
        taken = all_links.children[chosen]
        parents[taken], edges[taken] = all_links.parents[chosen], all_links.edges[chosen]
        at[found.units[taken]] = taken
    reached = at[at >= 0]
    tree = WayTree(found.nodes, parents, edges, found.hops, from_right=True)
    ends = reached[is_end[reached]]
    return Found(found.units, found.nodes, found.hops, ends, tree)
