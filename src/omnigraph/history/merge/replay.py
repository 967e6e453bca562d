"""Replays: what one commit did, done or undone on a branch; and a branch put back to a commit.

Owns which two states each of them leads between: that is the whole of what sets them apart from a
merge. The difference is merged into the branch row by row, as one commit with one parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Literal

from omnigraph.errors import BadRequest, ChangeFeedGap
from omnigraph.history.merge.conflicts import (
    Conflicts,
    MergeResult,
    Outcome,
    Resolve,
    read_resolution,
)
from omnigraph.history.merge.operation import (
    Merge,
    MergeOutcome,
    TableUnchanged,
    tables_concerned,
)
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.store import GraphHandle, Manifest
from omnigraph.write.change.protocol import WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target, message_of, run
from omnigraph.write.publish.run_ids import RunId

Verb = Literal["revert", "cherry_pick", "reset"]
_OUTCOMES: dict[Verb, Outcome] = {
    "revert": "reverted",
    "cherry_pick": "picked",
    "reset": "reset",
}
REPLAYED = "replayed_commit"
"""Where the metadata of a commit note which one it repeats, undoes or goes back to."""


@dataclass(frozen=True, slots=True)
class CommitRetained:
    """A claim: what a commit showed can still be read, as its files are taken over.

    Asked whenever the branch has moved: a collection may have dropped it.
    """

    manifest: Manifest = field(compare=False)
    commit: Commit
    type_key: str = "replayed commit"

    def holds(self, before: Base, after: Base) -> bool:  # noqa: ARG002 - as all claims
        """Whether some branch or tag retains it."""
        try:
            self.manifest.require_retained(self.commit)
        except ChangeFeedGap:
            return False
        return True


@dataclass(frozen=True, slots=True)
class HeadUnchanged:
    """A claim: nothing was committed since. A branch that is put back has nothing else in it."""

    type_key: str = "head"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether it is the same commit."""
        return before.head == after.head


@dataclass(slots=True)
class Replay(Merge):
    """One commit replayed on a branch."""

    verb: Verb = "revert"
    replayed: Commit | None = None

    def __post_init__(self) -> None:
        """Note what is replayed."""
        Merge.__post_init__(self)
        self.notes = {"operation": self.verb, REPLAYED: self._replayed.id}

    def begin(self) -> None:
        """There is no branch to take."""
        return

    def prepare(self, txn: WriteTxn) -> bool:
        """Plan the difference of the two states on the base."""
        manifest, reads = self.graph.manifest, txn.reads
        self.target, self.plan = txn.base.head, None
        resolution = read_resolution(self.resolve, txn.base.catalog)
        old, new = self._states(txn.base)
        self.base = old
        if old.id == new.id:
            return False
        # After the target was captured, as a merge looks at its source.
        for commit in (old, new):
            manifest.require_retained(commit)
            reads.claim(CommitRetained(manifest, commit))
        if self.verb == "reset":
            reads.claim(HeadUnchanged())
        before, after = (manifest.view_at(commit).snapshot for commit in (old, new))
        self.plan = self._plan(before, after, Conflicts(resolution), txn)
        self.plan.build()
        for key in tables_concerned(self.plan):
            reads.claim(TableUnchanged(key))
        has_steps = self.schema is not None and bool(self.schema.plan.steps)
        is_changed = any(not table.is_nothing for table in self.plan.tables.values())
        return has_steps or is_changed or bool(self.plan.conflicts.standing)

    def _states(self, base: Base) -> tuple[Commit, Commit]:
        """The states before and after what is to happen to the branch."""
        manifest, commit = self.graph.manifest, self._replayed
        if self.verb == "reset":
            return manifest.find_commit(base.head), commit
        if commit.parent_id is None:
            what = "undone" if self.verb == "revert" else "repeated"
            raise BadRequest(
                f"commit {commit.id} made the graph: there is nothing before it, so it cannot be "
                f"{what}"
            )
        parent = manifest.find_commit(commit.parent_id)
        return (commit, parent) if self.verb == "revert" else (parent, commit)

    def result(self, written: WriteOutcome) -> MergeResult:
        """How it went."""
        found = Merge.result(self, written)
        if written.commit is None and not (found.conflicts or found.counts):
            return replace(found, outcome="already_up_to_date")
        return replace(found, outcome=_OUTCOMES[self.verb])

    @property
    def _outcome(self) -> MergeOutcome:
        if self.base is None:
            raise AssertionError("a replay was run and not planned")
        settled = () if self.plan is None else tuple(self.plan.conflicts.settled)
        return MergeOutcome(self.base.id, "", settled)

    @property
    def _replayed(self) -> Commit:
        if self.replayed is None:
            raise AssertionError("a replay is of a commit")
        return self.replayed


def replay(
    graph: GraphHandle,
    verb: Verb,
    commit: Commit,
    onto: str,
    *,
    resolve: Resolve = None,
    dry_run: bool = False,
    run_id: str | None = None,
    message: str | None = None,
    actor: str | None = None,
) -> MergeResult:
    """Revert or repeat a commit on a branch, or put the branch back to it, as one commit."""
    onto = normalise_branch(onto)
    run_ = None
    if run_id is not None:
        run_ = RunId.of(run_id, verb, {"commit": commit.id, "onto": onto, "resolve": resolve})
    said = message_of(message) or _message(verb, commit)
    target = Target(graph.location, graph.manifest, onto, message=said)

    def change(scratch: str | None = None) -> Replay:
        return Replay(
            graph,
            commit.id,
            resolve,
            dry_run,
            actor,
            run_,
            scratch=scratch,
            verb=verb,
            replayed=commit,
        )

    if not dry_run:
        return run(change(), target)
    with TemporaryDirectory(prefix="omnigraph-") as scratch:
        return run(change(scratch), target, dry_run=True)


def _message(verb: Verb, commit: Commit) -> str | None:
    """What the new commit says by itself; one that is repeated keeps its message."""
    said = commit.message
    if verb == "cherry_pick":
        return said
    named = commit.id if said is None else f"{commit.id} ({said.splitlines()[0][:100]})"
    return f"revert {named}" if verb == "revert" else f"reset to {named}"
