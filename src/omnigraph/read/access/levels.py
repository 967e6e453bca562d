"""Searches in breadth: from many starts at once, level by level, to everything that is near.

Owns distances, and which steps lead along shortest ways. A unit is a start of its own; all
units of a search share the marks of what they have visited.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import numpy as np

from omnigraph.read.access.expand import SPACE
from omnigraph.read.access.id_ranks import id_ranks
from omnigraph.read.access.steps import Candidates, Explorer, Found, Links, Tracing, runs
from omnigraph.read.access.way_tree import NOTHING, WayTree
from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.read.execute.sorting import distinct, missing_from, sort_pairs
from omnigraph.storage.budget import look, need, took


@dataclass(frozen=True, slots=True)
class _Frontier:
    """The entries of a level, from which the next one is found."""

    units: Positions
    nodes: Positions
    entries: Positions


@dataclass(slots=True)
class _Gathered:
    """Entries level by level."""

    units: list[Positions] = field(default_factory=list)
    nodes: list[Positions] = field(default_factory=list)
    hops: list[Positions] = field(default_factory=list)
    parents: list[Positions] = field(default_factory=list)
    edges: list[Positions] = field(default_factory=list)
    links: list[tuple[Positions, Positions, Positions]] = field(default_factory=list)
    count: int = 0

    def add(
        self,
        units: Positions,
        nodes: Positions,
        depth: int,
        parents: Positions | None = None,
        edges: Positions | None = None,
    ) -> int:
        """Add entries; the number of the first one."""
        first, size = self.count, len(units)
        need(5 * 8 * size)
        self.units.append(took(units))
        self.nodes.append(took(nodes))
        self.hops.append(np.full(size, depth, dtype=np.int64))
        self.parents.append(np.full(size, -1, dtype=np.int64) if parents is None else took(parents))
        self.edges.append(np.full(size, -1, dtype=np.int64) if edges is None else took(edges))
        self.count += size
        return first


class Marks:
    """Marks of what has been visited, a unit and a node in one number: flags, or a list."""

    def __init__(self, units: int, extent: int | None) -> None:
        self.space = SPACE if extent is None else extent
        self._flags: Mask | None = None
        self._listed = NOTHING
        if extent is not None:
            need(units * extent)
            self._flags = took(np.zeros(units * extent, dtype=bool))

    def are_new(self, marks: Positions) -> Mask:
        """Which have not been visited."""
        need(2 * marks.nbytes)
        if self._flags is not None:
            mask: Mask = ~self._flags[marks]
            return mask
        if not len(self._listed):
            return np.ones(len(marks), dtype=bool)
        at = np.minimum(np.searchsorted(self._listed, marks), len(self._listed) - 1)
        found: Mask = self._listed[at] != marks
        return found

    def add(self, marks: Positions) -> None:
        """Mark what is visited from now on."""
        if self._flags is not None:
            self._flags[marks] = True
            return
        need(2 * (self._listed.nbytes + marks.nbytes))
        self._listed = took(np.sort(np.concatenate([self._listed, marks])))


def search(
    explorer: Explorer,
    starts: Positions,
    bounds: tuple[int, int | None],
    tracing: Tracing,
    *,
    extent: int | None,
    wanted: tuple[Positions, Positions] | None = None,
) -> Found:
    """Everything within the bounds of each start, each start a unit.

    With pairs of a unit and a node that are ``wanted``, no further than to the last of these.
    """
    return _Search(explorer, starts, bounds, tracing, extent=extent, wanted=wanted).run()


class _Search:
    def __init__(
        self,
        explorer: Explorer,
        starts: Positions,
        bounds: tuple[int, int | None],
        tracing: Tracing,
        *,
        extent: int | None,
        wanted: tuple[Positions, Positions] | None,
    ) -> None:
        self.explorer = explorer
        self.starts = starts
        self.least, self.most = bounds
        self.tracing = tracing
        self.marks = Marks(len(starts), extent)
        self.found = _Gathered()
        self.wanted: Positions | None = None
        self.itself = np.arange(len(starts)) * self.marks.space + starts
        if wanted is not None:
            self.wanted = distinct(wanted[0] * self.marks.space + wanted[1])
            if self.least != 1:
                self.wanted = missing_from(self.wanted, self.itself)

    def run(self) -> Found:
        """Level by level, until nothing new is found."""
        units, nodes = np.arange(len(self.starts)), self.starts
        self.marks.add(units * self.marks.space + nodes)
        front = _Frontier(units, nodes, self.found.add(units, nodes, 0) + units)
        for depth in count(1) if self.most is None else range(1, self.most + 1):
            look()
            front = self._level(self._open(front), depth)
            if not len(front.nodes):
                break
        return self._whole()

    def _level(self, front: _Frontier, depth: int) -> _Frontier:
        """The next frontier."""
        steps = self.explorer.steps(front.nodes)
        if depth == 1 and self.least == 1:
            self._loops(front, steps)
            # Later a start is not found again.
            if self.wanted is not None:
                self.wanted = missing_from(self.wanted, self.itself)
        marks = self._marks(front, steps)
        steps = self.explorer.allowed(front.units, steps.keep(self.marks.are_new(marks)))
        marks = self._marks(front, steps)
        if not len(marks):
            return _Frontier(NOTHING, NOTHING, NOTHING)
        if self.tracing == "one":
            chosen = self._chosen(marks, front.nodes, steps)
            new = marks[chosen]
            edges = None if steps.edges is None else steps.edges[chosen]
            parents = front.entries[steps.origins[chosen]]
            base = self.found.add(*self._units_and_nodes(new), depth, parents, edges)
        else:
            new = distinct(marks)
            base = self.found.add(*self._units_and_nodes(new), depth)
            if self.tracing == "every" and steps.edges is not None:
                children = base + np.searchsorted(new, marks)
                self.found.links.append((children, front.entries[steps.origins], steps.edges))
        self.marks.add(new)
        if self.wanted is not None:
            self.wanted = missing_from(self.wanted, np.sort(new))
        return _Frontier(*self._units_and_nodes(new), base + np.arange(len(new)))

    def _marks(self, front: _Frontier, steps: Candidates) -> Positions:
        need(2 * steps.targets.nbytes)
        return took(front.units[steps.origins] * self.marks.space + steps.targets)

    def _units_and_nodes(self, marks: Positions) -> tuple[Positions, Positions]:
        need(2 * marks.nbytes)
        units, nodes = np.divmod(marks, self.marks.space)
        return took(units), took(nodes)

    def _open(self, front: _Frontier) -> _Frontier:
        """The part of a frontier whose units still look for something."""
        if self.wanted is None:
            return front
        open_ = np.zeros(len(self.starts), dtype=bool)
        open_[self.wanted // self.marks.space] = True
        going = open_[front.units]
        return _Frontier(front.units[going], front.nodes[going], front.entries[going])

    def _chosen(self, marks: Positions, nodes: Positions, steps: Candidates) -> Positions:
        """One step for each new mark, in the order in which ways go on from there.

        Ways are compared by the ids of their nodes from the left, then by those of their edges.
        """
        explorer = self.explorer
        before = steps.origins  # which are in the order of the ways that lead there
        if explorer.backwards:
            before = id_ranks(explorer.nodes, nodes)[steps.origins]
        order = sort_pairs(marks, before)
        run = runs(marks[order])
        first = np.flatnonzero(np.diff(run, prepend=-1))
        rival = before[order] == before[order][first][run]
        order, run = order[rival], run[rival]
        if steps.edges is None:
            chosen = order[np.flatnonzero(np.diff(run, prepend=-1))]
        else:
            chosen = order[explorer.first_edges(run, steps.edges[order])]
        if explorer.backwards:
            backwards: Positions = chosen
            return backwards
        ranks = id_ranks(explorer.nodes, steps.targets[chosen])
        following: Positions = chosen[np.lexsort([ranks, steps.origins[chosen]])]
        return following

    def _loops(self, front: _Frontier, steps: Candidates) -> None:
        """A start is one hop away from itself along a loop."""
        steps = steps.keep(steps.targets == steps.starts)
        steps = self.explorer.allowed(front.units, steps)
        if not len(steps.targets):
            return
        of = front.units[steps.origins]
        if steps.edges is None:
            chosen = np.flatnonzero(np.diff(of, prepend=-1))
            self.found.add(of[chosen], steps.targets[chosen], 1)
            return
        chosen = self.explorer.first_edges(of, steps.edges)
        parents, edges = front.entries[steps.origins[chosen]], steps.edges[chosen]
        base = self.found.add(of[chosen], steps.targets[chosen], 1, parents, edges)
        if self.tracing == "every":
            children = base + np.searchsorted(of[chosen], of)
            self.found.links.append((children, front.entries[steps.origins], steps.edges))

    def _whole(self) -> Found:
        found = self.found
        need(5 * 8 * found.count)
        units, nodes, hops = (
            took(np.concatenate(part)) for part in (found.units, found.nodes, found.hops)
        )
        ends = took(np.flatnonzero(hops >= self.least))
        tree = links = None
        if self.tracing == "one":
            parents, edges = (took(np.concatenate(part)) for part in (found.parents, found.edges))
            from_right = not self.explorer.backwards
            tree = WayTree(nodes, parents, edges, hops, from_right=from_right)
        if self.tracing == "every":
            parts = zip(*found.links, strict=True) if found.links else ((NOTHING,),) * 3
            links = Links.of(*(np.concatenate(list(part)) for part in parts))
        return Found(units, nodes, hops, ends, tree, links)
