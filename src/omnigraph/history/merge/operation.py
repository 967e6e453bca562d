"""A merge as a caller asks for it: from two branches to one commit with two parents.

Owns the outcomes and what the merge depends on. The source is taken as it was when the
merge began; when the target moves on, the merge is planned again on what it is then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, MergeConflicts
from omnigraph.history.merge.conflicts import Conflicts
from omnigraph.history.merge.merge_tables import MergeTables, sides_of
from omnigraph.history.merge.plan import MergePlan
from omnigraph.history.merge.resolution import Resolve, read_resolution
from omnigraph.history.merge.results import MergeResult, Outcome
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.manifest.ancestry import (
    SOURCE_BRANCH,
    Divergence,
    divergence,
    retained,
)
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.branch_state import BranchState
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.graph_handle import GraphHandle
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.store import Manifest
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits
from omnigraph.write.change.staged_changes import StagedChanges
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Writer, WriteTxn
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.recovery.intent_scope import REQUEST_BYTES

STAGING_DIR = "OMNIGRAPH_MERGE_STAGING_DIR"


def _limits() -> SortLimits:
    return replace(DEFAULT_LIMITS, directory=os.environ.get(STAGING_DIR) or None)


@dataclass(frozen=True, slots=True)
class TableUnchanged:
    """A claim: a table of the target is the very version that the merge was planned on."""

    type_key: str

    def holds(self, before: Base, after: Base) -> bool:
        """Whether nobody has published anything for it."""
        old, new = before.table(self.type_key), after.table(self.type_key)
        return (old.identity, old.table.pin) == (new.identity, new.table.pin)


@dataclass(frozen=True, slots=True)
class MergeBaseUnchanged:
    """A claim: the target has merged nothing since, so that the merge base is the same."""

    type_key: str = "merge base"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether all that was published since then are ordinary commits."""
        commits = after.view.state.commits
        known = [place for place, commit in enumerate(commits) if commit.id == before.head]
        if not known:
            return False  # so many that the older ones are sealed away
        return all(commit.merged_parent_id is None for commit in commits[known[0] + 1 :])


@dataclass(frozen=True, slots=True)
class SourceRetained:
    """A claim: what the merge takes over from its source can still be read.

    Asked whenever the target has moved: a collection that the merge knows nothing of yet may
    have dropped it.
    """

    manifest: Manifest = field(compare=False)
    source: BranchState = field(compare=False)
    type_key: str = "source of the merge"

    def holds(self, before: Base, after: Base) -> bool:  # noqa: ARG002 - as all claims
        """Whether the source is there and retains its state."""
        try:
            retained(self.manifest, self.source)
        except (BranchNotFound, Conflict):
            return False
        return True


class AlreadyMerged(Exception):
    """The target has everything that the source has."""


@dataclass(slots=True)
class Merge:
    """One merge of a source into the branch of a writer."""

    graph: GraphHandle
    source: BranchState
    resolve: Resolve = None
    dry_run: bool = False
    limits: SortLimits = field(default_factory=_limits)
    plan: MergePlan | None = None
    base: Commit | None = None
    news: tuple[Commit, ...] = ()

    def prepare(self, txn: WriteTxn) -> StagedChanges:
        """Plan the merge on the base of the transaction, and write its rows."""
        # After the target was captured: what is retained then, no collection takes away that
        # this target does not know of.
        self.source = retained(self.graph.manifest, self.source)
        apart = divergence(self.source, txn.base.view)
        self.base, self.news = self._merge_base(apart, txn.base.view), apart.news
        if self.base.id == self.source.state.head_commit_id:
            raise AlreadyMerged
        old = self.graph.manifest.view_at(self.base).snapshot
        new = self.source.snapshot
        sides = sides_of(old, new, txn.base)
        conflicts = Conflicts(read_resolution(self.resolve, txn.base.catalog))
        self.plan = MergePlan(sides, conflicts, self.limits, self.dry_run)
        self.plan.build()
        self._check(conflicts)
        txn.reads.claim(MergeBaseUnchanged())
        txn.reads.claim(SourceRetained(self.graph.manifest, self.source))
        for key in _concerned(sides):
            txn.reads.claim(TableUnchanged(key))
        if self.dry_run:
            return StagedChanges((), repeatable=True, writer_kind="BranchMerge")
        return self._write(self.plan, txn)

    def _check(self, conflicts: Conflicts) -> None:
        """Conflicts that stand stop a merge; so does a resolution that nothing needed."""
        if unused := conflicts.unused():
            key, id_ = unused[0]
            raise BadRequest(
                f"{key}:{id_} is in no conflict, so there is nothing to resolve: nothing was merged"
            )
        if conflicts.standing and not self.dry_run:
            raise MergeConflicts(conflicts.standing)

    def _write(self, plan: MergePlan, txn: WriteTxn) -> StagedChanges:
        if sum(table.size for table in plan.tables.values()) > REQUEST_BYTES:
            txn.announced.begin_bulk("BranchMerge", plan.tables, txn.base)
        done = []
        for key, table in sorted(plan.tables.items()):
            written = table.write()
            if written is not None:
                done.append(written)
                txn.announced.name_files({key: written.written.files}, txn.base)
            reach("rows_written", key)
        return StagedChanges(
            tuple(done),
            repeatable=True,
            writer_kind="BranchMerge",
            ancestors=self.news,
        )

    def _merge_base(self, apart: Divergence, target: BranchState) -> Commit:
        if apart.base is None:
            raise Conflict(
                f"branches {self.source.state.branch} and {target.state.branch} share no commit "
                "that still exists: they cannot be merged",
                details={"source": self.source.state.branch, "target": target.state.branch},
            )
        return apart.base


def merge_branch(
    graph: GraphHandle,
    source: str,
    into: str,
    *,
    resolve: Resolve = None,
    dry_run: bool = False,
    actor: str | None = None,
) -> MergeResult:
    """Merge a branch into another as one commit, or say what stands in the way."""
    source, into = normalise_branch(source), normalise_branch(into)
    if source == into:
        raise BadRequest(f"branch {source} cannot be merged into itself")
    manifest = graph.manifest
    theirs, ours = manifest.view(source), manifest.view(into)
    read_resolution(resolve, catalog_of(ours.state.schema))
    merge = Merge(graph, theirs, resolve, dry_run)
    head = theirs.state.head_commit_id
    result = MergeResult(source, into, "already_up_to_date", actor=actor, is_dry_run=dry_run)
    commit = PendingCommit.mint(
        actor, merged_parent_id=head, metadata={"operation": "merge", SOURCE_BRANCH: source}
    )
    writer = Writer(graph.location, manifest, into)
    try:
        written = writer.run(merge.prepare, commit, even_if_empty=True, dry_run=dry_run)
    except AlreadyMerged:
        return replace(result, base_commit_id=head)
    if merge.plan is None or merge.base is None:
        raise AssertionError("a merge was run and not planned")
    conflicts = merge.plan.conflicts
    parent = ours.state.head_commit_id if written.commit is None else written.commit.parent_id
    return replace(
        result,
        outcome=_outcome(merge.base, parent),
        commit=written.commit,
        base_commit_id=merge.base.id,
        conflicts=tuple(conflicts.standing),
        resolved=tuple(conflicts.settled),
        counts=merge.plan.counts() if dry_run else {},
    )


def _outcome(base: Commit, parent: str | None) -> Outcome:
    return "fast_forward" if parent == base.id else "merged"


def _concerned(sides: Mapping[str, MergeTables]) -> list[str]:
    """The types whose rows the plan depends on: what the source changed, and what that touches."""
    found = {key for key, side in sides.items() if side.source_changed}
    for key, side in sides.items():
        if isinstance(side.type, EdgeType):
            ends = {f"node:{side.type.source}", f"node:{side.type.target}"}
            if key in found:
                found |= ends
            elif any(sides[end].source_changed for end in ends):
                found.add(key)
    return sorted(found)
