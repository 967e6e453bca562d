"""Ancestry: how commits descend from each other, over both parents of every merge.

Owns the merge base: the newest commit that two others both have in them. Commits of
deleted branches do not exist any more, and no way leads through them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from omnigraph.errors import BranchNotFound
from omnigraph.manifest.entries import MAIN, Commit
from omnigraph.manifest.store import Manifest
from omnigraph.manifest.view import View, commits_of

SOURCE_BRANCH = "source"
"""Where the metadata of a merge names the branch that its merged parent lies on."""


class Ancestry:
    """The commits of a graph by id, read branch by branch as they are asked for."""

    def __init__(self, manifest: Manifest, views: Iterable[View] = ()) -> None:
        self._manifest = manifest
        self._known: dict[str, Commit] = {}
        self._read: set[str] = set()
        self._live: list[str] | None = None
        for view in views:
            self._learn(view)

    def parents(self, commit: Commit) -> list[Commit]:
        """The parents of a commit that still exist, the first one first."""
        found: list[Commit] = []
        if commit.parent_id is not None and (parent := self._get(commit.parent_id, commit)):
            found.append(parent)
        if commit.merged_parent_id is not None:
            branch = commit.metadata.get(SOURCE_BRANCH)
            likely = [branch] if isinstance(branch, str) else []
            merged = self._get(commit.merged_parent_id, commit, [MAIN, *likely])
            # The branch may be gone while another that was forked from it lives on.
            merged = merged or self._get(commit.merged_parent_id, commit, self._branches())
            if merged is not None:
                found.append(merged)
        return found

    def descent(self, commit: Commit) -> Iterator[Commit]:
        """The commit and everything it descends from, each once."""
        seen = {commit.id}
        waiting = [commit]
        while waiting:
            found = waiting.pop()
            yield found
            for parent in self.parents(found):
                if parent.id not in seen:
                    seen.add(parent.id)
                    waiting.append(parent)

    def base(self, one: Commit, other: Commit) -> Commit | None:
        """A lowest common ancestor: no other common one descends from it.

        Of several, the newest by time of creation, then by id.
        """
        common = {commit.id for commit in self.descent(other)}
        candidates: dict[str, Commit] = {}
        seen = {one.id}
        waiting = [one]
        while waiting:
            found = waiting.pop()
            if found.id in common:
                candidates[found.id] = found
                continue
            for parent in self.parents(found):
                if parent.id not in seen:
                    seen.add(parent.id)
                    waiting.append(parent)
        lowest = self._lowest(candidates)
        return max(lowest, key=lambda commit: (commit.created_at, commit.id), default=None)

    def _lowest(self, candidates: dict[str, Commit]) -> list[Commit]:
        if len(candidates) < 2:
            return list(candidates.values())
        above = {
            older.id
            for commit in candidates.values()
            for older in self.descent(commit)
            if older.id != commit.id
        }
        return [commit for commit in candidates.values() if commit.id not in above]

    def _get(self, id_: str, child: Commit, branches: Iterable[str] = ()) -> Commit | None:
        for branch in (child.branch or MAIN, *branches):
            if (found := self._known.get(id_)) is not None:
                return found
            if branch not in self._read:
                try:
                    self._learn(self._manifest.view(branch))
                except BranchNotFound:
                    self._read.add(branch)
        return self._known.get(id_)

    def _branches(self) -> list[str]:
        if self._live is None:
            self._live = sorted(self._manifest.branches())
        return self._live

    def _learn(self, view: View) -> None:
        self._read.add(view.state.branch)
        for commit in commits_of(view):
            self._known.setdefault(commit.id, commit)


def merge_base(manifest: Manifest, one: View, other: View) -> Commit | None:
    """The base of a merge of two branches; None when nothing they share exists any more."""
    ancestry = Ancestry(manifest, (one, other))
    return ancestry.base(head_of(one), head_of(other))


def head_of(view: View) -> Commit:
    """The newest commit of a branch."""
    return view.state.commits[-1]
