"""A merge as a caller asks for it: from two branches to one commit with two parents.

Owns the outcomes and what the merge depends on. The source is taken as it was when the
merge began; when the target moves on, the merge is planned again on what it is then.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec
from msgspec import convert

from omnigraph.errors import BadRequest, BranchNotFound, Conflict, MergeConflict, MergeConflicts
from omnigraph.history.merge.conflicts import (
    Conflicts,
    MergeResult,
    Resolve,
    Side,
    read_resolution,
)
from omnigraph.history.merge.delta import sides_of
from omnigraph.history.merge.keyed_edges import with_keys
from omnigraph.history.merge.misfits import misfits
from omnigraph.history.merge.plan import MergePlan
from omnigraph.history.merge.schema import UNIFIED, MergedSchema, about_schemas, merged_schema
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.schema.merge.conflicts import read_schema_resolution
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.manifest.ancestry import (
    SOURCE_BRANCH,
    Divergence,
    divergence,
    retained,
)
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import SCHEMA_STEPS, Commit
from omnigraph.manifest.publish_request import (
    PendingCommit,
    PublishRequest,
    RegisterTable,
    TableChange,
)
from omnigraph.manifest.snapshot import BranchState, Snapshot
from omnigraph.manifest.store import GraphHandle, Manifest
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target, message_of, run
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind

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


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """What a merge did beside its commit, whenever it did it."""

    base_commit_id: str
    source_id: str
    resolved: tuple[tuple[MergeConflict, Side], ...]


@dataclass(slots=True)
class Merge(Change[MergeResult]):
    """One merge of a source, taken as it was when the merge began, into another branch."""

    kind: ClassVar[WriterKind] = "BranchMerge"

    graph: GraphHandle
    source: str
    resolve: Resolve = None
    dry_run: bool = False
    actor: str | None = None
    run: RunId | None = None
    limits: SortLimits = field(default_factory=_limits)
    scratch: str | None = None
    """Where a dry run may put what it has to write to look at it."""
    notes: dict[str, Any] = field(init=False)
    commit: PendingCommit = field(init=False)
    plan: MergePlan | None = None
    schema: MergedSchema | None = None
    """What both schemas become, where the sides have different ones."""
    base: Commit | None = None
    target: str | None = None
    """The commit that the merge was planned on."""
    news: tuple[Commit, ...] = ()
    _taken: BranchState | None = None
    """The source as it was when the merge began; a repeated run needs none."""

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)
        self.notes = {"operation": "merge", SOURCE_BRANCH: self.source}

    def begin(self) -> None:
        """Take the source as it is."""
        self._taken = self.graph.manifest.view(self.source)
        head = self._taken.state.head_commit_id
        self.commit = replace(self.commit, merged_parent_id=head)

    def prepare(self, txn: WriteTxn) -> bool:
        """Plan the merge on the base; nothing is to be done when that has all of the source."""
        base, reads = txn.base, txn.reads
        resolution = read_resolution(self.resolve, base.catalog)
        # After the target was captured: what is retained then, no collection takes away that
        # this target does not know of.
        source = self._taken = retained(self.graph.manifest, self._source)
        apart = divergence(source, base.view)
        self.base, self.news = self._merge_base(apart, base.view), apart.news
        self.target, self.plan = base.head, None
        if self.base.id == source.state.head_commit_id:
            return False
        old = self.graph.manifest.view_at(self.base).snapshot
        self.plan = self._plan(old, source.snapshot, Conflicts(resolution), txn, _unified(apart))
        self.plan.build()
        reads.claim(MergeBaseUnchanged())
        reads.claim(SourceRetained(self.graph.manifest, source))
        for key in tables_concerned(self.plan):
            reads.claim(TableUnchanged(key))
        return True

    def _plan(
        self,
        old: Snapshot,
        new: Snapshot,
        conflicts: Conflicts,
        txn: WriteTxn,
        unified: Iterable[tuple[int, int]] = (),
    ) -> MergePlan:
        """The rows of all sides under one schema: the one they have, or the one they merge into."""
        base, self.schema = txn.base, None
        self.notes.pop(SCHEMA_STEPS, None)
        if old.schema == new.schema == base.snapshot.schema:
            named = read_schema_resolution(about_schemas(self.resolve)).elements
            conflicts.unused_elements += named
            return MergePlan(sides_of(old, new, base), conflicts, self.limits, self.dry_run)
        merged = self.schema = merged_schema(
            old,
            new,
            base.snapshot,
            conflicts,
            resolve=self.resolve,
            unified=unified,
            reserve=None if self.dry_run else self.graph.manifest.refs.reserve_identities,
        )
        if merged is None:
            return MergePlan({}, conflicts, self.limits, self.dry_run)
        if merged.unified:
            self.notes[UNIFIED] = [list(pair) for pair in sorted(merged.unified.items())]
        if merged.plan.steps:
            self.notes[SCHEMA_STEPS] = merged.plan.to_json()["steps"]
        if not conflicts.standing:
            conflicts.standing += misfits(merged)
        sides = merged.tables(base)
        if not conflicts.standing:
            sides = {
                key: with_keys(found, conflicts, txn, self.scratch) for key, found in sides.items()
            }
        checks = {key: merged.checks(found.type.type_id) for key, found in sides.items()}
        return MergePlan(
            sides,
            conflicts,
            self.limits,
            self.dry_run,
            checks=checks,
            is_stricter=merged.is_stricter,
        )

    def check(self, txn: WriteTxn) -> None:  # noqa: ARG002 - as all changes
        """Conflicts that stand stop a merge; so does a resolution that nothing needed."""
        conflicts = self._planned.conflicts
        named = [f"{key}:{id_}" for key, id_ in conflicts.unused()]
        if unused := [*named, *conflicts.unused_elements]:
            raise BadRequest(
                f"{unused[0]} is in no conflict, so there is nothing to resolve: nothing was merged"
            )
        if conflicts.standing and not self.dry_run:
            raise MergeConflicts(conflicts.standing)

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the rows of every type that the merge changes."""
        tables = sorted(self._planned.tables.items())
        size = sum(table.size for _, table in tables)
        keys = (table.sides.target_key for _, table in tables)
        txn.files.begin([key for key in keys if key is not None], txn.base, size)
        found = [table.stage(txn) for _, table in tables]
        return tuple(effect for effect in found if effect is not None)

    def publish(self, base: Base, effects: Effects) -> PublishRequest:
        """A commit with two parents, and what it brings along of the history of the source."""
        request = replace(Change.publish(self, base, ()), ancestors=self.news)
        known = base.snapshot.by_identity
        changes: list[TableChange] = []
        for effect in effects:
            if effect.identity in known:
                changes += [] if effect.is_nothing else [effect.advance]
            else:
                table = self._planned.sides[effect.type_key].table
                changes.append(RegisterTable(table, effect.pin, revives=True))
        if self.schema is None:
            return replace(request, changes=tuple(changes))
        changes += self.schema.changes(base)
        return replace(request, changes=tuple(changes), schema=self.schema.contract)

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:  # noqa: ARG002 - as all changes
        """The same effects: what they were built on has not changed, or it is planned again."""
        known = newer.snapshot.by_identity
        return tuple(
            replace(effect, base_version=known[effect.identity].version)
            if effect.identity in known
            else effect
            for effect in effects
        )

    @property
    def outcome(self) -> Mapping[str, Any]:
        """How it went, which source it was, and the conflicts that were settled."""
        told: Mapping[str, Any] = msgspec.to_builtins(self._outcome)
        return told

    @property
    def _outcome(self) -> MergeOutcome:
        if self.base is None:
            raise AssertionError("a merge was run and not planned")
        settled = () if self.plan is None else tuple(self.plan.conflicts.settled)
        return MergeOutcome(self.base.id, self._source.branch_id, settled)

    def result(self, written: WriteOutcome) -> MergeResult:
        """How the merge went; a dry run also counts rows."""
        done = self._outcome if not written.repeats else convert(written.first, MergeOutcome)
        result = MergeResult(
            self.source,
            written.branch,
            "already_up_to_date",
            actor=self.actor,
            is_dry_run=self.dry_run and not written.repeats,
            base_commit_id=done.base_commit_id,
            repeats_run=written.repeats,
            source_id=done.source_id,
        )
        if written.commit is None:
            if self.plan is None:
                return result
            conflicts = self.plan.conflicts.standing
            counts = self.plan.counts() if self.dry_run else {}
            result = replace(result, conflicts=tuple(conflicts), counts=counts)
        else:
            result = replace(result, actor=written.commit.actor)
        parent = self.target if written.commit is None else written.commit.parent_id
        return replace(
            result,
            outcome="fast_forward" if parent == done.base_commit_id else "merged",
            commit=written.commit,
            resolved=done.resolved,
            schema=MigrationPlan() if self.schema is None else self.schema.plan,
        )

    @property
    def _source(self) -> BranchState:
        if self._taken is None:
            raise AssertionError("a merge begins before it is planned")
        return self._taken

    @property
    def _planned(self) -> MergePlan:
        if self.plan is None:
            raise AssertionError("a merge is planned before it is published")
        return self.plan

    def _merge_base(self, apart: Divergence, target: BranchState) -> Commit:
        if apart.base is None:
            raise Conflict(
                f"branches {self.source} and {target.state.branch} share no commit that still "
                "exists: they cannot be merged",
                details={"source": self.source, "target": target.state.branch},
            )
        return apart.base


def merge_branch(
    graph: GraphHandle,
    source: str,
    into: str,
    *,
    resolve: Resolve = None,
    delete_source: bool = False,
    dry_run: bool = False,
    run_id: str | None = None,
    message: str | None = None,
    actor: str | None = None,
) -> MergeResult:
    """Merge a branch into another as one commit, or say what stands in the way.

    Whether the source is deleted afterwards is the caller's to do, and part of what was asked.
    """
    source, into = normalise_branch(source), normalise_branch(into)
    if source == into:
        raise BadRequest(f"branch {source} cannot be merged into itself")
    run_ = None
    if run_id is not None:
        asked = {"source": source, "into": into, "resolve": resolve, "delete_source": delete_source}
        run_ = RunId.of(run_id, "merge", asked)
    target = Target(graph.location, graph.manifest, into, message=message_of(message))
    if not dry_run:
        return run(Merge(graph, source, resolve, dry_run, actor, run_), target)
    with TemporaryDirectory(prefix="omnigraph-") as scratch:
        merge = Merge(graph, source, resolve, dry_run, actor, run_, scratch=scratch)
        return run(merge, target, dry_run=True)


def _unified(apart: Divergence) -> Iterator[tuple[int, int]]:
    """The identities that earlier merges have made one, on either side."""
    for commit in apart.known.values():
        yield from (tuple(pair) for pair in commit.metadata.get(UNIFIED, ()))


def tables_concerned(plan: MergePlan) -> list[str]:
    """The tables of the target that the plan depends on, as it calls them.

    What the source changed, what that touches, and what is looked at because of a rule.
    """
    sides = plan.sides
    found = {key for key, side in sides.items() if side.source_changed or plan.checks.get(key)}
    found |= plan.tables.keys()
    for key, side in sides.items():
        if isinstance(side.type, EdgeType):
            ends = {f"node:{side.type.source}", f"node:{side.type.target}"} & sides.keys()
            if key in found:
                found |= ends
            elif any(sides[end].source_changed for end in ends):
                found.add(key)
    keys = (sides[key].target_key for key in found)
    return sorted(key for key in keys if key is not None)
