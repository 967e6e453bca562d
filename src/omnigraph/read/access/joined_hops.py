"""Joined hops: steps along several edge types, or between nodes of several types, as one.

Owns taking each edge type's own steps and telling their ends among the nodes that variables stand
for. Knows nothing of how the edges of one type are found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from omnigraph.lang.schema.type_sets import SEPARATOR, members_of
from omnigraph.read.access.csr import Way
from omnigraph.read.access.entities import Positions
from omnigraph.read.access.entity_sets import Many, translated
from omnigraph.read.access.expand import EdgeExpansion, ExpandedRows, Hops
from omnigraph.read.execute.bindings import Mask
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.sorting import distinct_pairs
from omnigraph.read.plan.physical import ExpandEdges, Strategy
from omnigraph.storage.budget import need, took


@dataclass(frozen=True)
class JoinedHops:
    """Steps from nodes among ``starts`` to nodes among ``ends``, by any of some edge types."""

    starts: Many
    ends: Many
    legs: tuple[EdgeExpansion, ...]
    firsts: tuple[int, ...]
    """Where the edges of each leg begin among those of all."""
    with_edges: bool = False

    @property
    def edge_count(self) -> int:
        """How many edges there are."""
        return sum(leg.edge_count for leg in self.legs)

    @property
    def extent(self) -> int:
        """One more than the largest position it may lead to."""
        return max(self.starts.count, self.ends.count)

    @property
    def turned(self) -> JoinedHops:
        """The same steps, from where they lead to."""
        legs = tuple(leg.turned for leg in self.legs)
        return replace(self, starts=self.ends, ends=self.starts, legs=legs)

    @property
    def may_loop(self) -> bool:
        """Whether a node may be its own neighbour."""
        return any(leg.may_loop for leg in self.legs)

    def strategy(self, sources: Positions) -> Strategy:
        """How a hop from these nodes is made: through topologies, if that is so everywhere."""
        used = [leg.strategy(sources) for leg in self.legs if leg.edge_count]
        return "csr" if all(one == "csr" for one in used) else "indexed"

    def degrees(self, sources: Positions) -> Positions:
        """How many neighbours each node has."""
        if len(self.legs) == 1 and self._is_whole(self.legs[0]):
            return self.legs[0].degrees(self._at(self.legs[0], sources))
        return np.bincount(self.from_(sources).origins, minlength=len(sources))

    def from_(self, sources: Positions) -> ExpandedRows:
        """Every step from these nodes, each neighbour once unless edges matter."""
        found = [
            self._steps(leg, first, sources)
            for leg, first in zip(self.legs, self.firsts, strict=True)
        ]
        if len(found) == 1:
            return found[0]
        need(6 * sum(steps.origins.nbytes for steps in found))
        origins = took(np.concatenate([steps.origins for steps in found]))
        targets = took(np.concatenate([steps.targets for steps in found]))
        if not self.with_edges:
            return ExpandedRows(*distinct_pairs(origins, targets))
        edges = took(np.concatenate([_edges(steps) for steps in found]))
        order = np.lexsort([edges, targets, origins])
        origins, targets, edges = origins[order], targets[order], edges[order]
        # An edge that leads back to where it begins is found both ways.
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (origins[1:] != origins[:-1]) | (edges[1:] != edges[:-1])
        fresh[1:] |= targets[1:] != targets[:-1]
        return ExpandedRows(origins[fresh], targets[fresh], edges[fresh])

    def connects(self, sources: Positions, targets: Positions) -> Mask:
        """Whether each pair is connected by a step."""
        mask = np.zeros(len(sources), dtype=bool)
        for leg in self.legs:
            need(2 * sources.nbytes)
            here, there = self._at(leg, sources), translated(targets, self.ends, leg.ends)
            both = (here >= 0) & (there >= 0)
            mask[both] |= leg.connects(here[both], there[both])
        return mask

    def _at(self, leg: EdgeExpansion, sources: Positions) -> Positions:
        return translated(sources, self.starts, leg.starts)

    def _is_whole(self, leg: EdgeExpansion) -> bool:
        """Whether every node that a leg leads to counts."""
        return set(members_of(leg.ends.type)) <= set(members_of(self.ends.type))

    def _steps(self, leg: EdgeExpansion, first: int, sources: Positions) -> ExpandedRows:
        steps = leg.from_(self._at(leg, sources))
        targets = translated(steps.targets, leg.ends, self.ends)
        edges = None if steps.edges is None else steps.edges + first
        if self._is_whole(leg):
            return ExpandedRows(steps.origins, targets, edges)
        kept = targets >= 0
        return ExpandedRows(
            steps.origins[kept], targets[kept], None if edges is None else edges[kept]
        )


def _edges(steps: ExpandedRows) -> Positions:
    return np.empty(0, dtype=np.int64) if steps.edges is None else steps.edges


@dataclass(frozen=True)
class PlannedHops:
    """The steps of one expansion, and what its ends are told among."""

    planned: ExpandEdges
    ctx: ReadContext

    @cached_property
    def sources(self) -> Many:
        """What the variable that is left stands for."""
        found = self.ctx.variables[self.planned.step.source]
        return self.ctx.nodes_as(found)

    @cached_property
    def targets(self) -> Many:
        """What the variable that is reached stands for."""
        step = self.planned.step
        if step.closes:
            return self.ctx.nodes_as(self.ctx.variables[step.target])
        return self.ctx.nodes(step.target_type)

    @property
    def with_edges(self) -> bool:
        """Whether edges are told apart: they are bound, looked at on the way, or part of ways."""
        step = self.planned.step
        is_bound = step.edge_variable is not None or step.each is not None
        is_weighed = step.way is not None and step.way.weight is not None
        return is_bound or is_weighed or self.planned.is_traced

    @cached_property
    def legs(self) -> tuple[EdgeExpansion, ...]:
        """The steps of each edge type; one with unlike ends is walked both ways in two."""
        step, made = self.planned.step, list[EdgeExpansion]()
        for name in step.edge_types:
            edge = self.ctx.catalog.edges[name]
            is_split = step.direction == "both" and edge.source != edge.target
            ways: tuple[Way, ...] = ("out", "in") if is_split else (step.direction,)
            path = self.planned.path
            made += [EdgeExpansion(self.ctx, edge, way, path, self.with_edges) for way in ways]
        return tuple(made)

    @property
    def may_chain(self) -> bool:
        """Whether one step can follow another."""
        starts = {name for leg in self.legs for name in members_of(leg.starts.type)}
        return any(not starts.isdisjoint(members_of(leg.ends.type)) for leg in self.legs)

    def once(self) -> Hops:
        """Single steps, from sources to targets."""
        return self._between(self.sources, self.targets)

    def chained(self) -> tuple[Hops, Many]:
        """Steps that can follow each other, and what their ends are told among."""
        if len(self.legs) == 1 and self.legs[0].edge.source == self.legs[0].edge.target:
            return self._between(self.legs[0].starts, self.legs[0].starts), self.legs[0].starts
        names = set(members_of(self.sources.type))
        for leg in self.legs:
            names.update(members_of(leg.starts.type), members_of(leg.ends.type))
        every = self.ctx.nodes(SEPARATOR.join(sorted(names)))
        return self._between(every, every), every

    def _between(self, starts: Many, ends: Many) -> Hops:
        if len(self.legs) == 1:
            (leg,) = self.legs
            if members_of(leg.starts.type) == members_of(starts.type) and members_of(
                leg.ends.type
            ) == members_of(ends.type):
                return leg
        counts = {leg.edge.name: leg.edge_count for leg in self.legs}
        first = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
        firsts = tuple(first[leg.edge.name] for leg in self.legs)
        return JoinedHops(starts, ends, self.legs, firsts, self.with_edges)
