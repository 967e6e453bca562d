"""A bulk load: input of any size becomes one validated, atomic commit, or nothing.

Owns the order of its steps and what becomes of files that are not published: stage, check,
resolve, hand over. The one door publishes; this only tells it which files to publish, and what
that depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar, Self

import pyarrow as pa

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.snapshot import find_commit
from omnigraph.pipeline.load.check.check_staged import (
    Checked,
    check_staged,
    resolved,
    rewrite,
    rewrites,
)
from omnigraph.pipeline.load.check.dependencies import claims_of
from omnigraph.pipeline.load.check.key_source import RowList
from omnigraph.pipeline.load.check.left_out import RejectedRows
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.frames import LoadInput
from omnigraph.pipeline.load.stage.ordered import OrderJob, write_in_order
from omnigraph.pipeline.load.stage.stage_input import Staged, stage_input, write_down
from omnigraph.pipeline.load.stage.staged_types import StagedType, forget, joined
from omnigraph.pipeline.load.staged_checks import StagedCheck, require_checks
from omnigraph.pipeline.task_runner import TaskRunner
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.change.results import BulkWork, LoadResult, TypeChanges
from omnigraph.write.load.operation import Accepted, LoadOptions, load_result
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Once, require_not_loaded
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.staged_files import delete_files
from omnigraph.write.publish.staged_state import staged_snapshot
from omnigraph.write.publish.staging import TableEffect, commit_rows
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.rules.violations import SHOWN

Rewritten = Mapping[str, Mapping[int, WrittenRows]]
"""Fragments that were written again, by type key and by the number of the first writing."""


@dataclass(slots=True)
class BulkLoad(Change[LoadResult]):
    """One load; what is staged stays good for as long as the schema does.

    ``once`` tells it apart from others that go to its branch. As a context it leaves nothing
    behind but what is published.
    """

    kind: ClassVar[WriterKind] = "Load"

    given: LoadInput
    options: LoadOptions
    runner: TaskRunner
    embedding: EmbedderConfig
    actor: str | None = None
    run: RunId | None = None
    once: tuple[Once, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    checks: tuple[StagedCheck, ...] = ()
    commit: PendingCommit = field(init=False)
    _begun: float = field(default_factory=monotonic)
    _base: Base | None = None
    _area: StagingArea | None = None
    _staged: Staged | None = None
    _checked: list[Checked] = field(default_factory=list)
    _rewritten: list[Rewritten] = field(default_factory=list)
    _changes: Mapping[str, TypeChanges] = field(default_factory=dict)
    _folded: set[tuple[str, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)
        self.notes |= self.options.notes

    @property
    def repeatable(self) -> bool:
        """What replaces whole tables was decided on what they hold."""
        return self.options.mode != "overwrite"

    def prepare(self, txn: WriteTxn) -> bool:
        """Stage all rows once for a schema, so that they can be checked; an empty load is one."""
        base, files = txn.base, txn.files
        self.options.order.columns(base.catalog)  # which refuses what there is not
        self._base, self._area = base, StagingArea(base.root, files.operation_id)
        require_not_loaded(txn, self.once)
        files.begin(base.snapshot.tables, base)
        staged = self._stage(base, self._area)
        files.name({key: found.files for key, found in staged.types.items()}, base)
        return True

    def _stage(self, base: Base, area: StagingArea) -> Staged:
        before = self._staged
        if before is not None and self._is_good_for(before, base):
            return before
        if before is not None:
            # Nothing has been published of it, and nothing will be.
            self._delete(base)
            forget(before.types.values())
            self._rewritten.clear()
            self._folded.clear()
        files = write_down(self.given, area, self.runner) if before is None else before.files
        shown = SHOWN if self.options.on_error == "fail" else 0
        self._staged = staged = stage_input(
            files,
            base,
            area,
            self.embedding,
            self.runner,
            shown=shown,
            patches=self.options.mode == "patch",
        )
        if staged.embedding is not None:
            self.notes["embedding"] = staged.embedding
        return staged

    def _is_good_for(self, staged: Staged, base: Base) -> bool:
        """Whether the staged rows are those of a base: patches are made of what it has."""
        job = staged.job
        if job.catalog is not base.catalog:
            return False
        return self.options.mode != "patch" or all(
            base.table(key).table.pin.version == job.tables[key].pin.version
            for key in staged.touched
        )

    def check(self, txn: WriteTxn) -> None:
        """Leave out what is wrong, or refuse it; and note what that depends on."""
        staged = self._done
        checked = check_staged(staged, txn.base, self.options, self.runner)
        self._checked.append(checked)
        self._changes = self._counted(checked, txn.base)
        for claim in claims_of(
            staged.types,
            checked.found.keys,
            mode=self.options.mode,
            touched=staged.touched,
            base=txn.base,
        ):
            txn.reads.claim(claim)
        if self.options.dry_run and self.checks:
            # They look at what is staged, which a dry run takes away again.
            self.stage(txn)

    def _counted(self, checked: Checked, base: Base) -> dict[str, TypeChanges]:
        """What happens to each type; nothing to those whose every row was left out."""
        staged = self._done
        changes = {}
        for key in sorted(staged.touched):
            one = staged.types.get(key)
            written = (
                0 if one is None else one.count - checked.left_out.count(key, with_superseded=True)
            )
            existing = checked.found.existing.get(key, 0)
            if written or one is None or not one.count:
                stored = base.table(key).table.pin.row_count
                changes[key] = TypeChanges.of(self.options.mode, written, existing, stored)
        return changes

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the fragments again that hold rows that were left out, and commit all."""
        staged, checked = self._done, self._checked[-1]
        columns = self.options.order.columns(txn.base.catalog)
        rewritten = {
            **rewrite_left_out(staged, checked.left_out, self.runner, without=columns),
            **write_ordered(staged, checked.left_out, self.runner, columns),
        }
        self._rewritten.append(rewritten)
        txn.files.name(
            {key: joined(some.values()).files for key, some in rewritten.items()}, txn.base
        )
        with self.runner.stage("hand over"):
            effects = tuple(self._effects(txn, checked, rewritten))
        self._folded |= {
            (one.type_key, name) for one in effects for some in one.folded for name in some.files
        }
        if self.checks:
            with self.runner.stage("checks"):
                staged_state = staged_snapshot(txn.base, effects, self.commit.id)
                require_checks(self.checks, txn.base, staged_state, txn.reads)
        return effects

    def _effects(self, txn: WriteTxn, checked: Checked, rewritten: Rewritten) -> list[TableEffect]:
        """What happens to each type that the input says something about."""
        staged, replaces = self._done, self.options.mode == "overwrite"
        ordered = self.options.order.columns(txn.base.catalog)
        effects: list[TableEffect] = []
        for key in sorted(staged.touched):
            one = staged.types.get(key)
            again = rewritten.get(key, {})
            if one is None:
                written = joined(())
            elif key in ordered:
                written = joined(again.values())
            else:
                written = joined(resolved(one, again))
            # A type whose every row was left out is left alone.
            if written.count or (replaces and not (one is not None and one.count)):
                gone = _gone(checked.found.replaced.get(key, ()))
                table, stamp = txn.base.table(key), txn.files.stamp()
                effects.append(commit_rows(table, written, stamp, gone, replaces_all=replaces))
        return effects

    @property
    def _done(self) -> Staged:
        if self._staged is None:
            raise AssertionError("a load is staged before it is checked")
        return self._staged

    # -- the end ---------------------------------------------------------------------

    def discard(self, txn: WriteTxn) -> None:
        """Delete all that was staged; nobody needs the intent then."""
        # Whatever a store has answered before: what the branch shows is not to be touched.
        if find_commit(txn.base.view, self.commit.id) is None:
            self._delete(txn.base)
        txn.files.close()

    def _delete(self, base: Base, kept: Collection[tuple[str, str]] = frozenset()) -> None:
        """Delete what was staged, but for the files that are published."""
        types = {} if self._staged is None else self._staged.types
        names = [(key, name) for key, one in types.items() for name in one.files]
        names += [
            (key, name)
            for rewritten in self._rewritten
            for key, some in rewritten.items()
            for name in joined(some.values()).files
        ]
        names += self._folded
        delete_files(base, (name for name in names if name not in kept))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._area is not None:
            self._area.remove()
        if self._staged is not None:
            forget(self._staged.types.values())

    def result(self, written: WriteOutcome) -> LoadResult:
        """How many rows of each type were loaded, what was left out, and what it took."""
        if written.repeats:
            return load_result(self.options, written, self.actor, Accepted())
        seconds = self.runner.seconds
        seconds["publish"] = monotonic() - self._begun - sum(seconds.values())
        if self._base is not None and (any(self._rewritten) or self.options.dry_run):
            effects = written.effects
            self._delete(
                self._base, {(one.type_key, name) for one in effects for name in one.files}
            )
        return load_result(
            self.options,
            written,
            self.actor,
            self._accepted,
            work=self._work(written.effects),
            changes=self._changes,
            samples=self._checked[-1].samples if self.options.report else (),
        )

    @property
    def outcome(self) -> Mapping[str, Any]:
        """How many rows of each type were loaded, and what was left out."""
        return self._accepted.outcome

    @property
    def _accepted(self) -> Accepted:
        last = self._checked[-1]
        listed = [one.rejects_file for one in self._checked]
        return Accepted(
            accepted_rows(self._done, last.left_out),
            last.codes,
            next((file for file in reversed(listed) if file is not None), None),
            self.runner.name,
        )

    def _work(self, effects: Effects) -> BulkWork:
        rows = [some for one in self._done.types.values() for some in one.rows]
        parts = [effect.written for effect in effects] or [one.written for one in rows]
        log_file = self.runner.log_file
        return BulkWork(
            sum(len(part.fragments) for part in parts),
            sum(one.size for one in rows),
            dict(self.runner.seconds),
            None if log_file is None else str(log_file),
            {name: tuple(took) for name, took in self.runner.task_seconds.items()},
        )


def write_ordered(
    staged: Staged,
    left_out: RejectedRows,
    runner: TaskRunner,
    columns: Mapping[str, tuple[str, ...]],
) -> Rewritten:
    """Write all rows again of the types that are to be in an order, file by file."""
    jobs = {
        key: OrderJob(one.table, one.parts, _left_out(one, left_out, staged.job.area), columns[key])
        for key, one in staged.types.items()
        if key in columns
    }
    made = runner.run("order", write_in_order, list(jobs.values()))
    return {key: dict(enumerate(files)) for key, files in zip(jobs, made, strict=True)}


def _left_out(one: StagedType, left_out: RejectedRows, area: StagingArea) -> tuple[RowList, ...]:
    """The lists of all rows of a type that are left out."""
    groups = range(len(one.groups))
    return tuple(rows for at in groups for rows in left_out.lists(area, one.type_key, at))


def rewrite_left_out(
    staged: Staged, left_out: RejectedRows, runner: TaskRunner, without: Collection[str] = ()
) -> Rewritten:
    """Write the fragments again that hold rows that were left out, ``without`` some types."""
    jobs = [
        (key, job)
        for key, one in staged.types.items()
        if key not in without
        for job in rewrites(one, left_out, staged.job.area)
    ]
    made = runner.run("resolve", rewrite, [job for _, job in jobs])
    rewritten: dict[str, dict[int, WrittenRows]] = {}
    for (key, job), written in zip(jobs, made, strict=True):
        if written is not None:
            rewritten.setdefault(key, {})[job.part.number] = written
    return rewritten


def accepted_rows(staged: Staged, left_out: RejectedRows) -> dict[str, int]:
    """How many rows of each type were not rejected; none of a type given without rows."""
    counts = {}
    for key, one in staged.types.items():
        rejected = left_out.count(key)
        if one.count > rejected:
            counts[key] = one.count - rejected
    return counts | dict.fromkeys(staged.touched - set(staged.types), 0)


@dataclass(frozen=True, slots=True)
class _Replaced:
    """Stored rows that are replaced, in the files that list them: `GoneRows`."""

    lists: tuple[RowList, ...]

    def addresses(self) -> pa.ChunkedArray:
        """Read list by list."""
        return pa.chunked_array([one.addresses() for one in self.lists], pa.uint64())

    def ids(self) -> pa.Array:
        """Read once more: they are asked for when others were faster."""
        tables = [one.read() for one in self.lists]
        return pa.concat_tables(tables).column(ID).combine_chunks()


def _gone(replaced: Sequence[RowList]) -> _Replaced | None:
    return _Replaced(tuple(replaced)) if replaced else None
