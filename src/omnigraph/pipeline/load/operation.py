"""A load on Spark: input of any size becomes one validated, atomic commit, or nothing.

Owns the stages and what they hand to each other: split, stage, check, resolve, hand over. The
one door publishes; this only tells it which files to publish, and what that depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, ClassVar, Self

import pyarrow as pa

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.manifest.branch_state import find_commit
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.splits import TARGET_BYTES, Split, pack
from omnigraph.pipeline.load.check.dependencies import claims_of
from omnigraph.pipeline.load.check.explain import (
    Explained,
    ExplainJob,
    explain,
    first_lines,
    late_rows,
)
from omnigraph.pipeline.load.check.refusal import refusal
from omnigraph.pipeline.load.check.rewrite import resolved, rewrite, rewrites
from omnigraph.pipeline.load.check.set_rules import CheckRound, SetRules
from omnigraph.pipeline.load.check.violations import EVERY, RejectedRows, RuleViolations
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.cutting import cut_inputs
from omnigraph.pipeline.load.stage.decode import stage
from omnigraph.pipeline.load.stage.frames import UnstagedInput
from omnigraph.pipeline.load.stage.messages import SplitGroup, StagedTask, StageJob
from omnigraph.pipeline.load.stage.staged_types import (
    StagedType,
    delete_files,
    forget,
    joined,
    staged_types,
)
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.progress import Stages
from omnigraph.pipeline.spark.tasks import run_tasks, spark_errors
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.change.protocol import Change, Effects, WriteTxn, Written
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.change.table_effect import TableEffect
from omnigraph.write.change.type_batch import type_key
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.load.operation import load_result
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.load.rejects import copy_rejects, too_many
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.run_ids import require_first_run
from omnigraph.write.publish.staging import commit_rows
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.rules.violations import SHOWN

# A split of fewer bytes is more trouble than it is worth.
LEAST_BYTES = 2 << 20
# About how much larger the values of a file are than the file.
_PACKED = {"parquet": 2}


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging has made, for one schema."""

    job: StageJob
    splits: tuple[Split, ...]
    tasks: tuple[StagedTask, ...]
    types: Mapping[str, StagedType]

    @property
    def touched(self) -> frozenset[str]:
        """The types that the input says something about."""
        rejecting = {found.number for task in self.tasks for found in task.splits if found.codes}
        tables = [
            (split.number, type_key(find_frame_type(split.file.type_name, self.job.catalog)))
            for split in self.splits
            if split.file.type_name is not None
        ]
        # A table without rows says that there are none; one with wrong rows only says nothing.
        wrong = {key for number, key in tables if number in rejecting}
        return frozenset([*self.types, *({key for _, key in tables} - wrong)])

    @property
    def codes(self) -> dict[str, int]:
        """How many rows were rejected, by code."""
        counts: dict[str, int] = {}
        for found in (split for task in self.tasks for split in task.splits):
            for code, count in found.codes.items():
                counts[code] = counts.get(code, 0) + count
        return counts

    def first_lines(self) -> dict[int, int]:
        """How many lines of its file stand before each split."""
        lines = {found.number: found.lines for task in self.tasks for found in task.splits}
        return first_lines(self.splits, lines)


@dataclass(slots=True)
class SparkLoad(Change[LoadResult]):
    """One load; what is staged stays good for as long as the schema does.

    ``unwritten`` is input that becomes files first. ``once`` is asked before anything is done,
    and raises `AlreadyDone` when it has been done before. As a context it leaves nothing behind
    but what is published.
    """

    kind: ClassVar[WriterKind] = "Load"

    files: Sequence[InputFile]
    options: LoadOptions
    engine: SparkEngine
    stages: Stages
    embedding: EmbedderConfig
    actor: str | None = None
    unwritten: Sequence[UnstagedInput] = ()
    once: Callable[[WriteTxn], None] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    commit: PendingCommit = field(init=False)
    _begun: float = field(default_factory=monotonic)
    _base: Base | None = None
    _area: StagingArea | None = None
    _staged: Staged | None = None
    _checked: CheckRound | None = None
    _rewritten: list[tuple[str, WrittenRows]] = field(default_factory=list)
    _left_out: RejectedRows = field(default_factory=RejectedRows)
    _seconds: dict[str, float] = field(default_factory=dict)
    _rejects_file: str | None = None

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
        self._base, self._area = base, StagingArea(base.root, files.operation_id)
        require_first_run(txn, self.options.run_id)
        if self.once is not None:
            self.once(txn)
        files.begin(base.snapshot.tables, base)
        staged = self._stage(base, self._area)
        files.name({key: found.files for key, found in staged.types.items()}, base)
        return True

    def check(self, txn: WriteTxn) -> None:
        """Leave out what is wrong, or refuse it; and note what that depends on."""
        staged = self._done
        self._checked = self._look(txn.base, staged)
        for claim in claims_of(
            staged.types,
            self._checked.directories,
            mode=self.options.mode,
            touched=staged.touched,
            base=txn.base,
        ):
            txn.reads.claim(claim)

    @property
    def _done(self) -> Staged:
        if self._staged is None:
            raise AssertionError("a load is staged before it is checked")
        return self._staged

    # -- staging ---------------------------------------------------------------------

    def _stage(self, base: Base, area: StagingArea) -> Staged:
        if self._staged is not None and self._staged.job.catalog is base.catalog:
            return self._staged
        self._write_down(area)
        target = self._split_bytes()
        splits = tuple(cut_inputs(self.files, self._run, target))
        job = StageJob(base.catalog, _tables(base), area, self.embedding)
        shown = SHOWN if self.options.on_error == "fail" else 0
        groups = [SplitGroup(job, group, shown) for group in pack(splits, target)]
        tasks = tuple(self._run("stage", stage, groups))
        self._staged = Staged(job, splits, tasks, staged_types(tasks, base))
        self._note_embedding(tasks)
        return self._staged

    def _write_down(self, area: StagingArea) -> None:
        """Turn frames and lines into files, once: some can be read only once."""
        if not self.unwritten:
            return
        with (
            self._timed("frames"),
            self.stages.stage("frames"),
            spark_errors(self.engine),
        ):
            written = [file for one in self.unwritten for file in one.write(area)]
        self.files, self.unwritten = [*self.files, *written], ()

    def _split_bytes(self) -> int:
        """Small enough that every core has something to do, and not smaller."""
        weight = sum(file.size * _PACKED.get(file.format, 1) for file in self.files)
        share = weight // max(2 * self.engine.cores, 1)
        return max(LEAST_BYTES, min(TARGET_BYTES, share))

    def _note_embedding(self, tasks: Sequence[StagedTask]) -> None:
        used = [task.embedding for task in tasks if task.embedding is not None]
        if used:
            self.notes["embedding"] = dict(used[0])

    # -- checking --------------------------------------------------------------------

    def _look(self, base: Base, staged: Staged) -> CheckRound:
        """Look until nothing is wrong, or stop at the first thing that is."""
        fails = self.options.on_error == "fail"
        if fails and staged.codes:
            raise refusal(self._explained(staged, RejectedRows()), staged.codes)
        self._left_out = RejectedRows()
        shown = SHOWN if fails else EVERY
        rules = SetRules(
            self._run,
            staged.job.area,
            base,
            staged.types,
            self.options.mode,
            staged.touched,
            shown,
        )
        while True:
            found = rules.look(self._left_out)
            if not found.verdicts:
                break
            self._refuse(staged, found.verdicts, fails=fails)
            self._left_out.reject(staged.job.area, found.verdicts)
        self._list_rejects(staged)
        return found

    def _refuse(self, staged: Staged, verdicts: Sequence[RuleViolations], *, fails: bool) -> None:
        """Stop for what cannot be skipped, or must not be."""
        area = staged.job.area
        strays = [verdict for verdict in verdicts if verdict.strays]
        if strays and not fails:
            raise refusal([], _counts(strays), strays, area)
        if not fails:
            return
        blamed = RejectedRows()
        blamed.reject(area, (verdict for verdict in verdicts if not verdict.strays))
        raise refusal(self._explained(staged, blamed), _counts(verdicts), verdicts, area)

    def _explained(self, staged: Staged, left_out: RejectedRows) -> list[Explained]:
        late = late_rows(left_out, staged.types)
        early = {found.number for task in staged.tasks for found in task.splits if found.codes}
        before = staged.first_lines()
        jobs = [
            ExplainJob(staged.job, split, before[split.number], late.get(split.number, {}))
            for split in staged.splits
            if split.number in late or split.number in early
        ]
        return self._run("explain", explain, jobs)

    def _list_rejects(self, staged: Staged) -> None:
        """Write down what was left out; too much is an error, and listed all the same."""
        codes = self._codes(staged)
        if not codes:
            return
        limit = self.options.max_rejects
        bound = limit is not None and sum(codes.values()) > limit
        if self.options.rejects is None and not bound:
            return
        explained = self._explained(staged, self._left_out)
        if self.options.rejects is not None:
            area = staged.job.area
            texts: Iterator[bytes] = (area.read_bytes(found.file) for found in explained)
            self._rejects_file = str(copy_rejects(self.options.rejects, area.operation_id, texts))
        if limit is not None and bound:
            raise too_many(limit, codes, [one for found in explained for one in found.first])

    def _codes(self, staged: Staged) -> dict[str, int]:
        counts = dict(staged.codes)
        for code, count in self._left_out.counts().items():
            counts[code] = counts.get(code, 0) + count
        return dict(sorted(counts.items()))

    # -- resolving -------------------------------------------------------------------

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the files again that hold rows that were left out, and commit all."""
        base, files = txn.base, txn.files
        staged, found = self._done, self._checked
        if found is None:
            raise AssertionError("a load is checked before it is committed")
        jobs = [
            (key, job)
            for key, one in staged.types.items()
            for job in rewrites(one, self._left_out.rows(key))
        ]
        made = self._run("resolve", rewrite, [job for _, job in jobs])
        rewritten: dict[str, dict[int, WrittenRows]] = {}
        for (key, job), written in zip(jobs, made, strict=True):
            rewritten.setdefault(key, {})[job.part.number] = written
            self._rewritten.append((key, written))
        files.name({key: joined(some.values()).files for key, some in rewritten.items()}, base)
        replaces = self.options.mode == "overwrite"
        effects: list[TableEffect] = []
        for key in sorted(staged.touched):
            one = staged.types.get(key)
            written = joined(resolved(one, rewritten.get(key, {})) if one is not None else ())
            if written.count or (replaces and not (one is not None and one.count)):
                gone = _gone(staged.job.area, found.matches.get(key, []))
                table, stamp = base.table(key), files.stamp()
                effects.append(commit_rows(table, written, stamp, gone, replaces_all=replaces))
        return tuple(effects)

    # -- the end ---------------------------------------------------------------------

    def discard(self, txn: WriteTxn) -> None:
        """Delete all that was staged; nobody needs the intent then."""
        # Whatever a store has answered before: what the branch shows is not to be touched.
        if find_commit(txn.base.view, self.commit.id) is None:
            self._delete(txn.base)
        txn.files.settle()

    def _delete(self, base: Base, effects: Effects = ()) -> None:
        """Delete what was staged, but for the files that are published."""
        kept = {(effect.type_key, name) for effect in effects for name in effect.written.files}
        types = {} if self._staged is None else self._staged.types
        names = [(key, name) for key, one in types.items() for name in one.files]
        names += [(key, name) for key, rows in self._rewritten for name in rows.files]
        delete_files(base, (name for name in names if name not in kept))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._area is not None:
            self._area.remove()
        if self._staged is not None:
            forget(self._staged.types.values())

    def result(self, written: Written) -> LoadResult:
        """How many rows of each type were loaded, what was left out, and what it took."""
        if written.repeats:
            return load_result(self.options, written, self.actor, engine="spark")
        self._seconds["publish"] = monotonic() - self._begun - sum(self._seconds.values())
        staged = self._done
        if self._base is not None and (self._rewritten or self.options.dry_run):
            self._delete(self._base, written.effects)
        counts: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
        for key, one in staged.types.items():
            rejected = len(self._left_out.addresses(key, with_superseded=False))
            if one.count > rejected:
                counts[one.type.kind][one.type.name] = one.count - rejected
        for key in staged.touched - set(staged.types):
            kind, name = key.split(":", 1)
            counts[kind][name] = 0
        rows = [some for one in staged.types.values() for some in one.rows]
        parts = [effect.written for effect in written.effects] or [one.written for one in rows]
        fragments, size = (sum(len(one.fragments) for one in parts), sum(one.size for one in rows))
        log_file = None if self.engine.log_file is None else str(self.engine.log_file)
        return load_result(
            self.options,
            written,
            self.actor,
            counts,
            rejects=self._codes(staged),
            rejects_file=self._rejects_file,
            engine="spark",
            work=BulkWork(fragments, size, dict(self._seconds), log_file),
        )

    # -- running ---------------------------------------------------------------------

    def _run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        if not items:
            return []
        with self._timed(title), self.stages.stage(title, len(items)):
            return run_tasks(self.engine, function, items)

    @contextmanager
    def _timed(self, title: str) -> Iterator[None]:
        begun = monotonic()
        try:
            yield
        finally:
            self._seconds[title] = self._seconds.get(title, 0.0) + monotonic() - begun


def _tables(base: Base) -> dict[str, Any]:
    return {key: base.table(key).table for key in base.snapshot.tables}


def _counts(verdicts: Sequence[RuleViolations]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.rule.code] = counts.get(verdict.rule.code, 0) + verdict.count
    return counts


def _gone(area: StagingArea, names: Sequence[str]) -> pa.Table | None:
    """The stored rows that are replaced, with their addresses."""
    if not names:
        return None
    return pa.concat_tables(area.read_table(name) for name in names).select(["id", ROW_ADDRESS])
