"""Staging: splits of the input decoded, checked row by row and written as fragments.

Owns what a task does. It reads its splits itself, so that rows never pass through the JVM,
and what it writes belongs to no version of a table until the driver says so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa

from omnigraph.embed.providers import embedder_of
from omnigraph.pipeline.load.stage.blocks import sifted_blocks
from omnigraph.pipeline.load.stage.messages import (
    RowOrigin,
    SplitGroup,
    StagedRows,
    StagedSplit,
    StagedTask,
    StageJob,
)
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE, write_rows
from omnigraph.write.change.change_set import EntityType, type_key
from omnigraph.write.load.rejects import Reject

# So many bytes of one type are held until they are written.
MAX_BYTES = 96 << 20


@dataclass(slots=True)
class _Pending:
    """Rows of one type that wait to be written."""

    type: EntityType
    tables: list[pa.Table] = field(default_factory=list)
    runs: list[RowOrigin] = field(default_factory=list)
    rows: int = 0
    size: int = 0
    has_given_ids: bool = False

    def add(self, split: int, first: int, rows: pa.Table, *, given: bool) -> None:
        last = self.runs[-1] if self.runs else None
        if last is not None and last.split == split and last.first + last.count == first:
            self.runs[-1] = replace(last, count=last.count + rows.num_rows)
        else:
            self.runs.append(RowOrigin(split, first, rows.num_rows))
        self.tables.append(rows)
        self.rows += rows.num_rows
        self.size += rows.nbytes
        self.has_given_ids |= given


class _Writer:
    """Writes the rows of every type in files of bounded size."""

    def __init__(self, job: StageJob) -> None:
        self._job = job
        self._pending: dict[str, _Pending] = {}
        self.written: list[StagedRows] = []

    def add(
        self, type_: EntityType, split: int, first: int, rows: pa.Table, *, given: bool
    ) -> None:
        key = type_key(type_)
        while rows.num_rows:
            pending = self._pending.setdefault(key, _Pending(type_))
            some = rows.slice(0, MAX_ROWS_PER_FILE - pending.rows)
            pending.add(split, first, some, given=given)
            first += some.num_rows
            rows = rows.slice(some.num_rows)
            if pending.rows >= MAX_ROWS_PER_FILE or pending.size >= MAX_BYTES:
                self._write(key)
        while sum(pending.size for pending in self._pending.values()) > 2 * MAX_BYTES:
            self._write(max(self._pending, key=lambda name: self._pending[name].size))

    def finish(self) -> list[StagedRows]:
        for key in list(self._pending):
            self._write(key)
        return self.written

    def _write(self, key: str) -> None:
        pending = self._pending.pop(key)
        rows = pa.concat_tables(pending.tables)
        written = write_rows(self._job.tables[key], None, rows)
        self.written.append(
            StagedRows(key, written, tuple(pending.runs), rows.nbytes, pending.has_given_ids)
        )


def stage(group: SplitGroup) -> StagedTask:
    """Stage the splits of one task."""
    embedder = embedder_of(group.job.embedding)
    writer = _Writer(group.job)
    splits = []
    for split in group.splits:
        accepted: Counter[str] = Counter()
        codes: Counter[str] = Counter()
        rejects: list[Reject] = []
        lines = 0
        for block in sifted_blocks(split, group.job.catalog, embedder):
            lines = block.lines
            for sifted in block.batches:
                batch = sifted.batch
                key = type_key(batch.type)
                given = batch.fresh is not None
                writer.add(batch.type, split.number, accepted[key], batch.rows, given=given)
                accepted[key] += batch.rows.num_rows
            codes.update(violation.rule for violation in block.violations)
            rejects += islice(block.rejects(), max(0, group.shown - len(rejects)))
        splits.append(StagedSplit(split.number, lines, accepted, codes, tuple(rejects)))
    return StagedTask(tuple(splits), tuple(writer.finish()), embedder.used)
