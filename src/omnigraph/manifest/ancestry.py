"""Ancestry: how commits descend from each other, over both parents of every merge.

Owns the merge base: the newest commit that two others both have in them. A branch knows
everything that it descends from, so that no other branch is asked and none has to exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from omnigraph.errors import Conflict
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import require_live
from omnigraph.manifest.snapshot import BranchState, ancestors_of, commits_of
from omnigraph.manifest.store import Manifest

SOURCE_BRANCH = "source"
"""Where the metadata of a merge names the branch that its merged parent lies on."""

Commits = Mapping[str, Commit]


def parents(commit: Commit, known: Commits) -> list[Commit]:
    """The parents of a commit, the first one first."""
    both = (commit.parent_id, commit.merged_parent_id)
    return [known[id_] for id_ in both if id_ is not None and id_ in known]


def descent(commit: Commit, known: Commits) -> Iterator[Commit]:
    """The commit and everything it descends from, each once."""
    seen = {commit.id}
    waiting = [commit]
    while waiting:
        found = waiting.pop()
        yield found
        for parent in parents(found, known):
            if parent.id not in seen:
                seen.add(parent.id)
                waiting.append(parent)


@dataclass(frozen=True, slots=True)
class Divergence:
    """What one branch has that another does not know, and where both were the same.

    ``base`` is a lowest common ancestor of their heads: no other common one descends from it.
    Of several, it is the newest by time of creation, then by id.
    """

    base: Commit | None
    news: tuple[Commit, ...]
    known: Commits
    """Every commit that either descends from, by id."""


def divergence(source: BranchState, target: BranchState) -> Divergence:
    """How the head of a source and that of a target differ."""
    theirs, ours = ancestors_of(source), ancestors_of(target)
    known = {**theirs, **ours}
    head = known[source.state.head_commit_id]
    news = tuple(commit for commit in descent(head, theirs) if commit.id not in ours)
    return Divergence(base_of(head, known[target.state.head_commit_id], known), news, known)


def base_of(one: Commit, other: Commit, known: Commits) -> Commit | None:
    """The lowest common ancestor of two commits among those that are known."""
    common = {commit.id for commit in descent(other, known)}
    candidates: dict[str, Commit] = {}
    seen = {one.id}
    waiting = [one]
    while waiting:
        found = waiting.pop()
        if found.id in common:
            candidates[found.id] = found
            continue
        for parent in parents(found, known):
            if parent.id not in seen:
                seen.add(parent.id)
                waiting.append(parent)
    lowest = _lowest(candidates, known)
    return max(lowest, key=lambda commit: (commit.created_at, commit.id), default=None)


def _lowest(candidates: Commits, known: Commits) -> list[Commit]:
    if len(candidates) < 2:
        return list(candidates.values())
    above = {
        older.id
        for commit in candidates.values()
        for older in descent(commit, known)
        if older.id != commit.id
    }
    return [commit for commit in candidates.values() if commit.id not in above]


def retained(manifest: Manifest, shown: BranchState) -> BranchState:
    """A state of a branch that was read before, unless it was deleted or reclaimed since."""
    newest = manifest.view_by_id(shown.branch_id)
    require_live(newest.state)
    commit_id, oldest = shown.state.head_commit_id, newest.state.head.oldest_commit_id
    if newest.state.head_commit_id == commit_id:
        return newest
    for commits in (newest.state.commits[::-1], commits_of(newest)):
        for commit in commits:
            if commit.id == commit_id:
                # As its own version has it: a later one may have been collected.
                found = manifest.find_state(commit)
                if found is not None:
                    return found
            if commit.id == oldest:
                break
    raise Conflict(
        f"commit {commit_id} of branch {shown.state.branch} was reclaimed while it was being used: "
        "try again with what the branch is now",
        details={"branch": shown.state.branch, "commit_id": commit_id},
    )


def possible_bases(heads: Iterable[str], known: Commits) -> list[Commit]:
    """Every commit that may be a base when some of these heads are merged, now or later.

    A commit is the base of two heads only if none of its children has both of them in what
    descends from it. What merges make of the heads later has no other bases: what two commits
    have in common is what their parents have in common.
    """
    tips = {id_: 1 << place for place, id_ in enumerate(dict.fromkeys(heads))}
    reached: defaultdict[str, int] = defaultdict(int)
    below: defaultdict[str, set[int]] = defaultdict(set)
    bases: list[Commit] = []
    for commit in _children_first(tips, known):
        mask = reached[commit.id] | tips.get(commit.id, 0)
        if _parts_two(mask, below[commit.id]):
            bases.append(commit)
        for parent in parents(commit, known):
            reached[parent.id] |= mask
            below[parent.id].add(mask)
    return bases


def _parts_two(mask: int, below: set[int]) -> bool:
    """Whether two of the marks in a mask are together in none of those below it."""
    if mask in below:
        return False
    rest = mask
    while rest:
        mark = rest & -rest
        rest ^= mark
        together = mark
        for child in below:
            if child & mark:
                together |= child
        if mask & ~together:
            return True
    return False


def _children_first(heads: Iterable[str], known: Commits) -> Iterator[Commit]:
    """Everything that the heads descend from; a commit after all that descend from it."""
    children: defaultdict[str, int] = defaultdict(int)
    seen: set[str] = set()
    waiting = [known[id_] for id_ in heads]
    roots = {commit.id for commit in waiting}
    seen |= roots
    while waiting:
        for parent in parents(waiting.pop(), known):
            children[parent.id] += 1
            if parent.id not in seen:
                seen.add(parent.id)
                waiting.append(parent)
    ready = [known[id_] for id_ in sorted(roots) if not children[id_]]
    while ready:
        commit = ready.pop()
        yield commit
        for parent in parents(commit, known):
            children[parent.id] -= 1
            if not children[parent.id]:
                ready.append(parent)
