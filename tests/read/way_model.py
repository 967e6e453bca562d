"""What walks and ways mean, row at a time over plain Python: breadth first, by hand.

Written from the language's definition alone; shares no code with the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count


@dataclass(frozen=True)
class Edge:
    """An edge with what conditions look at; a number may be missing."""

    id: str
    src: str
    dst: str
    open: bool | None
    km: int | None


@dataclass(frozen=True)
class Net:
    """Nodes with their rank, and the edges between them."""

    nodes: dict[str, int | None]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Way:
    """Nodes from left to right, and the edges between them."""

    nodes: tuple[str, ...]
    edges: tuple[str, ...]
    cost: float = 0.0

    @property
    def hops(self) -> int:
        """How many steps it has."""
        return len(self.edges)

    @property
    def ties(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What decides between ways that are equally long."""
        return self.nodes, self.edges


Rule = Callable[[Edge, str], bool]
"""Whether a step may be walked: by its edge, to the node that it enters."""


@dataclass(frozen=True)
class Walks:
    """Walks over a net in one direction, `out`, `in` or `both`, under a rule."""

    net: Net
    way: str
    rule: Rule

    @cached_property
    def steps(self) -> dict[str, list[tuple[str, Edge]]]:
        """Where one step leads from each node."""
        found: dict[str, list[tuple[str, Edge]]] = {name: [] for name in self.net.nodes}
        for edge in self.net.edges:
            ends = []
            if self.way in ("out", "both"):
                ends.append((edge.src, edge.dst))
            if self.way == "in" or (self.way == "both" and edge.src != edge.dst):
                ends.append((edge.dst, edge.src))
            for left, right in ends:
                if self.rule(edge, right):
                    found[left].append((right, edge))
        return found

    def shortest(self, start: str, least: int, most: int | None) -> dict[str, list[Way]]:
        """Every shortest way to every node within the bounds."""
        known: dict[str, list[Way]] = {start: [Way((start,), ())]}
        frontier = known[start]
        for _ in range(most) if most is not None else count():
            reached: dict[str, list[Way]] = {}
            for way in frontier:
                for end, edge in self.steps[way.nodes[-1]]:
                    if end not in known:
                        longer = Way((*way.nodes, end), (*way.edges, edge.id))
                        reached.setdefault(end, []).append(longer)
            if not reached:
                break
            known |= reached
            frontier = [way for ways in reached.values() for way in ways]
        found = {end: ways for end, ways in known.items() if ways[0].hops >= least}
        loops = [Way((start, start), (edge.id,)) for end, edge in self.steps[start] if end == start]
        if least == 1 and loops:
            found[start] = loops
        return found

    def cheapest(
        self, start: str, least: int, most: int | None, weigh: Callable[[Edge, str], float]
    ) -> dict[str, Way]:
        """The way of least weight to every node, by trying every way without a node twice."""
        best: dict[str, Way] = {}
        for way in self._simple(Way((start,), ()), most, weigh):
            end = way.nodes[-1]
            known = best.get(end)
            if known is None or _key(way) < _key(known):
                best[end] = way
        if least:
            del best[start]
            loops = [
                Way((start, start), (edge.id,), weigh(edge, end))
                for end, edge in self.steps[start]
                if end == start
            ]
            if loops:
                best[start] = min(loops, key=_key)
        return best

    def _simple(
        self, way: Way, most: int | None, weigh: Callable[[Edge, str], float]
    ) -> Iterator[Way]:
        yield way
        if most is not None and way.hops == most:
            return
        for end, edge in self.steps[way.nodes[-1]]:
            if end not in way.nodes:
                cost = way.cost + weigh(edge, end)
                longer = Way((*way.nodes, end), (*way.edges, edge.id), cost)
                yield from self._simple(longer, most, weigh)


def _key(way: Way) -> tuple[float, int, tuple[str, ...], tuple[str, ...]]:
    return way.cost, way.hops, *way.ties
