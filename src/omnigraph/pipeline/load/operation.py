"""A load on Spark: input of any size becomes one validated, atomic commit, or nothing.

Owns the stages and what they hand to each other: split, stage, check, resolve, hand over. The
one door publishes; this only tells it which files to publish, and what that depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import pyarrow as pa

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import OmniGraphError
from omnigraph.manifest.branch_state import find_commit
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.entries import MAIN
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
from omnigraph.pipeline.spark.engine import SparkEngine, require_shared_storage
from omnigraph.pipeline.spark.progress import Stages
from omnigraph.pipeline.spark.tasks import run_tasks, spark_errors
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.change.staged_changes import StagedChanges, StagedFiles
from omnigraph.write.change.type_batch import type_key
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.load.operation import RunAlreadyLoaded, require_first_run
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.load.rejects import copy_rejects, too_many
from omnigraph.write.mutation.operation import noted_commit
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import WriteOutcome, Writer, WriteTxn
from omnigraph.write.publish.run_ids import RUN_ID
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
class SparkLoad:
    """One load; what is staged stays good for as long as the schema does.

    ``unwritten`` is input that becomes files first. ``once`` is asked before anything is done,
    and raises `RunIsDone` when it has been done before.
    """

    files: Sequence[InputFile]
    options: LoadOptions
    engine: SparkEngine
    stages: Stages
    operation_id: str
    embedding: EmbedderConfig
    unwritten: Sequence[UnstagedInput] = ()
    once: Callable[[WriteTxn], None] | None = None
    noted: dict[str, Any] = field(default_factory=lambda: {"operation": "load"})
    _staged: Staged | None = None
    _rewritten: list[tuple[str, WrittenRows]] = field(default_factory=list)
    _kept: frozenset[tuple[str, str]] = frozenset()
    _left_out: RejectedRows = field(default_factory=RejectedRows)
    _seconds: dict[str, float] = field(default_factory=dict)
    _rejects_file: str | None = None
    _fragments: int = 0
    _bytes: int = 0

    def run(self, writer: Writer, actor: str | None) -> LoadResult:
        """Publish it as one commit; an empty load is one, too."""
        require_shared_storage(self.engine, str(writer.root))
        options = self.options
        self.noted["mode"] = options.mode
        if options.run_id is not None:
            self.noted[RUN_ID] = options.run_id
        area = StagingArea(writer.root, self.operation_id)
        begun = monotonic()
        try:
            written = writer.run(
                partial(self.prepare, area=area),
                noted_commit(actor, self.noted),
                even_if_empty=True,
                dry_run=options.dry_run,
            )
        except RunAlreadyLoaded as done:
            return self._repeated(writer, actor, done)
        finally:
            area.remove()
            if self._staged is not None:
                forget(self._staged.types.values())
        self._seconds["publish"] = monotonic() - begun - sum(self._seconds.values())
        if options.dry_run or self._rewritten:
            self._discard(writer, frozenset() if options.dry_run else self._kept)
        return self._result(writer, actor, written)

    def prepare(self, txn: WriteTxn, area: StagingArea) -> StagedChanges:
        """Stage once for a schema; check, and tell the door what to publish."""
        try:
            require_first_run(txn, self.options.run_id)
            if self.once is not None:
                self.once(txn)
            txn.announced.begin_bulk("Load", txn.base.snapshot.tables, txn.base)
            staged = self._stage(txn.base, area)
            txn.announced.name_files(
                {key: found.files for key, found in staged.types.items()}, txn.base
            )
            found = self._check(txn, staged)
            tables = self._resolve(txn, staged, found)
        except (OmniGraphError, RunAlreadyLoaded):
            # Told before anything could be published: nobody needs the files any more.
            self._discard_files(txn)
            txn.announced.settle()
            raise
        for claim in claims_of(
            staged.types,
            found.directories,
            mode=self.options.mode,
            touched=staged.touched,
            base=txn.base,
        ):
            txn.reads.claim(claim)
        return StagedChanges(tables, repeatable=self.options.mode != "overwrite")

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
            self.noted["embedding"] = dict(used[0])

    # -- checking --------------------------------------------------------------------

    def _check(self, txn: WriteTxn, staged: Staged) -> CheckRound:
        """Look until nothing is wrong, or stop at the first thing that is."""
        fails = self.options.on_error == "fail"
        if fails and staged.codes:
            raise refusal(self._explained(staged, RejectedRows()), staged.codes)
        self._left_out = RejectedRows()
        shown = SHOWN if fails else EVERY
        rules = SetRules(
            self._run,
            staged.job.area,
            txn.base,
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
            self._rejects_file = str(copy_rejects(self.options.rejects, self.operation_id, texts))
        if limit is not None and bound:
            raise too_many(limit, codes, [one for found in explained for one in found.first])

    def _codes(self, staged: Staged) -> dict[str, int]:
        counts = dict(staged.codes)
        for code, count in self._left_out.counts().items():
            counts[code] = counts.get(code, 0) + count
        return dict(sorted(counts.items()))

    # -- resolving -------------------------------------------------------------------

    def _resolve(self, txn: WriteTxn, staged: Staged, found: CheckRound) -> tuple[StagedFiles, ...]:
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
        replaces = self.options.mode == "overwrite"
        tables = []
        for key in sorted(staged.touched):
            one = staged.types.get(key)
            files = resolved(one, rewritten.get(key, {})) if one is not None else ()
            written = joined(files)
            if written.count or (replaces and not (one is not None and one.count)):
                gone = _gone(staged.job.area, found.matches.get(key, []))
                tables.append(StagedFiles(key, written, gone, replaces_all=replaces))
        txn.announced.name_files(
            {key: joined(some.values()).files for key, some in rewritten.items()}, txn.base
        )
        self._kept = frozenset((one.type_key, file) for one in tables for file in one.written.files)
        self._fragments = sum(len(table.written.fragments) for table in tables)
        self._bytes = sum(rows.size for one in staged.types.values() for rows in one.rows)
        return tuple(tables)

    # -- the end ---------------------------------------------------------------------

    def _discard(self, writer: Writer, kept: Collection[tuple[str, str]]) -> None:
        branch = MAIN if is_missing(writer.manifest, writer.branch) else writer.branch
        self._delete(Base.of(writer.root, writer.manifest.view(branch)), kept)

    def _discard_files(self, txn: WriteTxn) -> None:
        # Whatever a store has answered before: what the branch shows is not to be touched.
        if find_commit(txn.base.view, txn.announced.commit.id) is None:
            self._delete(txn.base)

    def _delete(self, base: Base, kept: Collection[tuple[str, str]] = frozenset()) -> None:
        """Delete what was staged, but for the files that are published."""
        types = {} if self._staged is None else self._staged.types
        names = [(key, name) for key, one in types.items() for name in one.files]
        names += [(key, name) for key, rows in self._rewritten for name in rows.files]
        delete_files(base, (name for name in names if name not in kept))

    def _result(self, writer: Writer, actor: str | None, written: WriteOutcome) -> LoadResult:
        staged = self._staged
        if staged is None:
            raise AssertionError("a load is prepared before it is published")
        counts: dict[str, dict[str, int]] = {"node": {}, "edge": {}}
        for key, one in staged.types.items():
            rejected = len(self._left_out.addresses(key, with_superseded=False))
            if one.count > rejected:
                counts[one.type.kind][one.type.name] = one.count - rejected
        for key in staged.touched - set(staged.types):
            kind, name = key.split(":", 1)
            counts[kind][name] = 0
        return LoadResult(
            writer.branch,
            self.options.mode,
            counts["node"],
            counts["edge"],
            written.commit,
            actor,
            writer.fork_from,
            written.branch_created,
            rejects=self._codes(staged),
            rejects_file=self._rejects_file,
            engine="spark",
            is_dry_run=self.options.dry_run,
            work=BulkWork(self._fragments, self._bytes, dict(self._seconds), self._log()),
        )

    def _repeated(self, writer: Writer, actor: str | None, done: RunAlreadyLoaded) -> LoadResult:
        mode = self.options.mode
        return LoadResult(
            writer.branch, mode, {}, {}, done.commit, actor, engine="spark", repeats_run=True
        )

    def _log(self) -> str | None:
        return None if self.engine.log_file is None else str(self.engine.log_file)

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
