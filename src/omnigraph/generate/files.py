"""Files: the rows of one type written in parts, with the broken rows in their places.

Owns opening, compressing and closing, and which line a planted row ends up on. Holds one chunk
of rows at a time, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.generate.bad_rows import BadRows, BrokenRow, Format
from omnigraph.generate.entities import EntityRows
from omnigraph.generate.lines import csv_header, csv_lines, json_lines

Compression = Literal["gzip", "zstd"]
SUFFIXES: dict[Compression, str] = {"gzip": ".gz", "zstd": ".zst"}


@dataclass(frozen=True, slots=True)
class GeneratedFile:
    """One file: ``rows`` are the good ones."""

    path: Path
    type_name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Planted:
    """One broken row; ``line`` is its line in the file (its row, in Parquet), counted from 1."""

    path: Path
    line: int
    type_name: str
    kind: str
    rule: str


@dataclass(frozen=True, slots=True)
class Part:
    """The rows ``start`` to below ``stop`` of a type, and the file they go to."""

    rows: EntityRows
    start: int
    stop: int
    path: Path

    def chunks(self, size: int) -> Iterator[tuple[int, int]]:
        """The ranges of rows to be made at once."""
        for start in range(self.start, self.stop, size):
            yield start, min(start + size, self.stop)

    def make(self, start: int, stop: int) -> pa.Table:
        """The good rows of a range."""
        return self.rows.make(np.arange(start, stop, dtype=np.int64))


def write_part(
    part: Part,
    format_: Format,
    compression: Compression | None,
    dirt: BadRows | None,
    chunk_rows: int,
) -> tuple[GeneratedFile, list[Planted]]:
    """Write one file; returns what it is, and what was planted in it."""
    part.path.parent.mkdir(parents=True, exist_ok=True)
    if format_ == "parquet":
        planted = _write_parquet(part, dirt, chunk_rows)
    else:
        planted = _write_text(part, format_, compression, dirt, chunk_rows)
    size = part.path.stat().st_size
    return GeneratedFile(part.path, part.rows.name, part.stop - part.start, size), planted


def _write_text(
    part: Part,
    format_: Format,
    compression: Compression | None,
    dirt: BadRows | None,
    chunk_rows: int,
) -> list[Planted]:
    planted: list[Planted] = []
    header = 0
    with pa.output_stream(str(part.path), compression=compression) as stream:
        if format_ == "csv":
            header = 1
            stream.write(csv_header(part.make(0, 0).column_names).encode())
        for start, stop in part.chunks(chunk_rows):
            table = part.make(start, stop)
            if format_ == "csv":
                lines = csv_lines(table)
            else:
                lines = json_lines(part.rows.name, part.rows.kind, table)
            broken = dirt.between(start, stop) if dirt is not None else []
            texts = [row.text(format_, part.rows.kind) for row in broken]
            after = [row.after + 1 - start for row in broken]
            for piece in _interleaved(lines, after, texts):
                stream.write(piece)
            planted += _placed(part, broken, header + len(planted))
    return planted


def _interleaved(lines: pa.Array, after: Sequence[int], texts: Sequence[bytes]) -> Iterator[Any]:
    """The bytes of all lines, with further texts behind some of them."""
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)
    view = memoryview(data)
    done = 0
    for row, text in zip(after, texts, strict=True):
        end = int(ends[row])
        yield view[done:end]
        yield text
        done = end
    yield view[done : int(ends[len(lines)])]


def _write_parquet(part: Part, dirt: BadRows | None, chunk_rows: int) -> list[Planted]:
    import pyarrow.parquet as pq

    planted: list[Planted] = []
    with pq.ParquetWriter(part.path, part.make(0, 0).schema, compression="zstd") as writer:
        for start, stop in part.chunks(chunk_rows):
            table = part.make(start, stop)
            broken = dirt.between(start, stop) if dirt is not None else []
            if broken:
                table = _with_broken(table, start, broken)
            writer.write_table(table)
            planted += _placed(part, broken, len(planted))
    return planted


def _with_broken(table: pa.Table, start: int, broken: Sequence[BrokenRow]) -> pa.Table:
    others = pa.Table.from_pylist([row.values for row in broken], schema=table.schema)
    after = np.array([row.after - start for row in broken])
    order = np.argsort(np.concatenate([np.arange(table.num_rows), after]), kind="stable")
    return pa.concat_tables([table, others]).take(pa.array(order))


def _placed(part: Part, broken: Sequence[BrokenRow], before: int) -> list[Planted]:
    """Where broken rows ended up, behind so many lines that are no good rows."""
    return [
        Planted(
            part.path,
            row.after - part.start + 1 + before + number,
            row.type_name,
            row.kind.name,
            row.kind.rule,
        )
        for number, row in enumerate(broken, start=1)
    ]
