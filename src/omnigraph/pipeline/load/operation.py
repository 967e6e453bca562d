"""A load on Spark: input of any size becomes one validated, atomic commit, or nothing.

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
from omnigraph.pipeline.load.check.violations import RejectedRows, by_fragment
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.frames import LoadInput
from omnigraph.pipeline.load.stage.stage_input import Staged, stage_input, write_down
from omnigraph.pipeline.load.stage.staged_types import delete_files, forget, joined
from omnigraph.pipeline.spark.tasks import TaskRunner
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.load.operation import Accepted, LoadOptions, load_result
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Once, require_not_loaded
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.publish.staging import TableEffect, commit_rows
from omnigraph.write.recovery.intents import WriterKind
from omnigraph.write.rules.violations import SHOWN

Rewritten = Mapping[str, Mapping[int, WrittenRows]]
"""Fragments that were written again, by type key and by the number of the first writing."""


@dataclass(slots=True)
class SparkLoad(Change[LoadResult]):
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
    commit: PendingCommit = field(init=False)
    _begun: float = field(default_factory=monotonic)
    _base: Base | None = None
    _area: StagingArea | None = None
    _staged: Staged | None = None
    _checked: list[Checked] = field(default_factory=list)
    _rewritten: list[Rewritten] = field(default_factory=list)

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
        require_not_loaded(txn, self.once)
        files.begin(base.snapshot.tables, base)
        staged = self._stage(base, self._area)
        files.name({key: found.files for key, found in staged.types.items()}, base)
        return True

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
            self.notes["embedding"] = staged.embedding
        return staged

    def check(self, txn: WriteTxn) -> None:
        """Leave out what is wrong, or refuse it; and note what that depends on."""
        staged = self._done
        checked = check_staged(staged, txn.base, self.options, self.runner)
        self._checked.append(checked)
        for claim in claims_of(
            staged.types,
            checked.found.directories,
            mode=self.options.mode,
            touched=staged.touched,
            base=txn.base,
        ):
            txn.reads.claim(claim)

    def stage(self, txn: WriteTxn) -> Effects:
        """Write the fragments again that hold rows that were left out, and commit all."""
        staged, checked = self._done, self._checked[-1]
        rewritten = rewrite_left_out(staged, checked.left_out, self.runner)
        self._rewritten.append(rewritten)
        txn.files.name(
            {key: joined(some.values()).files for key, some in rewritten.items()}, txn.base
        )
        return tuple(self._effects(txn, checked, rewritten))

    def _effects(self, txn: WriteTxn, checked: Checked, rewritten: Rewritten) -> list[TableEffect]:
        """What happens to each type that the input says something about."""
        staged, replaces = self._done, self.options.mode == "overwrite"
        effects: list[TableEffect] = []
        for key in sorted(staged.touched):
            one = staged.types.get(key)
            written = joined(resolved(one, rewritten.get(key, {})) if one is not None else ())
            # A type whose every row was left out is left alone.
            if written.count or (replaces and not (one is not None and one.count)):
                gone = _gone(staged.job.area, checked.found.matches.get(key, []))
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
                self._base, {(one.type_key, name) for one in effects for name in one.written.files}
            )
        return load_result(
            self.options,
            written,
            self.actor,
            self._accepted,
            work=self._work(written.effects),
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
            "spark",
        )

    def _work(self, effects: Effects) -> BulkWork:
        rows = [some for one in self._done.types.values() for some in one.rows]
        parts = [effect.written for effect in effects] or [one.written for one in rows]
        log_file = self.runner.engine.log_file
        return BulkWork(
            sum(len(part.fragments) for part in parts),
            sum(one.size for one in rows),
            dict(self.runner.seconds),
            None if log_file is None else str(log_file),
        )


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
    return pa.concat_tables(area.read_table(name) for name in names).select([ID, ROW_ADDRESS])
