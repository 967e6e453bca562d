"""Repair: making again what is derived, and telling what is lost.

Owns which findings of a verification can be mended, and how: damaged indexes are dropped and
built anew as a maintenance commit, copies of the schema are rewritten, the story of dead
writers is finished. Where a file is lost, the newest commit of the branch that is whole can be
kept as a branch of its own. Without a confirmation it only says what it would do. Must never
remove or change anything that it cannot make again: rows, versions and what is not this
graph's stay as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.maintain.indexes import ensure_indices
from omnigraph.maintain.repair_report import DatasetRepair, RepairReport, Rescue
from omnigraph.maintain.verify.files import foreign_versions
from omnigraph.maintain.verify.lineage import newest_left
from omnigraph.maintain.verify.operation import verify
from omnigraph.maintain.verify.report import DERIVED, BranchVerdict, VerifyReport
from omnigraph.manifest.branches import BranchRefs, normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.root_copies import lagging_copies, write_copies
from omnigraph.manifest.snapshot import find_commit
from omnigraph.manifest.store import Manifest
from omnigraph.storage.indexes.table_indexes import drop_indexes, indexes_of
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.staging import OperationClass, TableEffect
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.recovery.sweep import sweep

ACTOR = "omnigraph:repair"


@dataclass(slots=True)
class DropIndexes(Change[str | None]):
    """Damaged indexes are dropped; nobody finds fewer rows by that."""

    kind: ClassVar[WriterKind] = "EnsureIndices"
    operation_class: ClassVar[OperationClass] = "maintenance"

    types: Collection[str]
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "repair"})
    commit: PendingCommit = field(default_factory=lambda: PendingCommit.mint(ACTOR))

    def prepare(self, txn: WriteTxn) -> bool:
        """Whether any of the tables has indexes."""
        return any(
            indexes_of(txn.base.table(key).table)
            for key in self.types
            if key in txn.base.snapshot.tables
        )

    def stage(self, txn: WriteTxn) -> Effects:
        """Versions without indexes."""
        return tuple(
            self._dropped(txn.base.table(key), txn.files)
            for key in sorted(self.types)
            if key in txn.base.snapshot.tables and indexes_of(txn.base.table(key).table)
        )

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same on a newer base."""
        return tuple(self._dropped(newer.table(effect.type_key), files) for effect in effects)

    def _dropped(self, found: BaseTable, files: IntentScope) -> TableEffect:
        table = found.table
        names = [index.name for index in indexes_of(table)]
        pin = drop_indexes(table, names, files.stamp())
        return TableEffect(found.type_key, found.identity, found.version, table.pin, pin)

    def result(self, written: WriteOutcome) -> str | None:
        """The commit."""
        return None if written.commit is None else written.commit.id


def repair(
    root: Location, *, confirm: bool = False, force: bool = False, keep_as: str | None = None
) -> RepairReport:
    """Mend what can be made again; without ``confirm``, say what would be done.

    ``force`` makes all indexes again, also those that nothing is wrong with. ``keep_as`` names
    a branch that is made of the newest whole commit of a branch that has lost something; of
    several, each with the name of that branch behind it.
    """
    keep_as = None if keep_as is None else normalise_branch(keep_as)
    if not confirm and (force or keep_as is not None):
        raise BadRequest("that changes the graph: confirm it, or leave out force and keep_as")
    found = verify(root)
    manifest = Manifest(root)
    indexes = _all_indexes(manifest, found) if force else _damaged_indexes(found)
    repaired = [*_beside(root, manifest, found, confirm=confirm)]
    if confirm:
        for branch, types in sorted(indexes.items()):
            run(DropIndexes(types), Target(root, manifest, branch))
            ensure_indices(root, manifest, branch, actor=ACTOR)
    rescues = tuple(
        _rescued(manifest, one, keep_as if confirm else None, several=several)
        for several, one in _lost(found)
    )
    datasets, version = _datasets(root, manifest, indexes)
    return RepairReport(confirm, version, datasets, tuple(repaired), rescues, found)


def _damaged_indexes(found: VerifyReport) -> dict[str, set[str]]:
    """The types whose indexes are damaged, by branch."""
    types: defaultdict[str, set[str]] = defaultdict(set)
    for finding in found.findings:
        if finding.kind in DERIVED and finding.type_key is not None:
            for branch in finding.branches:
                types[branch].add(finding.type_key)
    return dict(types)


def _all_indexes(manifest: Manifest, found: VerifyReport) -> dict[str, set[str]]:
    """All types, by branch, where nothing else is damaged."""
    lost = {one.branch for _, one in _lost(found)}
    names = [one.branch for one in found.branches if one.branch not in lost]
    return {name: set(manifest.view(name).snapshot.tables) for name in names}


def _beside(
    root: Location, manifest: Manifest, found: VerifyReport, *, confirm: bool
) -> Iterator[str]:
    """Copies of the schema and the intents of dead writers."""
    kinds = {finding.kind for finding in found.findings}
    objects = ControlObjects(root)
    if "copy_lags" in kinds:
        contract = manifest.view().state.schema
        names = lagging_copies(objects, contract)
        if confirm:
            write_copies(objects, contract, names)
        yield f"rewrite {', '.join(names)} from the manifest"
    if "intent_expired" in kinds:
        if confirm:
            sweep(root, manifest)
        yield "finish the story of writers that died"


def _lost(found: VerifyReport) -> Iterator[tuple[bool, BranchVerdict]]:
    """The branches that have lost what cannot be made again."""
    hurt = {
        branch
        for finding in found.damage
        if finding.kind not in DERIVED
        for branch in finding.branches
    }
    lost = [one for one in found.branches if one.branch in hurt]
    for one in lost:
        yield len(lost) > 1, one


def _rescued(
    manifest: Manifest, lost: BranchVerdict, keep_as: str | None, *, several: bool
) -> Rescue:
    commit_id = lost.newest_whole_commit_id
    if keep_as is None or commit_id is None:
        return Rescue(lost.branch, commit_id)
    name = f"{keep_as}-{lost.branch.replace('/', '-')}" if several else keep_as
    older = None
    if lost.head_commit_id is None:
        older = newest_left(manifest, manifest.branch_id(lost.branch))
    refs = BranchRefs(manifest)
    if older is None:
        return Rescue(lost.branch, commit_id, refs.keep(name, commit_id, ACTOR))
    commit = find_commit(older, commit_id)
    if commit is None:
        return Rescue(lost.branch, commit_id)
    kept = manifest.view_at(commit)
    head = replace(kept.state.head, oldest_commit_id=older.state.head.oldest_commit_id)
    kept = replace(kept, state=replace(kept.state, head=head))
    return Rescue(lost.branch, commit_id, refs.keep_state(name, kept, ACTOR))


def _datasets(
    root: Location, manifest: Manifest, indexes: dict[str, set[str]]
) -> tuple[tuple[DatasetRepair, ...], int | None]:
    try:
        snapshot = manifest.view().snapshot
    except OmniGraphError:
        return (), None
    found = []
    for key, shown in sorted(snapshot.tables.items()):
        entries = ControlObjects(root.join(shown.table.path)).entries("_versions")
        foreign = foreign_versions({entry.name: entry.size for entry in entries})
        is_damaged = key in indexes.get(MAIN, ())
        found.append(
            DatasetRepair(
                key,
                shown.version,
                foreign[-1] if foreign else 1,
                "foreign_drift" if foreign else "no_drift",
                "rebuild_indexes" if is_damaged else "none",
                tuple(f"version {one} of another program" for one in foreign),
            )
        )
    return tuple(found), snapshot.manifest_version
