"""Staging: splits of the input decoded, checked row by row and written as fragments.

Owns what a task does. It reads its splits itself, so that rows never pass through the JVM,
and what it writes belongs to no version of a table until the driver says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.protocol import Embedder
from omnigraph.embed.providers import embedder_of
from omnigraph.pipeline.input.csv_records import Records
from omnigraph.pipeline.input.line_blocks import LineBlock, line_blocks
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.input.table_blocks import TableBlock, table_blocks
from omnigraph.pipeline.load.stage.staged_types import (
    RowOrigin,
    SplitGroup,
    StagedRows,
    StagedSplit,
    StagedTask,
    StageJob,
)
from omnigraph.storage.tables.write_rows import MAX_ROWS_PER_FILE, write_rows
from omnigraph.write.change.change_set import EntityType, type_key
from omnigraph.write.load.columns.csv_cells import misfit_text, parse_texts
from omnigraph.write.load.columns.frames import find_frame_type, known_columns
from omnigraph.write.load.columns.keyed_ends import end_nodes
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.load.patches import sift_patched, stored_in_table
from omnigraph.write.load.rejects import Reject, rejects_of_lines, rejects_of_rows
from omnigraph.write.load.sifting import (
    CheckedRows,
    SiftedBatch,
    in_order,
    sift_lines,
    sift_table,
    sift_values,
)
from omnigraph.write.rules.violations import SourceLocation, Violation

# So many bytes of one type are held until they are written.
MAX_BYTES = 96 << 20


@dataclass(frozen=True, slots=True)
class SiftedBlock:
    """Rows that are right by themselves, and what is wrong with the others.

    ``lines`` counts the lines of the split up to the end of this block; for Parquet, rows.
    Places count from the beginning of the block, the lines of rejects from that of the split.
    """

    batches: Sequence[SiftedBatch]
    violations: Sequence[Violation]
    lines: int
    explain: Callable[[Sequence[Violation]], Iterator[Reject]]

    def rejects(self) -> Iterator[Reject]:
        """The rows that were left out."""
        return self.explain(self.violations)


def sifted_blocks(split: Split, job: StageJob, embedder: Embedder) -> Iterator[SiftedBlock]:
    """The rows of a split, block by block."""
    if split.file.format == "jsonl":
        name = split.file.type_name
        rows_of = None if name is None else find_frame_type(name, job.catalog)
        for block in line_blocks(split):
            yield _lines(split, block, rows_of, job, embedder)
        return
    type_ = find_frame_type(split.file.type_name or "", job.catalog)
    ignores = split.file.csv.ignore_extra
    for rows in table_blocks(split, columns=sorted(known_columns(type_)) if ignores else None):
        yield _rows(split, rows, type_, job, embedder)


def _whole(sifted: CheckedRows, job: StageJob, embedder: Embedder) -> CheckedRows:
    """Rows with their vectors, and what patches leave as it is."""
    if not job.patches:
        return sift_values(sifted, embedder)
    return sift_patched(
        sifted, lambda type_, ids: stored_in_table(job.tables[type_key(type_)], ids), embedder
    )


def _lines(
    split: Split, block: LineBlock, rows_of: EntityType | None, job: StageJob, embedder: Embedder
) -> SiftedBlock:
    source = NdjsonSource(split.file.name, block.data, may_be_marked=False, rows_of=rows_of)
    sifted = _whole(
        sift_lines([source], job.catalog, patches=job.patches, needs_types=True), job, embedder
    )

    def explain(violations: Sequence[Violation]) -> Iterator[Reject]:
        for reject in rejects_of_lines(violations, [source], block.offset):
            yield replace(reject, line=block.first_line + reject.line)

    lines = block.first_line + block.lines
    return SiftedBlock(sifted.batches, sifted.violations, lines, explain)


def _rows(
    split: Split, block: TableBlock, type_: EntityType, job: StageJob, embedder: Embedder
) -> SiftedBlock:
    name = split.file.name or ""
    typed = typed_rows(name, type_, block)
    sifted = sift_table(
        name,
        type_,
        typed.table,
        numbers=typed.numbers,
        patches=job.patches,
        nodes=end_nodes(type_, job.catalog, needs_types=True),
    )
    sifted = _whole(sifted, job, embedder)
    records = block.records

    def explain(violations: Sequence[Violation]) -> Iterator[Reject]:
        if records is not None:
            yield from _records(violations, records)
            return
        for reject in rejects_of_rows(violations, block.table):
            yield replace(reject, line=block.first_row + reject.line)

    lines = _lines_up_to(block)
    violations = in_order([*typed.violations, *sifted.violations])
    return SiftedBlock(sifted.batches, violations, lines, explain)


def _lines_up_to(block: TableBlock) -> int:
    """The lines of a split of CSV up to the end of a block; for Parquet, its rows."""
    if block.records is None:
        return block.first_row + block.rows
    return block.records.first_line + block.records.lines


def _records(violations: Sequence[Violation], records: Records) -> Iterator[Reject]:
    """Rows of CSV as they are written; their places are the numbers of records."""
    for found in violations:
        if found.place is None:
            raise AssertionError("a row that is left out has a place")
        record = found.place.line - 1
        yield Reject(
            found.place.source,
            records.line(record) + 1,
            records.position(record),
            found.rule,
            found.text,
            records.text(record),
            found.type_key,
            found.property,
        )


@dataclass(frozen=True, slots=True)
class TypedRows:
    """Rows with typed values, the number of each in its block, and what became of the others."""

    table: pa.Table
    numbers: npt.NDArray[np.int64]
    violations: list[Violation] = field(default_factory=list)


def typed_rows(name: str, type_: EntityType, block: TableBlock) -> TypedRows:
    """The rows of a block that have values at all."""
    numbers = block.row_numbers() - block.first_row
    if block.records is None:
        return TypedRows(block.table, numbers)
    violations = [
        Violation(
            "format",
            found.message,
            type_key(type_),
            place=SourceLocation(name, found.row - block.first_row + 1),
        )
        for found in block.malformed
    ]
    table = block.table
    bad: dict[int, Violation] = {}
    for at, column in enumerate(table.column_names):
        if column not in type_.properties:
            continue
        kind = type_.properties[column].type
        texts = table.column(at).combine_chunks()
        values, wrong = parse_texts(kind, texts)
        for row in np.flatnonzero(wrong).tolist():
            said = f"{type_.name}.{column}: {misfit_text(kind, texts[row].as_py())}"
            place = SourceLocation(name, int(numbers[row]) + 1)
            bad.setdefault(row, Violation("type", said, type_key(type_), column, place=place))
        table = table.set_column(at, column, values)
    if bad:
        kept = np.delete(np.arange(table.num_rows), list(bad))
        table, numbers = table.take(pa.array(kept)), numbers[kept]
    return TypedRows(table, numbers, [*violations, *bad.values()])


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
        for block in sifted_blocks(split, group.job, embedder):
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
