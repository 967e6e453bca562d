"""A load on Spark: input of any size becomes one validated, atomic commit, or nothing.

Owns the order of its steps and what becomes of files that are not published: stage, check,
resolve, hand over. The one door publishes; this only tells it which files to publish, and what
that depends on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from omnigraph.pipeline.load.check.check_staged import Checked, check_staged
from omnigraph.pipeline.load.check.dependencies import claims_of
from omnigraph.pipeline.load.check.rewrite import resolved, rewrite, rewrites
from omnigraph.pipeline.load.check.violations import RejectedRows, by_fragment
from omnigraph.pipeline.load.given import LoadInput
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.stage_input import Staged, stage_input, write_down
from omnigraph.pipeline.load.stage.staged_types import delete_files, forget, joined
from omnigraph.pipeline.spark.engine import require_shared_storage
from omnigraph.pipeline.spark.tasks import TaskRunner
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.change.staged_changes import StagedChanges, StagedFiles
from omnigraph.write.load.changes import LoadMode
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.load.outcome import Accepted, load_result, repeated_result
from omnigraph.write.mutation.operation import noted_commit
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import WriteOutcome, Writer, WriteTxn
from omnigraph.write.publish.run_ids import Once, RunAlreadyLoaded, require_first_run
from omnigraph.write.rules.violations import SHOWN

Rewritten = Mapping[str, Mapping[int, WrittenRows]]
"""Fragments that were written again, by type key and by the number of the first writing."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One preparation: what was checked, written again, and is to be published."""

    checked: Checked
    rewritten: Rewritten
    tables: tuple[StagedFiles, ...]


@dataclass(slots=True)
class SparkLoad:
    """One load; ``once`` tells it apart from all others."""

    given: LoadInput
    options: LoadOptions
    runner: TaskRunner
    operation_id: str
    embedding: EmbedderConfig
    once: tuple[Once, ...] = ()
    noted: dict[str, Any] = field(default_factory=lambda: {"operation": "load"})
    _staged: Staged | None = None
    _attempts: list[Attempt] = field(default_factory=list)

    def run(self, writer: Writer, actor: str | None) -> LoadResult:
        """Publish it as one commit; an empty load is one, too."""
        require_shared_storage(self.runner.engine, str(writer.root))
        options = self.options
        self.noted |= options.notes
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
            return repeated_result(writer, actor, options, done.commit, engine="spark")
        finally:
            area.remove()
            if self._staged is not None:
                forget(self._staged.types.values())
        seconds = self.runner.seconds
        seconds["publish"] = monotonic() - begun - sum(seconds.values())
        if options.dry_run or any(one.rewritten for one in self._attempts):
            self._discard(writer)
        return self._result(writer, actor, written)

    def prepare(self, txn: WriteTxn, area: StagingArea) -> StagedChanges:
        """Stage once for a schema; check, and tell the door what to publish."""
        try:
            require_first_run(txn.base, txn.reads, (*self.options.once, *self.once))
            txn.announced.begin_bulk("Load", txn.base.snapshot.tables, txn.base)
            staged = self._stage(txn.base, area)
            txn.announced.name_files(
                {key: found.files for key, found in staged.types.items()}, txn.base
            )
            checked = check_staged(staged, txn.base, self.options, self.runner)
            attempt = self._resolve(staged, checked)
            txn.announced.name_files(
                {key: joined(some.values()).files for key, some in attempt.rewritten.items()},
                txn.base,
            )
        except (OmniGraphError, RunAlreadyLoaded):
            # Told before anything could be published: nobody needs the files any more.
            self._discard_files(txn)
            txn.announced.settle()
            raise
        for claim in claims_of(
            staged.types,
            checked.found.directories,
            mode=self.options.mode,
            touched=staged.touched,
            base=txn.base,
        ):
            txn.reads.claim(claim)
        return StagedChanges(attempt.tables, repeatable=self.options.mode != "overwrite")

    def _stage(self, base: Base, area: StagingArea) -> Staged:
        before = self._staged
        if before is not None and before.job.catalog is base.catalog:
            return before
        files = write_down(self.given, area, self.runner) if before is None else before.files
        shown = SHOWN if self.options.on_error == "fail" else 0
        self._staged = staged = stage_input(
            files, base, area, self.embedding, self.runner, shown=shown
        )
        if staged.embedding is not None:
            self.noted["embedding"] = staged.embedding
        return staged

    def _resolve(self, staged: Staged, checked: Checked) -> Attempt:
        rewritten = rewrite_left_out(staged, checked.left_out, self.runner)
        tables = tables_to_publish(staged, checked, rewritten, self.options.mode)
        self._attempts.append(Attempt(checked, rewritten, tables))
        return self._attempts[-1]

    # -- the end ---------------------------------------------------------------------

    def _discard(self, writer: Writer) -> None:
        """Delete what was written in vain: all of a dry run, else what is not published."""
        branch = MAIN if is_missing(writer.manifest, writer.branch) else writer.branch
        tables = () if self.options.dry_run else self._attempts[-1].tables
        kept = {(table.type_key, file) for table in tables for file in table.written.files}
        self._delete(Base.of(writer.root, writer.manifest.view(branch)), kept)

    def _discard_files(self, txn: WriteTxn) -> None:
        # Whatever a store has answered before: what the branch shows is not to be touched.
        if find_commit(txn.base.view, txn.announced.commit.id) is None:
            self._delete(txn.base)

    def _delete(self, base: Base, kept: Collection[tuple[str, str]] = frozenset()) -> None:
        """Delete what was staged, but for the files that are published."""
        types = {} if self._staged is None else self._staged.types
        names = [(key, name) for key, one in types.items() for name in one.files]
        names += [
            (key, name)
            for attempt in self._attempts
            for key, some in attempt.rewritten.items()
            for name in joined(some.values()).files
        ]
        delete_files(base, (name for name in names if name not in kept))

    def _result(self, writer: Writer, actor: str | None, written: WriteOutcome) -> LoadResult:
        staged, last = self._staged, self._attempts[-1]
        if staged is None:
            raise AssertionError("a load is prepared before it is published")
        listed = [one.checked.rejects_file for one in self._attempts]
        accepted = Accepted(
            accepted_rows(staged, last.checked.left_out),
            last.checked.codes,
            next((file for file in reversed(listed) if file is not None), None),
        )
        log_file = self.runner.engine.log_file
        work = BulkWork(
            sum(len(table.written.fragments) for table in last.tables),
            sum(rows.size for one in staged.types.values() for rows in one.rows),
            dict(self.runner.seconds),
            None if log_file is None else str(log_file),
        )
        return load_result(writer, actor, self.options, written, accepted, work=work)


def rewrite_left_out(staged: Staged, left_out: RejectedRows, runner: TaskRunner) -> Rewritten:
    """Write the fragments again that hold rows that were left out."""
    jobs = [
        (key, job)
        for key, one in staged.types.items()
        for job in rewrites(one, by_fragment(left_out.addresses(key)))
    ]
    made = runner.run("resolve", rewrite, [job for _, job in jobs])
    rewritten: dict[str, dict[int, WrittenRows]] = {}
    for (key, job), written in zip(jobs, made, strict=True):
        rewritten.setdefault(key, {})[job.part.number] = written
    return rewritten


def tables_to_publish(
    staged: Staged, checked: Checked, rewritten: Rewritten, mode: LoadMode
) -> tuple[StagedFiles, ...]:
    """What happens to each type that the input says something about."""
    replaces = mode == "overwrite"
    tables = []
    for key in sorted(staged.touched):
        one = staged.types.get(key)
        written = joined(resolved(one, rewritten.get(key, {})) if one is not None else ())
        # A type whose every row was left out is left alone.
        if written.count or (replaces and not (one is not None and one.count)):
            gone = _gone(staged.job.area, checked.found.matches.get(key, []))
            tables.append(StagedFiles(key, written, gone, replaces_all=replaces))
    return tuple(tables)


def accepted_rows(staged: Staged, left_out: RejectedRows) -> dict[str, int]:
    """How many rows of each type were not rejected; none of a type given without rows."""
    counts = {}
    for key, one in staged.types.items():
        rejected = len(left_out.addresses(key, with_superseded=False))
        if one.count > rejected:
            counts[key] = one.count - rejected
    return counts | dict.fromkeys(staged.touched - set(staged.types), 0)


def _gone(area: StagingArea, names: Sequence[str]) -> pa.Table | None:
    """The stored rows that are replaced, with their addresses."""
    if not names:
        return None
    return pa.concat_tables(area.read_table(name) for name in names).select(["id", ROW_ADDRESS])
