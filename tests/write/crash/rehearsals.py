"""What happens when nobody dies: the passings of a write, and the states it leads through.

Owns what a crash at each passing must leave behind, and at which of them processes are killed.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.manifest.branches import is_missing
from tests import profile
from tests.write.crash.crash_child import RIVAL, Passing, rehearse
from tests.write.crash.writers import WRITERS, prepare
from tests.write.processes import context

Rows = Mapping[str, tuple[str, ...]]
_COMMITTED = ("after_commit", "manifest")
_NAMED = ("after_put", "names")


@dataclass(frozen=True, slots=True)
class State:
    """All that a reader can see: per branch the rows of each type, who committed, and the schema.

    Ids of edges are left out: they are made up anew in every run.
    """

    rows: Mapping[str, Rows]
    actors: Mapping[str, tuple[str | None, ...]]
    schemas: Mapping[str, str]

    def with_fork(self, branch: str) -> State:
        """The same with a new branch of main."""
        return self.with_branch(branch, self, "main")

    def with_branch(self, branch: str, other: State, name: str) -> State:
        """The same with a branch that shows what another shows in another state."""
        return replace(
            self,
            rows={**self.rows, branch: other.rows[name]},
            actors={**self.actors, branch: other.actors[name]},
            schemas={**self.schemas, branch: other.schemas[name]},
        )


def observe(graph: og.Graph) -> State:
    """What a graph shows; a branch that was ended and still has its name shows nothing."""
    branches = [name for name in graph.branches.list() if not is_missing(graph.manifest, name)]
    return State(
        {branch: _rows(graph, branch) for branch in branches},
        {branch: tuple(c.actor for c in graph.commits.list(branch)) for branch in branches},
        {branch: graph.schema_at(branch) for branch in branches},
    )


def _rows(graph: og.Graph, branch: str) -> Rows:
    found: dict[str, tuple[str, ...]] = {}
    for key, shown in graph.snapshot(branch).tables.items():
        # By names: what columns are called depends on how often a schema change was prepared.
        table = shown.pinned
        columns = [name for name in table.schema.names if name != ID or "node:" in key]
        found[key] = tuple(sorted(map(json.dumps, table.scan(columns).to_pylist())))
    return found


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What a crash leaves."""

    state: State
    is_published: bool
    is_overtaken: bool
    has_intent: bool


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One kind of write that went well."""

    kind: str
    passings: tuple[Passing, ...]
    before: State
    overtaken: State
    done: State

    @property
    def cases(self) -> list[Passing]:
        """Where a process can die."""
        return [passing for passing in self.passings if passing.point != RIVAL]

    def aftermath(self, fatal: Passing) -> Aftermath:
        """What dying there must leave."""
        place = self.passings.index(fatal)
        passed = self.passings[: place + 1]
        so_far = {(passing.point, passing.target) for passing in passed}
        points = {passing.point for passing in passed}
        is_published = self._has_happened("published", _COMMITTED, place)
        is_deleted = self._has_happened("branch_ended", _COMMITTED, place)
        is_overtaken = RIVAL in points
        state = self.overtaken if is_overtaken else self.before
        writer = WRITERS[self.kind]
        if is_published or is_deleted:
            state = self.done
            if writer.deleted is not None and not is_deleted:
                state = state.with_branch(writer.deleted, self.before, writer.deleted)
        elif self._has_happened("branch_created", _NAMED, place):
            state = state.with_fork(writer.branch)
        has_intent = ("after_put", "intent") in so_far and "intent_removed" not in points
        return Aftermath(state, is_published, is_overtaken, has_intent)

    def _has_happened(self, told: str, effect: tuple[str, str], place: int) -> bool:
        """Whether something has happened by then: its effect is the last one before it is told.

        An earlier one of the same kind was another step's, or lost its race.
        """
        points = [passing.point for passing in self.passings]
        if told not in points:
            return False
        before = self.passings[: points.index(told)]
        effects = [n for n, passing in enumerate(before) if passing[:2] == effect]
        return effects[-1] <= place


class Rehearsals:
    """Every kind of write that went well, each held once."""

    def __init__(self, seed: Path, place: Path) -> None:
        self._held = {kind: hold_rehearsal(seed, place / kind, kind) for kind in WRITERS}
        self._fatal = {kind: held.cases for kind, held in self._held.items()}
        if not profile.CHOSEN.every_passing:
            self._fatal = _spread(self._held)

    def of(self, kind: str) -> Rehearsal:
        """The one of a kind."""
        return self._held[kind]

    def fatal(self, kind: str) -> list[Passing]:
        """Where writes of this kind are killed."""
        return self._fatal[kind]


def _spread(held: Mapping[str, Rehearsal]) -> dict[str, list[Passing]]:
    """Every point, target and family that leaves something else once, over all kinds alike."""
    found: dict[Hashable, dict[str, Passing]] = defaultdict(dict)
    for kind, rehearsal in held.items():
        for passing in rehearsal.cases:
            left = rehearsal.aftermath(passing)
            flags = (left.is_published, left.is_overtaken, left.has_intent)
            same = (passing.point, passing.target, WRITERS[kind].family, flags)
            found[same].setdefault(kind, passing)
    chosen: dict[str, list[Passing]] = {kind: [] for kind in held}
    counts: Counter[str] = Counter()
    # First those that few kinds can have: the others make up for them.
    for kinds in sorted(found.values(), key=len):
        kind = min(kinds, key=lambda kind: counts[kind])
        counts[kind] += 1
        chosen[kind].append(kinds[kind])
    return chosen


def hold_rehearsal(seed: Path, place: Path, kind: str) -> Rehearsal:
    """Run a write of this kind in a process of its own."""
    root = place / "rehearsal"
    shutil.copytree(seed, root)
    before = observe(prepare(root, kind))
    passings = _passings(root, kind)
    return Rehearsal(
        kind,
        passings,
        before,
        _overtaken(seed, place / "overtaken", kind) or before,
        observe(og.open(root, read_only=True)),
    )


def _passings(root: Path, kind: str) -> tuple[Passing, ...]:
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=rehearse, args=(str(root), kind, sender))
    process.start()
    sender.close()
    passings: list[Passing] = receiver.recv()
    process.join()
    assert process.exitcode == 0
    return tuple(passings)


def _overtaken(seed: Path, root: Path, kind: str) -> State | None:
    rival = WRITERS[kind].rival
    if rival is None:
        return None
    shutil.copytree(seed, root)
    prepare(root, kind)
    rival(og.open(root, actor="rival"))
    return observe(og.open(root, read_only=True))
