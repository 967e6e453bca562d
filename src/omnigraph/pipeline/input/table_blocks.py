"""Table blocks: the rows of a split of CSV or Parquet as Arrow tables, many at a time.

Owns bounded reading, and which rows of CSV cannot be read at all. The values of CSV stay
text: what they mean is the business of whoever knows the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.byte_ranges import BOM, PIECE
from omnigraph.pipeline.input.csv_blocks import record_blocks
from omnigraph.pipeline.input.csv_records import Records
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.parquet_files import open_parquet
from omnigraph.pipeline.input.splits import Split
from omnigraph.write.load.csv_options import CsvOptions

ROWS = 131_072
_PARQUET_BYTES = 64 << 20
_FEWEST_ROWS = 256


class Malformed(NamedTuple):
    """A row that is not even a row: its number in the split from 0, its text, and why."""

    row: int
    text: str
    message: str


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Some rows of a split, and those among them that could not be read.

    ``first_row`` counts the rows of the split before this block, malformed ones too.
    ``records`` has, for CSV, the line, the byte and the text of each row of the block.
    """

    table: pa.Table
    first_row: int
    malformed: tuple[Malformed, ...] = ()
    records: Records | None = None

    @property
    def rows(self) -> int:
        """How many rows of the file the block stands for."""
        return int(self.table.num_rows) + len(self.malformed)

    def row_numbers(self) -> np.ndarray:
        """The numbers of the table's rows in the split, from 0: malformed ones are missing."""
        numbers = np.arange(self.first_row, self.first_row + self.rows)
        missing = [row - self.first_row for row, _, _ in self.malformed]
        return np.delete(numbers, missing) if missing else numbers


def table_blocks(
    split: Split,
    *,
    rows: int = ROWS,
    block_bytes: int = PIECE,
    columns: Sequence[str] | None = None,
) -> Iterator[TableBlock]:
    """The rows of a split in order, at least one block, so that the columns can be seen.

    A block has at most so many ``rows`` of Parquet, or about so many bytes of CSV. All
    columns of CSV are text: nothing between two commas is null, and `""` is an empty text.
    ``columns`` that a file does not have are left out.
    """
    if split.file.format == "parquet":
        yield from _parquet_blocks(split, rows, columns)
    else:
        yield from _csv_blocks(split, block_bytes, columns)


# -- Parquet -----------------------------------------------------------------------


def _parquet_blocks(split: Split, rows: int, columns: Sequence[str] | None) -> Iterator[TableBlock]:
    row = 0
    with open_parquet(split.file) as opened:
        schema = opened.schema_arrow
        chosen = None if columns is None else _present(columns, schema.names)
        # One by one: several would be fetched into memory together.
        for group in range(split.start, split.end):
            size = _rows_at_once(opened.metadata.row_group(group), rows)
            batches = opened.iter_batches(
                size, row_groups=[group], columns=chosen, use_threads=False
            )
            for batch in _within(batches, split.rows):
                yield TableBlock(pa.Table.from_batches([batch]), row)
                row += batch.num_rows
        if row == 0:
            empty = schema.empty_table()
            yield TableBlock(empty if chosen is None else empty.select(chosen), 0)


def _within(
    batches: Iterable[pa.RecordBatch], rows: tuple[int, int] | None
) -> Iterator[pa.RecordBatch]:
    """The batches of a row group, as far as they are in a part of it."""
    first = 0
    for batch in batches:
        start, end = (0, batch.num_rows) if rows is None else (row - first for row in rows)
        first += batch.num_rows
        part = batch.slice(max(start, 0), max(min(end, batch.num_rows) - max(start, 0), 0))
        if part.num_rows:
            yield part


def _rows_at_once(group: Any, rows: int) -> int:
    """Fewer rows where they are wide, such as those with vectors."""
    width: int = max(group.total_byte_size // max(group.num_rows, 1), 1)
    return min(rows, max(_PARQUET_BYTES // width, _FEWEST_ROWS))


# -- CSV ---------------------------------------------------------------------------


def _csv_blocks(
    split: Split, block_bytes: int, columns: Sequence[str] | None
) -> Iterator[TableBlock]:
    row = 0
    for header, records in record_blocks(split, block_bytes):
        block = _read_records(split.file, header, records, columns, row)
        yield block
        row += block.rows


def _read_records(
    file: InputFile,
    header: tuple[str, ...],
    records: Records,
    columns: Sequence[str] | None,
    first_row: int,
) -> TableBlock:
    included = header if columns is None else _present(columns, header)
    problems = _ragged(header, records)
    try:
        table = _parse(records.without(list(problems)), header, included, file.csv)
    except pa.ArrowInvalid as error:
        not_text = [at for at in range(len(records)) if not _is_text(records.raw(at), file.csv)]
        if not not_text:
            raise BadRequest(f"cannot read {file.uri} as CSV: {error}") from None
        problems = dict(
            sorted(
                {
                    **dict.fromkeys(not_text, f"the row is not {file.csv.encoding.upper()}"),
                    **problems,
                }.items()
            )
        )
        table = _parse(records.without(list(problems)), header, included, file.csv)
    if table.num_rows + len(problems) != len(records):
        raise BadRequest(
            f"cannot read {file.uri} as CSV: {len(records)} rows from byte {records.offset} on"
            f" were read as {table.num_rows + len(problems)}"
        )
    malformed = tuple(
        Malformed(first_row + at, records.text(at), message) for at, message in problems.items()
    )
    return TableBlock(table, first_row, malformed, records)


def _ragged(header: tuple[str, ...], records: Records) -> dict[int, str]:
    counts = records.value_counts
    return {
        at: f"the row has {counts[at]} values where the header names {len(header)}"
        for at in np.flatnonzero(counts != len(header)).tolist()
    }


def _parse(
    data: bytes, header: tuple[str, ...], included: Sequence[str], csv: CsvOptions
) -> pa.Table:
    if not data:
        return pa.schema([(name, pa.string()) for name in included]).empty_table()
    # A mark at the beginning would be taken for the one of a file, and without a last line end
    # the parser takes nothing for quoted after a quoted value.
    is_marked = data.startswith(BOM)
    text = b"\n" + data if is_marked else data
    text = text if text.endswith(b"\n") else text + b"\n"
    table = pa_csv.read_csv(
        pa.BufferReader(text),
        read_options=pa_csv.ReadOptions(
            column_names=header,
            use_threads=False,
            block_size=len(text) + 1,
            skip_rows=int(is_marked),
            encoding=csv.encoding,
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=csv.delimiter,
            quote_char=csv.quote,
            newlines_in_values=True,
            ignore_empty_lines=len(header) > 1,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()),
            include_columns=list(included),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=csv.nulls,
        ),
    )
    # To include none means all to the reader.
    return table.select(list(included))


def _is_text(data: bytes, csv: CsvOptions) -> bool:
    try:
        data.decode(csv.encoding)
    except UnicodeDecodeError:
        return False
    return True


def _present(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in columns if name in names]
