"""Which commits a log shows, and in which order.

Owns the order. Pure: takes commits and gives them back, and asks no graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from omnigraph.cli.render.commit_graph import GraphNode

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit


def parent_ids(commit: Commit) -> tuple[str, ...]:
    """The parents of a commit, the one it was made on first."""
    both = (commit.parent_id, commit.merged_parent_id)
    return tuple(id_ for id_ in both if id_ is not None)


def in_order(commits: Iterable[Commit]) -> list[Commit]:
    """Children before their parents; where both orders are possible, the newer one first."""
    by_id = {commit.id: commit for commit in commits}
    children = Counter(
        parent for commit in by_id.values() for parent in parent_ids(commit) if parent in by_id
    )
    ready = sorted(_Newest(commit) for commit in by_id.values() if not children[commit.id])
    found: list[Commit] = []
    while ready:
        commit = heappop(ready).commit
        found.append(commit)
        for parent in parent_ids(commit):
            children[parent] -= 1
            if parent in by_id and not children[parent]:
                heappush(ready, _Newest(by_id[parent]))
    return found


class _Newest:
    """Orders commits by time, then by id, the newest first."""

    __slots__ = ("commit",)

    def __init__(self, commit: Commit) -> None:
        self.commit = commit

    def __lt__(self, other: _Newest) -> bool:
        mine, theirs = self.commit, other.commit
        return (mine.created_at, mine.id) > (theirs.created_at, theirs.id)


def nodes_of(commits: Iterable[Commit]) -> list[GraphNode]:
    """The commits to draw."""
    return [GraphNode(commit.id, parent_ids(commit)) for commit in commits]
