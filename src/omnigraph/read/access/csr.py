"""Topology: which nodes an edge type connects, as compressed rows of positions.

Owns building it from the edge table, folding parallel edges, growing it when edges were
only added, and moving it along when the positions of nodes have moved.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import numpy.typing as npt

from omnigraph.read.execute.sorting import PIECE, distinct_pairs, pieces, sort_pairs
from omnigraph.storage.budget import beside, need, took

Positions = npt.NDArray[np.int64]
Way = Literal["out", "in", "both"]
# The bytes of a step that was made, without and with its edge, and of asking about a source.
STEP = 16
STEP_AND_EDGE = 24
_SPANS = 42


@dataclass(frozen=True)
class Adjacency:
    """For each source, its targets in ascending order.

    ``starts`` is indexed by position; a position beyond its end has no targets.
    ``rows`` are the row ids of the edges themselves, None when parallel edges are folded
    into one.
    """

    starts: Positions
    targets: Positions
    rows: Positions | None = None

    @cached_property
    def extent(self) -> int:
        """One more than the largest position it knows."""
        return max(len(self.starts) - 1, int(self.targets.max(initial=-1)) + 1)

    @property
    def size(self) -> int:
        """Bytes held."""
        rows = 0 if self.rows is None else self.rows.nbytes
        return self.starts.nbytes + self.targets.nbytes + rows

    def spans(self, sources: Positions) -> tuple[Positions, Positions]:
        """Where the targets of each source begin, and how many it has."""
        last = len(self.starts) - 1
        known = (sources >= 0) & (sources < last)
        at = np.where(known, sources, last)
        begin = self.starts[at]
        end = self.starts[np.minimum(at + 1, last)]
        return begin, np.where(known, end - begin, 0)

    def degrees(self, sources: Positions) -> Positions:
        """How many targets each source has."""
        return self.spans(sources)[1]

    def expand(
        self, sources: Positions, *, with_rows: bool = False
    ) -> tuple[Positions, Positions, Positions | None]:
        """Every step from every source: which source it is of, its target, the row of its edge."""
        need(_SPANS * len(sources))
        known = len(self.starts) - 1
        if len(sources) >= known > 0 and np.array_equal(sources, np.arange(len(sources))):
            need(STEP * self.count)
            return beside(self.count, partial(self._every, with_rows=with_rows))
        begin, count = self.spans(sources)
        whole = int(count.sum())
        need(whole * (STEP_AND_EDGE if with_rows else STEP) + 4 * begin.nbytes)
        return beside(whole, partial(self._follow, begin, count, whole, with_rows=with_rows))

    def _follow(
        self, begin: Positions, count: Positions, whole: int, *, with_rows: bool
    ) -> tuple[Positions, Positions, Positions | None]:
        shift = begin - (np.cumsum(count) - count)
        if whole <= PIECE:
            origins = np.repeat(np.arange(len(count)), count)
            place = np.arange(whole) + np.repeat(shift, count)
            edges = self.rows[place] if with_rows and self.rows is not None else None
            return origins, self.targets[place], edges
        origins, targets = (took(np.empty(whole, dtype=np.int64)) for _ in range(2))
        rows = took(np.empty(whole, dtype=np.int64)) if with_rows else None
        for some, made in pieces(count):
            origins[made] = np.repeat(np.arange(some.start, some.stop), count[some])
            place = np.arange(made.start, made.stop) + np.repeat(shift[some], count[some])
            targets[made] = self.targets[place]
            if rows is not None and self.rows is not None:
                rows[made] = self.rows[place]
        return origins, targets, rows

    def _every(self, *, with_rows: bool) -> tuple[Positions, Positions, Positions | None]:
        """Every step of all sources in order: they stand like that already."""
        origins = took(np.empty(self.count, dtype=np.int64))
        count = np.diff(self.starts)
        for some, made in pieces(count):
            origins[made] = np.repeat(np.arange(some.start, some.stop), count[some])
        return origins, self.targets, self.rows if with_rows else None

    @property
    def count(self) -> int:
        """How many steps there are."""
        return len(self.targets)

    def has(self, sources: Positions, targets: Positions) -> npt.NDArray[np.bool_]:
        """Whether each pair is connected."""
        begin, count = self.spans(sources)
        found = _search(self.targets, begin, begin + count, targets)
        inside = found < begin + count
        hit = np.zeros(len(sources), dtype=bool)
        hit[inside] = self.targets[found[inside]] == targets[inside]
        return hit

    def moved(self, sources: Positions | None, targets: Positions | None) -> Adjacency:
        """With other positions, in the same order; those of nodes without edges may be nobody's."""
        ends = self.targets if targets is None else targets[self.targets]
        if sources is None:
            return Adjacency(self.starts, ends, self.rows)
        counts = np.diff(self.starts)
        at = sources[: len(counts)]
        moved = np.zeros(int(at.max(initial=-1)) + 1, dtype=np.int64)
        moved[at[at >= 0]] = counts[at >= 0]
        return Adjacency(np.concatenate([[0], np.cumsum(moved)]), ends, self.rows)


def _search(values: Positions, low: Positions, high: Positions, wanted: Positions) -> Positions:
    """The first place in each span whose value is not below the wanted one."""
    low, high = low.copy(), high.copy()
    while True:
        open_ = low < high
        if not open_.any():
            return low
        middle = (low + high) // 2
        below = np.zeros(len(low), dtype=bool)
        below[open_] = values[middle[open_]] < wanted[open_]
        low = np.where(open_ & below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)


def adjacency(sources: Positions, targets: Positions, rows: Positions | None) -> Adjacency:
    """Compress edges, given by both ends, into rows by source."""
    order = sort_pairs(sources, targets)
    need(3 * order.nbytes)
    starts = _starts(sources[order])
    ends = took(targets[order])
    return Adjacency(starts, ends, None if rows is None else took(rows[order]))


def folded(sources: Positions, targets: Positions) -> Adjacency:
    """Compress pairs into rows by source, each pair once."""
    ordered, ends = distinct_pairs(sources, targets)
    return Adjacency(_starts(ordered), ends)


def _starts(ordered: Positions) -> Positions:
    """Where the edges of each source begin, given all sources in order."""
    size = int(ordered[-1]) + 1 if len(ordered) else 0
    counts = np.bincount(ordered, minlength=size) if size else np.empty(0, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])


def grown(
    found: Adjacency, sources: Positions, targets: Positions, rows: Positions | None
) -> Adjacency:
    """With a few more edges; without rows, only with those that are not there yet."""
    if rows is None and len(sources):
        sources, targets = distinct_pairs(sources, targets)
        new = ~found.has(sources, targets)
        sources, targets = sources[new], targets[new]
    if not len(sources):
        return found
    order = sort_pairs(sources, targets)
    sources, targets = sources[order], targets[order]
    starts = found.starts
    if int(sources[-1]) + 2 > len(starts):
        missing = int(sources[-1]) + 2 - len(starts)
        starts = np.concatenate([starts, np.full(missing, starts[-1])])
    at = _search(found.targets, starts[sources], starts[sources + 1], targets + 1)
    counts = np.bincount(sources, minlength=len(starts) - 1)
    added = None if rows is None or found.rows is None else np.insert(found.rows, at, rows[order])
    return Adjacency(
        starts + np.concatenate([[0], np.cumsum(counts)]),
        np.insert(found.targets, at, targets),
        added,
    )


@dataclass(frozen=True)
class Topology:
    """The edges of one type: edge ``rows[i]`` leads from ``sources[i]`` to ``targets[i]``.

    Nodes stand for themselves by their positions, edges by their row ids.
    """

    sources: Positions
    targets: Positions
    rows: Positions
    on_derived: Callable[[Adjacency], None] | None = field(
        default=None, kw_only=True, repr=False, compare=False
    )
    """Told of everything that is derived later on: it takes memory as well."""

    @cached_property
    def has_loops(self) -> bool:
        """Whether any edge leads back to where it begins."""
        return bool((self.sources == self.targets).any())

    def stands_like(self, order: Positions, place: Callable[[Positions], Positions]) -> bool:
        """Whether the places of its edges are in some order; that is found out once."""
        known, stands = vars(self).get("_stands_like", (None, False))
        if known is None or known() is not order:
            stands = np.array_equal(place(self.rows), order)
            vars(self)["_stands_like"] = (weakref.ref(order), stands)
        return bool(stands)

    @cached_property
    def out(self) -> Adjacency:
        """From sources to targets, every edge."""
        return self._told(adjacency(self.sources, self.targets, self.rows))

    @cached_property
    def into(self) -> Adjacency:
        """From targets to sources, every edge."""
        return self._told(adjacency(self.targets, self.sources, self.rows))

    @cached_property
    def out_folded(self) -> Adjacency:
        """From sources to targets, each once."""
        return self._told(folded(self.sources, self.targets))

    @cached_property
    def in_folded(self) -> Adjacency:
        """From targets to sources, each once."""
        return self._told(folded(self.targets, self.sources))

    @cached_property
    def both_folded(self) -> Adjacency:
        """Neighbours either way, each once."""
        sources = np.concatenate([self.sources, self.targets])
        targets = np.concatenate([self.targets, self.sources])
        return self._told(folded(sources, targets))

    @cached_property
    def both(self) -> Adjacency:
        """Either way, every edge; a loop once."""
        turned = self.sources != self.targets
        sources = np.concatenate([self.sources, self.targets[turned]])
        targets = np.concatenate([self.targets, self.sources[turned]])
        rows = np.concatenate([self.rows, self.rows[turned]])
        return self._told(adjacency(sources, targets, rows))

    def steps(self, way: Way) -> Adjacency:
        """Neighbours, each once."""
        match way:
            case "out":
                return self.out_folded
            case "in":
                return self.in_folded
            case "both":
                return self.both_folded

    def edges(self, way: Way) -> Adjacency:
        """Neighbours, once for every edge."""
        match way:
            case "out":
                return self.out
            case "in":
                return self.into
            case "both":
                return self.both

    def grown(self, sources: Positions, targets: Positions, rows: Positions) -> Topology:
        """With a few more edges; what was derived already grows along instead of being remade."""
        more = Topology(
            np.concatenate([self.sources, sources]),
            np.concatenate([self.targets, targets]),
            np.concatenate([self.rows, rows]),
        )
        turned = sources != targets
        ends = {
            "out": (sources, targets, rows),
            "into": (targets, sources, rows),
            "out_folded": (sources, targets, None),
            "in_folded": (targets, sources, None),
            "both_folded": (
                np.concatenate([sources, targets]),
                np.concatenate([targets, sources]),
                None,
            ),
            "both": (
                np.concatenate([sources, targets[turned]]),
                np.concatenate([targets, sources[turned]]),
                np.concatenate([rows, rows[turned]]),
            ),
        }
        for name, added in ends.items():
            if name in vars(self):
                # Where the cached property looks first.
                vars(more)[name] = grown(vars(self)[name], *added)
        return more

    def moved(
        self, sources: Positions | None, targets: Positions | None, *, with_derived: bool
    ) -> Topology:
        """With the positions that nodes have moved to; None where they have not."""
        if sources is None and targets is None:
            return self
        more = Topology(
            self.sources if sources is None else sources[self.sources],
            self.targets if targets is None else targets[self.targets],
            self.rows,
        )
        for name, found in list(vars(self).items()) if with_derived else ():
            if isinstance(found, Adjacency):
                # Both ways are asked of edges within one type alone.
                turned = name in ("into", "in_folded")
                ways = (targets, sources) if turned else (sources, targets)
                vars(more)[name] = found.moved(*ways)
        return more

    def watched(self, on_derived: Callable[[Adjacency], None]) -> Topology:
        """The same, with all that was derived, telling somebody of what is derived from now on."""
        same = replace(self, on_derived=on_derived)
        vars(same).update({name: found for name, found in vars(self).items() if name in _DERIVED})
        return same

    def _told(self, derived: Adjacency) -> Adjacency:
        if self.on_derived is not None:
            self.on_derived(derived)
        return derived

    @property
    def derived(self) -> list[Adjacency]:
        """What was derived so far."""
        return [value for value in vars(self).values() if isinstance(value, Adjacency)]


_DERIVED = frozenset(
    name for name, found in vars(Topology).items() if isinstance(found, cached_property)
)
