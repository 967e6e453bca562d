"""Ways that a variable is bound to: what they show, and keeping only those that are still wanted.

Owns the lists of what ways lead through. How they were found is for searches.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.read.access.entities import Positions
from omnigraph.read.access.entity_sets import Many
from omnigraph.read.access.way_tree import LaidOut, WayTree
from omnigraph.storage.budget import need, took


class Ways:
    """All ways of a variable, by the place of their entry in all trees."""

    def __init__(self, nodes: Many, edges: Many) -> None:
        self.nodes = nodes
        self.edges = edges
        self._trees: list[WayTree] = []
        self._count = 0

    @property
    def type(self) -> NodeType | EdgeType | TypeSet:
        """The type of the edges that ways lead along."""
        return self.edges.type

    def add(self, tree: WayTree) -> int:
        """More ways; what to add to the number of an entry."""
        first = self._count
        self._trees.append(tree)
        self._count += tree.count
        return first

    def only(self, positions: Positions) -> Positions:
        """Forget all other ways; where those that are kept are from now on."""
        present = positions >= 0
        tree, entries = self._whole().only(positions[present])
        self._trees, self._count = [tree], tree.count
        kept = np.full(len(positions), -1, dtype=np.int64)
        kept[present] = entries
        return kept

    def laid_out(self, positions: Positions) -> LaidOut:
        """The nodes and edges of ways; none of a way that is not there."""
        present = positions >= 0
        if present.all():
            return self._whole().laid_out(positions)
        found = self._whole().laid_out(positions[present])
        # What is not there has no node, and one edge less than that: it is left out of the lists.
        sizes = np.zeros(len(positions), dtype=np.int64)
        sizes[present] = np.diff(found.starts)
        return LaidOut(np.concatenate([[0], np.cumsum(sizes)]), found.nodes, found.edges)

    # -- values ----------------------------------------------------------------------

    def values(self, name: str, positions: Positions) -> pa.Array:
        """What ways show; null for a way that is not there."""
        missing = positions < 0
        mask = missing if missing.any() else None
        match name:
            case "@hops" | "@cost":
                tree = self._whole()
                measured = tree.hops if name == "@hops" or tree.costs is None else tree.costs
                if not len(measured):
                    return pa.nulls(len(positions), pa.from_numpy_dtype(measured.dtype))
                return pa.array(measured[np.where(missing, 0, positions)], mask=mask)
            case "@id":
                return pa.array(positions, mask=mask)
            case "@edges":
                found = self.laid_out(positions)
                lengths = np.maximum(np.diff(found.starts) - 1, 0)
                ids = self.edges.values("@id", found.edges)
                return _lists(np.concatenate([[0], np.cumsum(lengths)]), ids, mask)
            case _:
                found = self.laid_out(positions)
                shown = "@id" if name == "@ids" else name
                return _lists(found.starts, self.nodes.values(shown, found.nodes), mask)

    def bring(self, names: Iterable[str], positions: Positions) -> None:
        """Have several properties at hand, by few requests."""
        wanted = [name for name in names if not name.startswith("@")]
        if len(wanted) > 1:
            self.nodes.bring(wanted, self.laid_out(positions).nodes)

    def codes(self, name: str, positions: Positions) -> Positions | None:
        """None: nothing of a way is at hand."""

    def _whole(self) -> WayTree:
        """All ways as one tree."""
        if not self._trees:
            nothing = np.empty(0, dtype=np.int64)
            return WayTree(nothing, nothing, nothing, nothing)
        if len(self._trees) > 1:
            need(40 * self._count)
            sizes = [tree.count for tree in self._trees]
            shifts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
            parents = np.concatenate([tree.parents for tree in self._trees])
            costs = [tree.costs for tree in self._trees if tree.costs is not None]
            self._trees = [
                WayTree(
                    np.concatenate([tree.nodes for tree in self._trees]),
                    np.where(parents < 0, -1, parents + shifts),
                    np.concatenate([tree.edges for tree in self._trees]),
                    np.concatenate([tree.hops for tree in self._trees]),
                    np.concatenate(costs) if costs else None,
                    self._trees[0].from_right,
                )
            ]
        return self._trees[0]


def _lists(starts: Positions, values: pa.Array, mask: np.ndarray | None) -> pa.Array:
    """A list for each way."""
    offsets = starts.astype(np.int32)
    nulls = None if mask is None else pa.array(mask)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return took(pa.ListArray.from_arrays(pa.array(offsets), values, mask=nulls))
