"""Fusion: two rankings as one, by the places that each gives to a node.

Owns the fused order, which follows from the two rankings alone and not from how many nodes
of it are wanted. A node is judged within a window: as many of the first nodes of each ranking
as it takes for one of them to have it. A place beyond that adds nothing. So what the first
nodes of both come to is known without the rest, up to what two later places may add up to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.read.execute.bindings import Mask, Positions
from omnigraph.read.execute.sorting import distinct
from omnigraph.read.search.candidates import Numbers, Scores

# So many of the first nodes of both rankings are in the first window.
WINDOW = 128
# Every window is so many times as large as the one before.
GROWTH = 8
_NO_PLACE = np.iinfo(np.int64).max // 2


@dataclass(frozen=True, slots=True)
class FusedNodes:
    """Nodes, ascending: their scores, and in which order those with equal scores come."""

    scores: Scores
    order: Positions
    is_in_first: Mask
    """Whether the first ranking has a place that counts."""

    def order_of(self, nodes: Positions) -> Positions:
        """The order of each among nodes with equal scores."""
        return self.order[np.searchsorted(self.scores.positions, nodes)]

    def are_in_first(self, nodes: Positions) -> Mask:
        """Whether the first ranking has a place for each that counts."""
        return self.is_in_first[np.searchsorted(self.scores.positions, nodes)]


def fused(rankings: Sequence[Positions], smoothing: int) -> FusedNodes:
    """What two rankings of nodes come to; those of the first come first where scores are equal."""
    every = distinct(np.concatenate(rankings))
    first, second = (_places(ranked, every) for ranked in rankings)
    window = _windows(np.minimum(first, second))
    scores: Numbers = np.zeros(len(every))
    for places in (first, second):
        scores += np.where(places <= window, 1.0 / (smoothing + places), 0.0)
    counts = first <= window
    # The second ranking tells apart only what the first has no place for.
    order = np.where(counts, first, _NO_PLACE + second)
    return FusedNodes(Scores(every, scores), order, counts)


def most_beyond(window: int, smoothing: int, open_rankings: int) -> float:
    """The score that no node reaches of which a window of some rankings says nothing."""
    return open_rankings / (smoothing + window + 1)


def ranked_nodes(nodes: Positions) -> Positions:
    """The nodes of rows in the order in which they come first."""
    _, at = np.unique(nodes, return_index=True)
    ranked: Positions = nodes[np.sort(at)]
    return ranked


def _places(ranked: Positions, every: Positions) -> Positions:
    """The place that a ranking gives to each node, from 1 on."""
    places = np.full(len(every), _NO_PLACE, dtype=np.int64)
    places[np.searchsorted(every, ranked)] = np.arange(1, len(ranked) + 1)
    return places


def _windows(best: Positions) -> Positions:
    """The first window that each place is in."""
    windows = np.full(len(best), WINDOW, dtype=np.int64)
    while (beyond := best > windows).any():
        windows[beyond] *= GROWTH
    return windows
