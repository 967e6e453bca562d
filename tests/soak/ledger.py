"""The ledger: everything that was asked of a graph, when, and what was answered.

Owns what follows from that alone: which answers are allowed, which branches must or cannot
exist, which commits must be there and which cleanup may have reclaimed. Never looks at rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.soak.operations import Operation

Outcome = Literal["pending", "done", "refused", "doubt"]
ALLOWED = {
    "Conflict",
    "ReadSetChanged",
    "BranchNotFound",
    "NotFound",
    "MergeConflicts",
    "PreconditionFailed",
}
PAST = {"ChangeFeedGap"}
TRANSIENT = {"transient"}
"""Kinds of storage errors that a busy server causes; what was written is then in doubt."""


class Violation(AssertionError):
    """The graph, or an answer, contradicts what was asked and answered before."""


@dataclass(slots=True)
class Entry:
    """One operation, and what is known of it; times are those of the monotonic clock."""

    operation: Operation
    worker: str
    started: float
    ended: float = math.inf
    outcome: Outcome = "pending"
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def is_possible(self) -> bool:
        """Whether it may have happened, or may still happen."""
        return self.outcome != "refused"

    @property
    def commit(self) -> str | None:
        """The commit that was acknowledged."""
        found = self.answer.get("commit") if self.outcome == "done" else None
        return None if found is None else str(found["id"])

    @property
    def commits(self) -> list[str]:
        """All commits that were acknowledged: of maintenance there may be several."""
        several = self.answer.get("commits", []) if self.operation.makes_several else []
        return several if self.commit is None else [self.commit]

    def line(self) -> dict[str, Any]:
        """As the history of a failure shows it."""
        answer = {key: value for key, value in self.answer.items() if key != "trace"}
        command = {key: value for key, value in self.operation.command.items() if key != "gone"}
        if self.operation.do == "inspect":
            answer = {"commits": len(answer.get("commits", ())), "error": answer.get("error")}
        return {
            "worker": self.worker,
            "command": command,
            "outcome": self.outcome,
            "started": round(self.started, 4),
            "ended": round(self.ended, 4) if math.isfinite(self.ended) else None,
            "answer": answer,
        }


@dataclass(slots=True)
class Ledger:
    """The operations of one graph in the order in which they were asked for."""

    linger: float
    """For how long after its death what a process asked of storage may still happen."""
    entries: dict[str, Entry] = field(default_factory=dict)
    _claims: list[Entry] = field(default_factory=list)
    _made: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _deletions: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    _cleanups: list[Entry] = field(default_factory=list)

    def ask(self, operation: Operation, worker: str, now: float) -> Entry:
        """Note that something is asked for."""
        entry = Entry(operation, worker, now)
        self.entries[operation.id] = entry
        if operation.creates:
            self._made[str(operation.branch)].append(entry)
        if operation.deletes is not None:
            self._deletions[operation.deletes].append(entry)
        if operation.arguments.get("keep") is not None:
            self._cleanups.append(entry)
        return entry

    # -- answers ---------------------------------------------------------------------------

    def take(self, answer: dict[str, Any]) -> Entry:
        """Note an answer; Violation when nobody should ever get it."""
        entry = self.entries[answer["id"]]
        entry.answer = answer
        entry.started, entry.ended = answer["started"], answer["ended"]
        error = answer.get("error")
        if error is None:
            entry.outcome = "done"
        elif error == "StorageError" and answer["kind"] in TRANSIENT:
            entry.outcome = "doubt"
        else:
            entry.outcome = "refused"
            self._check_refusal(entry, error)
        if entry.commit is not None:
            self._claims.append(entry)
        return entry

    def die(self, entry: Entry, now: float) -> None:
        """Its process was killed before it answered."""
        entry.outcome = "doubt"
        entry.ended = now + self.linger

    def _check_refusal(self, entry: Entry, error: str) -> None:
        operation = entry.operation
        allowed = ALLOWED | (PAST if operation.do in ("read", "count") else set())
        if operation.do == "load" and operation.arguments["mode"] == "append":
            allowed = allowed | {"KeyConflict"}
        if error not in allowed:
            raise Violation(
                f"{operation.id} ({operation.shape}) was told {error}: {entry.answer['message']}\n"
                f"{entry.answer.get('trace', '')}"
            )
        if error == "BranchNotFound":
            names = {operation.branch, operation.source} - {None}
            if names and all(self._must_stand(str(name), entry) for name in names):
                raise Violation(
                    f"{operation.id} was told: {entry.answer['message']}; but all the time there "
                    f"were {sorted(map(str, names))}"
                )

    # -- branches --------------------------------------------------------------------------

    def _creations(self, name: str) -> Iterator[Entry]:
        return (entry for entry in self._made.get(name, ()) if entry.is_possible)

    def deletions(self, name: str) -> Iterator[Entry]:
        """What may have deleted a branch."""
        for entry in self._deletions.get(name, ()):
            # A merge that was to delete its source says whether it could.
            if entry.is_possible and entry.answer.get("deleted") is not False:
                yield entry

    def _must_stand(self, name: str, during: Entry | None = None) -> bool:
        """Whether a branch exists for certain, now or all through an operation."""
        if name == "main":
            return True
        begin, end = (math.inf, math.inf) if during is None else (during.started, during.ended)
        made = [
            entry
            for entry in self._creations(name)
            if entry.outcome == "done" and entry.ended < begin
        ]
        gone = [entry for entry in self.deletions(name) if entry.started < end]
        return any(all(entry.ended < one.started for entry in gone) for one in made)

    def check_names(self, listed: set[str], lost: dict[str, str], names: set[str]) -> None:
        """The branches that are listed, and of those the ones that could not be opened."""
        for name in sorted(names - {"main"}):
            creations = list(self._creations(name))
            certain = [one for one in self.deletions(name) if one.outcome == "done"]
            may_exist = any(all(one.started <= made.ended for one in certain) for made in creations)
            if name in listed and not may_exist:
                raise Violation(f"branch {name} is listed, but it was deleted or never created")
            if name not in listed and self._must_stand(name):
                raise Violation(f"branch {name} was created and nobody deleted it: it is not there")
            if name in lost and self._must_stand(name):
                raise Violation(f"branch {name} is listed and cannot be opened: {lost[name]}")
        if unknown := listed - names - {"main"}:
            raise Violation(f"branches that nobody asked for: {sorted(unknown)}")

    # -- commits ---------------------------------------------------------------------------

    def check_acknowledged(self, lines: dict[str, set[str]]) -> None:
        """Every commit that was acknowledged is in the line of its branch.

        Unless somebody may have deleted that branch while it was written to, or later.
        """
        standing: list[Entry] = []
        for entry in self._claims:
            name = str(entry.operation.branch)
            if name != "main" and any(one.ended >= entry.started for one in self.deletions(name)):
                continue
            standing.append(entry)
            if entry.commit not in lines.get(name, ()):
                raise Violation(
                    f"{entry.operation.id} was acknowledged as {entry.commit} on branch {name}, "
                    f"which {'has no such commit' if name in lines else 'is not there'}"
                )
        self._claims = standing

    def least_kept(self, since: float) -> float:
        """The fewest commits that a cleanup may have kept which was at work after a time."""
        return min(
            (
                float(entry.operation.arguments["keep"])
                for entry in self._cleanups
                if entry.is_possible and entry.ended >= since
            ),
            default=math.inf,
        )
