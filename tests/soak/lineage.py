"""The lineage of a graph as it was observed, and the rows that follow from it.

Owns the commits that were ever seen, and replays what each of them says it did on the rows of
its parents. So every commit has exactly one state that it may show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.soak.ledger import Ledger, Violation
from tests.soak.rows import EMPTY, TYPES, Impossible, State, merged


@dataclass(frozen=True, slots=True)
class Seen:
    """One commit as a branch listed it."""

    id: str
    parent: str | None
    merged: str | None
    actor: str | None
    created_at: int


@dataclass(slots=True)
class Lineage:
    """Commits by id, and what they show."""

    ledger: Ledger
    commits: dict[str, Seen] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Commits that cleanup has reclaimed."""
    _states: dict[str, State] = field(default_factory=dict)
    _made: dict[str, str] = field(default_factory=dict)

    # -- lines -----------------------------------------------------------------------------

    def learn(self, branch: str, line: Sequence[Mapping[str, Any]]) -> list[str]:
        """Take in the line of a branch, newest first; gives the ids."""
        commits = [Seen(**commit) for commit in line]
        for commit, older in zip(commits, [*commits[1:], None], strict=True):
            expected = None if older is None else older.id
            if commit.parent != expected:
                raise Violation(
                    f"{branch}: the parent of {commit.id} is {commit.parent}, but the commit "
                    f"before it is {expected}"
                )
        for commit in reversed(commits):
            known = self.commits.get(commit.id)
            if known is None:
                self._admit(branch, commit)
            elif known != commit:
                raise Violation(f"{branch}: commit {known} has become {commit}")
        return [commit.id for commit in commits]

    def _admit(self, branch: str, commit: Seen) -> None:
        self.commits[commit.id] = commit
        if commit.parent is None:
            self._states[commit.id] = EMPTY
            return
        entry = self.ledger.entries.get(str(commit.actor))
        if entry is None or not entry.operation.is_write:
            raise Violation(f"{branch}: nobody asked for {commit}")
        if entry.outcome == "refused":
            raise Violation(
                f"{branch}: {commit.id} is of {entry.operation.id}, which was told "
                f"{entry.answer['error']}: {entry.answer['message']}"
            )
        if entry.outcome == "done" and commit.id not in entry.commits:
            raise Violation(f"{commit.id} is of {entry.operation.id}: {entry.commits} was its own")
        if entry.operation.id in self._made and not entry.operation.makes_several:
            raise Violation(
                f"{entry.operation.id} has happened twice: {self._made[entry.operation.id]} "
                f"and {commit.id}"
            )
        self._made[entry.operation.id] = commit.id

    # -- rows ------------------------------------------------------------------------------

    def acknowledge(self, commit: Mapping[str, Any], branch: str) -> None:
        """Take in a commit that a writer was told of: its branch may be gone when others look."""
        seen = Seen(**commit)
        known = self.commits.get(seen.id)
        if known is None:
            self._admit(branch, seen)
        elif known != seen:
            raise Violation(f"{branch}: commit {known} was acknowledged as {seen}")

    def state(self, commit_id: str) -> State | None:
        """The rows that a commit shows; None when it stands on commits that nobody has seen."""
        waiting = [commit_id]
        unknown: set[str] = set()
        while waiting:
            found = waiting[-1]
            if found not in self._states and found not in unknown:
                needed = self._parents(found)
                if unknown.intersection(needed) or not all(one in self.commits for one in needed):
                    unknown.add(found)
                elif missing := [one for one in needed if one not in self._states]:
                    waiting += missing
                    continue
                else:
                    state = self._replay(self.commits[found])
                    if state is None:
                        unknown.add(found)
                    else:
                        self._states[found] = state
            waiting.pop()
        return self._states.get(commit_id)

    def _parents(self, commit_id: str) -> list[str]:
        found = self.commits[commit_id]
        return [one for one in (found.parent, found.merged) if one is not None]

    def _replay(self, commit: Seen) -> State | None:
        operation = self.ledger.entries[str(commit.actor)].operation
        before = self._states[str(commit.parent)]
        try:
            if operation.do != "merge":
                return operation.effect(before)
            return self._merge(commit, before)
        except Impossible as error:
            raise Violation(f"{commit.id} ({operation.id}, {operation.shape}) {error}") from error

    def _merge(self, commit: Seen, before: State) -> State | None:
        source = str(commit.merged)
        base = self._base(str(commit.parent), source)
        if base is None or base not in self._states:
            return None
        told = self.ledger.entries[str(commit.actor)].answer.get("base")
        if told is not None and told != base:
            raise Violation(f"{commit.id} was merged on base {told}, which is not {base}")
        return merged(self._states[base], self._states[source], before)

    def _base(self, one: str, other: str) -> str | None:
        """The lowest common ancestor; of several the newest, then that of the greatest id."""
        ours, theirs = set(self._descent(one)), set(self._descent(other))
        if not (ours | theirs) <= self.commits.keys():
            return None
        common = ours & theirs
        # Whatever a common ancestor descends from is common, too: its parents are enough.
        above = {parent for found in common for parent in self._parents(found)}
        return max(common - above, key=lambda found: (self.commits[found].created_at, found))

    def _descent(self, commit_id: str) -> Iterator[str]:
        seen = {commit_id}
        waiting = [commit_id]
        while waiting:
            found = waiting.pop()
            yield found
            for parent in self._parents(found) if found in self.commits else ():
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)

    # -- comparing -------------------------------------------------------------------------

    def compare(self, commit_id: str, shown: Mapping[str, Mapping[str, str]], where: str) -> None:
        """What was read must be what follows from the commits, where all of them were seen."""
        expected = self.state(commit_id)
        if expected is None:
            self._states[commit_id] = shown
            return
        for type_ in TYPES:
            if shown[type_] != expected[type_]:
                raise Violation(
                    f"{where} (commit {commit_id}) has other {type_} rows than its commits made:\n"
                    f"{_difference(expected[type_], shown[type_])}"
                )

    def check_gap(self, commit_id: str, place: int, branch: str, reason: str) -> None:
        """A commit that cannot be read must be one that cleanup was free to reclaim."""
        entry = self.ledger.entries.get(str(self.commits[commit_id].actor))
        since = 0.0 if entry is None else entry.started
        if place < self.ledger.least_kept(since):
            raise Violation(
                f"{branch}~{place} ({commit_id}) cannot be read, though every cleanup kept it: "
                f"{reason}"
            )


def _difference(expected: Mapping[str, str], shown: Mapping[str, str]) -> str:
    lines = [
        f"  {key}: expected {expected.get(key)}, found {shown.get(key)}"
        for key in sorted({*expected, *shown})
        if expected.get(key) != shown.get(key)
    ]
    return "\n".join(lines[:20])
