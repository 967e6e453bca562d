"""Sifted blocks: a split read piece by piece, and each piece sifted.

Owns the numbering of lines and rows within a split. The same split gives the same blocks
whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from omnigraph.embed.protocol import Embedder
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.input.csv_records import Records
from omnigraph.pipeline.input.line_blocks import LineBlock, line_blocks
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.input.table_blocks import TableBlock, table_blocks
from omnigraph.pipeline.load.stage.cells import typed_rows
from omnigraph.write.change.type_batch import EntityType
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.load.rejects import Reject, rejects_of_lines, rejects_of_rows
from omnigraph.write.load.sifting import SiftedBatch, in_order, sift_lines, sift_table, sift_values
from omnigraph.write.rules.violations import Violation


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


def sifted_blocks(split: Split, catalog: Catalog, embedder: Embedder) -> Iterator[SiftedBlock]:
    """The rows of a split, block by block."""
    if split.file.format == "jsonl":
        for block in line_blocks(split):
            yield _lines(split, block, catalog, embedder)
        return
    type_ = find_frame_type(split.file.type_name or "", catalog)
    for rows in table_blocks(split):
        yield _rows(split, rows, type_, embedder)


def _lines(split: Split, block: LineBlock, catalog: Catalog, embedder: Embedder) -> SiftedBlock:
    source = NdjsonSource(split.file.name, block.data, may_be_marked=False)
    sifted = sift_values(sift_lines([source], catalog), embedder)

    def explain(violations: Sequence[Violation]) -> Iterator[Reject]:
        for reject in rejects_of_lines(violations, [source], block.offset):
            yield replace(reject, line=block.first_line + reject.line)

    lines = block.first_line + block.lines
    return SiftedBlock(sifted.batches, sifted.violations, lines, explain)


def _rows(split: Split, block: TableBlock, type_: EntityType, embedder: Embedder) -> SiftedBlock:
    name = split.file.name or ""
    typed = typed_rows(name, type_, block)
    sifted = sift_table(name, type_, typed.table, numbers=typed.numbers)
    sifted = sift_values(sifted, embedder)
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
