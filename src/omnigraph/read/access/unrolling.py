"""Every shortest way, out of the steps that they are made of.

Owns laying them out one beside the other, in batches where there may be far more than are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from omnigraph.read.access.steps import Found, Links
from omnigraph.read.access.way_tree import NOTHING, WayTree
from omnigraph.read.execute.bindings import Positions
from omnigraph.storage.budget import look, need, took

_ENTRY = 40


def unrolled(
    found: Found, ends: Positions, batch: int | None, *, from_right: bool
) -> Iterator[tuple[WayTree, Positions, Positions]]:
    """Trees of ways that lead from these entries to the root; their own ends, and of which entry.

    At most about ``batch`` ways are made together, if that is given.
    """
    if found.links is None:
        raise AssertionError("ways are made of links")
    start = _Part(
        WayTree(found.nodes[ends], np.full_like(ends, -1), np.full_like(ends, -1), 0 * ends),
        ends,
        np.arange(len(ends)),
        np.arange(len(ends)),
    )
    waiting = [start]
    while waiting:
        look()
        part = waiting.pop()
        if batch is not None and len(part.at) > batch:
            waiting.extend(reversed(list(part.pieces(batch))))
            continue
        done, going = part.grown(found, found.links, batch)
        if done is not None:
            tree, entries, owners = done
            tree = WayTree(tree.nodes, tree.parents, tree.edges, tree.hops, None, from_right)
            yield tree, entries, owners
        if going is not None:
            waiting.append(going)


class _Part:
    """Ways that are being made together: ``at`` is the entry that each has come to."""

    def __init__(self, tree: WayTree, at: Positions, entries: Positions, owners: Positions) -> None:
        self.tree = tree
        self.at = at
        self.entries = entries
        self.owners = owners

    def pieces(self, size: int) -> Iterator[_Part]:
        """The same in parts."""
        for begin in range(0, len(self.at), size):
            some = slice(begin, begin + size)
            tree, entries = self.tree.only(self.entries[some])
            yield _Part(tree, self.at[some], entries, self.owners[some])

    def grown(
        self, found: Found, links: Links, batch: int | None
    ) -> tuple[tuple[WayTree, Positions, Positions] | None, _Part | None]:
        """Ways that are whole, and the others, a step further or all the way."""
        part = self
        finished: list[tuple[Positions, Positions]] = []
        while True:
            look()
            is_root = found.hops[part.at] == 0
            finished.append((part.entries[is_root], part.owners[is_root]))
            going = np.flatnonzero(~is_root)
            if not len(going):
                break
            part = part.step(found, links, going)
            if batch is not None and len(part.at) > batch:
                rest: _Part | None = part
                return self._done(part.tree, finished), rest
        return self._done(part.tree, finished), None

    @staticmethod
    def _done(
        tree: WayTree, finished: list[tuple[Positions, Positions]]
    ) -> tuple[WayTree, Positions, Positions] | None:
        entries = np.concatenate([NOTHING, *(part[0] for part in finished)])
        owners = np.concatenate([NOTHING, *(part[1] for part in finished)])
        if not len(entries):
            return None
        order = np.argsort(owners, kind="stable")
        return tree, entries[order], owners[order]

    def step(self, found: Found, links: Links, going: Positions) -> _Part:
        """A step nearer to the root, by each of the steps that lead there."""
        at = self.at[going]
        begin = np.searchsorted(links.children, at)
        size = np.searchsorted(links.children, at, side="right") - begin
        whole = int(size.sum())
        need(2 * _ENTRY * whole + _ENTRY * self.tree.count)
        of = np.repeat(np.arange(len(at)), size)
        place = np.arange(whole) - np.repeat(np.cumsum(size) - size, size) + begin[of]
        parents = self.entries[going][of]
        next_at = links.parents[place]
        tree = WayTree(
            took(np.concatenate([self.tree.nodes, found.nodes[next_at]])),
            took(np.concatenate([self.tree.parents, parents])),
            took(np.concatenate([self.tree.edges, links.edges[place]])),
            took(np.concatenate([self.tree.hops, self.tree.hops[parents] + 1])),
        )
        entries = self.tree.count + np.arange(whole)
        return _Part(tree, next_at, entries, self.owners[going][of])
