"""Optimizing: few large files, indexes that cover them, as one maintenance commit of a branch.

Owns the way from what is worth doing to the commit. Every row stays, under its row id; writers
go on meanwhile and are never disturbed: what they have touched is left as they made it, or done
once more. Must never change what a query returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

from omnigraph.lang.schema.catalog import Catalog, unknown_type
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.maintain.index_choice import (
    IndexDecision,
    TypeIntent,
    intents_of,
    unasked_indexes,
)
from omnigraph.maintain.indexes import (
    DONE,
    build_chosen,
    choose_all,
    outcome_of,
    pending_of,
)
from omnigraph.maintain.reports import DatasetOptimize, IndexChange, OptimizeReport
from omnigraph.maintain.rewrite_choice import FragmentGroup, groups_of
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.snapshot import MANIFEST_NAME
from omnigraph.storage.indexes.build import BuiltIndex, commit_indexes
from omnigraph.storage.indexes.kept_coverage import commit_with_indexes, numbered
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.rewrite import Rewritten, write_again
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.publish.base import Base, BaseTable
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.staging import OperationClass, TableEffect, built_from
from omnigraph.write.recovery.intent_scope import IntentScope
from omnigraph.write.recovery.intents import WriterKind

_Job = TypeVar("_Job")
_Made = TypeVar("_Made")

ROUNDS = 4
"""So often everything is done again because others have changed all of it meanwhile."""
OVERTAKEN = "others have changed its rows meanwhile: run it again"


@dataclass(frozen=True, slots=True)
class RewriteJob:
    """Fragments of one table to be written again."""

    table: Table
    group: FragmentGroup

    @property
    def rows(self) -> int:
        """How many rows that are."""
        return sum(part.rows for part in self.group.parts)


@dataclass(frozen=True, slots=True)
class IndexJob:
    """A segment to be built on one table."""

    table: Table
    choice: IndexDecision


def do_rewrite(job: RewriteJob) -> Rewritten:
    """Write the rows of a job, wherever this runs."""
    return write_again(job.table, job.group.parts, job.group.order_by)


def do_build(job: IndexJob) -> BuiltIndex:
    """Build the segment of a job, wherever this runs."""
    return build_chosen(job.table, job.choice)


class Workers(Protocol):
    """Who writes rows and builds segments."""

    @property
    def engine(self) -> str:
        """What it is called in the report."""

    def run(
        self, title: str, function: Callable[[_Job], _Made], jobs: Sequence[_Job], rows: int
    ) -> Iterable[_Made]:
        """What a function makes of every job, in their order; in all, they read so many rows."""


class InlineWorkers(Workers):
    """This process, one job after the other: Lance is parallel inside."""

    @property
    def engine(self) -> str:
        """The engine of everything small."""
        return "inline"

    def run(
        self,
        title: str,  # noqa: ARG002 - for those who show it
        function: Callable[[_Job], _Made],
        jobs: Sequence[_Job],
        rows: int,  # noqa: ARG002 - for those who choose by it
    ) -> Iterable[_Made]:
        """As they are asked for."""
        return map(function, jobs)


@dataclass(slots=True)
class _TypeWork:
    """What is to be done for one type, and what was made for it so far."""

    intent: TypeIntent
    groups: tuple[FragmentGroup, ...]
    choices: list[IndexDecision]
    unasked: Mapping[str, str]
    """The names of indexes that go, with their columns."""
    written: list[Rewritten] = field(default_factory=list)
    built: list[BuiltIndex] = field(default_factory=list)
    staged_on: Table | None = None
    """The table with the rows that were written again, for the indexes."""
    staged_from: TablePin | None = None

    @property
    def wanted(self) -> list[IndexDecision]:
        """The segments to be built."""
        return [choice for choice in self.choices if choice.action is not None]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.groups or self.wanted or self.unasked)


@dataclass(slots=True)
class Optimize(Change[OptimizeReport]):
    """One pass over the types of a branch, as one commit or none."""

    kind: ClassVar[WriterKind] = "Optimize"
    operation_class: ClassVar[OperationClass] = "maintenance"

    types: tuple[str, ...] | None = None
    cluster: bool = False
    workers: Workers = field(default_factory=InlineWorkers)
    actor: str | None = None
    is_dry_run: bool = False
    notes: Mapping[str, Any] = field(default_factory=lambda: {"operation": "optimize"})
    commit: PendingCommit = field(init=False)
    _work: dict[str, _TypeWork] = field(default_factory=dict)
    _found: dict[str, BaseTable] = field(default_factory=dict)
    _rounds: int = 0

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)

    @property
    def _needed(self) -> dict[str, _TypeWork]:
        return {key: work for key, work in self._work.items() if work.is_needed}

    def prepare(self, txn: WriteTxn) -> bool:
        """Look at the layout of every type: no row is read unless they are to be in order."""
        base = txn.base
        intents = intents_of(base.catalog)
        self._rounds += 1
        self._work = {
            key: self._plan(base.table(key).table, intents[key])
            for key in _selected(base.catalog, self.types)
        }
        self._found = {key: base.table(key) for key in self._work}
        return bool(self._needed) and self._rounds <= ROUNDS

    def _plan(self, table: Table, intent: TypeIntent) -> _TypeWork:
        is_edge = intent.type_key.startswith("edge:")
        order = () if not self.cluster else (SRC, DST) if is_edge else (ID,)
        return _TypeWork(
            intent,
            groups_of(table, order) if table.pin.row_count else (),
            choose_all(table, intent),
            {index.name: index.column or index.stored for index in unasked_indexes(table, intent)},
        )

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the rows of all types, commit them, and index what came of it."""
        base, files, needed = txn.base, txn.files, self._needed
        files.begin(needed, base)
        self._rewrite(base, files)
        for key, work in needed.items():
            table = base.table(key).table
            stamp = built_from(files.stamp(), table.pin)
            work.staged_from = table.pin
            if work.written:
                work.written = numbered(table, work.written)
            work.staged_on = table.at(commit_with_indexes(table, work.written, stamp))
            work.choices = choose_all(work.staged_on, work.intent)
        self._build(base, files)
        return tuple(self._committed(base.table(key), work, files) for key, work in needed.items())

    def _rewrite(self, base: Base, files: IntentScope) -> None:
        jobs = [
            (key, RewriteJob(base.table(key).table, group))
            for key, work in self._needed.items()
            for group in work.groups
        ]
        rows = sum(job.rows for _, job in jobs)
        done = self.workers.run("rewriting", do_rewrite, [job for _, job in jobs], rows)
        for (key, _), written in zip(jobs, done, strict=True):
            self._work[key].written.append(written)
            files.name({key: written.files}, base)
            reach("rows_written", key)

    def _build(self, base: Base, files: IntentScope) -> None:
        jobs = [
            (key, IndexJob(work.staged_on, choice))
            for key, work in self._needed.items()
            if work.staged_on is not None
            for choice in work.wanted
        ]
        rows = sum(job.choice.rows for _, job in jobs)
        done = self.workers.run("indexing", do_build, [job for _, job in jobs], rows)
        for (key, _), built in zip(jobs, done, strict=True):
            self._work[key].built.append(built)
            files.name({key: built.files}, base)

    def restage(self, effects: Effects, newer: Base, files: IntentScope) -> Effects | None:
        """The same files on a newer base, so far as it has the fragments they were made of."""
        moved = tuple(
            replace(effect, base_version=found.version)
            if (found := newer.table(effect.type_key)).table.pin == effect.base_pin
            else self._committed(found, self._work[effect.type_key], files)
            for effect in effects
        )
        return None if all(effect.is_nothing for effect in moved) else moved

    def _committed(self, found: BaseTable, work: _TypeWork, files: IntentScope) -> TableEffect:
        key, table = found.type_key, found.table
        stamp = built_from(files.stamp(), table.pin)
        staged = work.staged_on
        if staged is None or work.staged_from != table.pin:
            staged = table.at(commit_with_indexes(table, work.written, stamp))
        pin = commit_indexes(staged, work.built, stamp, dropped=work.unasked)
        reach("table_staged", key)
        return TableEffect(key, found.identity, found.version, table.pin, pin)

    def result(self, written: WriteOutcome) -> OptimizeReport:
        """What was done, or would be, type by type."""
        effects = {effect.type_key: effect for effect in written.effects}
        datasets = []
        for key, work in self._work.items():
            effect = effects.get(key)
            if effect is not None and work.staged_on is not None:
                table = work.staged_on.at(effect.pin)
                version = effect.base_version + (not effect.is_nothing)
                datasets.append(_done(key, work, table, version, is_done=not effect.is_nothing))
            else:
                is_late = work.is_needed and not self.is_dry_run
                told = OVERTAKEN if is_late else None
                datasets.append(_planned(key, work, self._found[key], told))
        commit_id = None if written.commit is None else written.commit.id
        return OptimizeReport(
            written.branch, commit_id, tuple(datasets), self.workers.engine, self.is_dry_run
        )


def optimize(change: Optimize, target: Target) -> OptimizeReport:
    """Run an optimization, and merge the log of the branch after it."""
    report = run(change, target, dry_run=change.is_dry_run)
    branch_id = target.manifest.branch_id(target.branch)
    gone, made = target.manifest.merge_log(branch_id, dry_run=change.is_dry_run)
    log = DatasetOptimize(MANIFEST_NAME, gone, made)
    return replace(report, datasets=(*report.datasets, log))


def _selected(catalog: Catalog, types: Iterable[str] | None) -> list[str]:
    """The keys of the types of these names, or of all; a name may say whether it is a node."""
    keys = [
        *(f"node:{name}" for name in catalog.nodes),
        *(f"edge:{name}" for name in catalog.edges),
    ]
    if types is None:
        return sorted(keys)
    wanted = set(types)
    names = {key.partition(":")[2] for key in keys}
    for name in sorted(wanted - names - set(keys)):
        raise unknown_type(name, names)
    return sorted(key for key in keys if key in wanted or key.partition(":")[2] in wanted)


def _planned(key: str, work: _TypeWork, found: BaseTable, told: str | None) -> DatasetOptimize:
    """What would be done, or what was not."""
    unchanged = DatasetOptimize(
        key,
        skipped=told,
        published_dataset_version=found.version,
        lance_version=found.table.pin.version,
        pending=tuple(pending_of(work.choices)),
    )
    if told is not None:
        return unchanged
    rows = [sum(part.rows for part in group.parts) for group in work.groups]
    indexes = [
        IndexChange(key, one.intent.property, one.kind, DONE[one.action], one.rows)
        for one in work.wanted
        if one.action is not None and one.kind is not None
    ]
    return replace(
        unchanged,
        fragments_removed=sum(len(group.parts) for group in work.groups),
        fragments_added=sum(-(-count // MAX_ROWS_PER_FILE) for count in rows),
        rows_rewritten=sum(rows),
        indexes=tuple(indexes),
        indexes_dropped=tuple(sorted(work.unasked.values())),
    )


def _done(
    key: str, work: _TypeWork, table: Table, version: int, *, is_done: bool
) -> DatasetOptimize:
    """What the published version has of what was made."""
    present = {part.file for part in layout_of(table).parts}
    moved = [one for one in work.written if present.issuperset(one.new_files)] if is_done else []
    made, lost = outcome_of(table, work.wanted, work.built)
    is_late = len(moved) < len(work.written)
    return DatasetOptimize(
        key,
        sum(len(one.old) for one in moved),
        sum(len(one.new_files) for one in moved),
        sum(old.part.rows for one in moved for old in one.old),
        committed=is_done,
        skipped=OVERTAKEN if is_late else None,
        published_dataset_version=version,
        lance_version=table.pin.version,
        indexes=tuple(made),
        indexes_dropped=tuple(sorted(work.unasked.values())) if is_done else (),
        pending=(*pending_of(work.choices), *lost),
    )
