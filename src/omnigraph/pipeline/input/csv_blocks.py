"""Record blocks: the rows of a split of CSV, many at a time and still as they are written.

Owns which rows belong to a split: those that begin in it, the header left out. Never ends a
block inside a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np

from omnigraph.pipeline.input.byte_ranges import PIECE, end_of, read_forward, refuse_long_line
from omnigraph.pipeline.input.csv_records import (
    Header,
    Records,
    check_quotes,
    find_header,
    last_record_end,
    read_header,
    record_ends,
)
from omnigraph.pipeline.input.splits import Split
from omnigraph.write.load.csv_options import CsvOptions

CsvBlock = tuple[tuple[str, ...], Records]


def record_blocks(split: Split, block_bytes: int = PIECE) -> Iterator[CsvBlock]:
    """The names of the columns and the next rows, at least once.

    Holds one block and the beginning of one row.
    """
    if split.start:
        yield from _later_blocks(split, block_bytes)
    else:
        yield from _first_blocks(split, block_bytes)


def _later_blocks(split: Split, block_bytes: int) -> Iterator[CsvBlock]:
    if split.header is None:
        raise ValueError(f"{split} begins inside a file and has no header")
    line, offset = 0, split.end
    is_one = len(split.header) == 1
    for data, offset in _whole_records(split, block_bytes):
        records = Records(data, offset, line, one_column=is_one, csv=split.file.csv)
        check_quotes(split.file, records)
        yield split.header, records
        line += records.lines
    if not line:
        yield split.header, Records(b"", offset, 0)


def _first_blocks(split: Split, block_bytes: int) -> Iterator[CsvBlock]:
    header: Header | None = None
    held, line = b"", 0
    for data, offset in _whole_records(split, block_bytes):
        if header is not None:
            is_one = len(header.names) == 1
            records = Records(data, offset, line, one_column=is_one, csv=split.file.csv)
        else:
            held += data
            header = find_header(split.file, held)
            if header is None:
                continue
            line = held.count(b"\n", 0, header.size)
            rest, is_one = held[header.size :], len(header.names) == 1
            records = Records(rest, header.size, line, one_column=is_one, csv=split.file.csv)
        check_quotes(split.file, records)
        yield header.names, records
        line += records.lines
    if header is None:
        read_header(split.file)  # says what is wrong


def _whole_records(split: Split, block_bytes: int) -> Iterator[tuple[bytes, int]]:
    """The bytes of the records that begin in a split, and where these bytes begin."""
    file, end = split.file, end_of(split.file, split.end)
    # Pieces of one record, which is followed by its quotes: none of them is looked at twice.
    pending: list[bytes] = []
    begins, held = split.start, 0
    is_aligned, inside = split.start == 0, split.inside_quotes
    # The byte before tells whether a record begins right here.
    before = max(split.start - 1, 0)
    with closing(read_forward(file, before, end, block_bytes)) as pieces:
        for at, piece in enumerate(pieces):
            data = piece
            if not is_aligned:
                if at == 0:
                    is_aligned = data[:1] == b"\n" and not inside
                    data = data[1:]
                if not is_aligned:
                    skipped, inside = _to_next_record(data, inside=inside, csv=file.csv)
                    is_aligned = skipped is not None
                    step = len(data) if skipped is None else skipped
                    begins, data = begins + step, data[step:]
                if not is_aligned:
                    refuse_long_line(file, begins - split.start, split.start)
                    continue
            if end is not None and begins >= end:
                return
            is_last = False
            if end is not None and begins + held + len(data) >= end:
                ends = record_ends(data, inside=inside, csv=file.csv)
                ends = ends[np.searchsorted(ends, end - begins - held) :]
                is_last = len(ends) > 0
            cut = int(ends[0]) if is_last else last_record_end(data, inside=inside, csv=file.csv)
            if cut:
                yield b"".join([*pending, data[:cut]]), begins
                pending, begins, held, inside = [], begins + held + cut, 0, False
            if is_last:
                return
            rest = data[cut:]
            pending.append(rest)
            held += len(rest)
            inside ^= rest.count(file.csv.quote.encode()) % 2 == 1
            refuse_long_line(file, held, begins)
    if held:
        yield b"".join(pending), begins


def _to_next_record(data: bytes, *, inside: bool, csv: CsvOptions) -> tuple[int | None, bool]:
    """Where the next record begins, else None, and if the bytes end in a quoted value."""
    ends = record_ends(data, inside=inside, csv=csv)
    if len(ends):
        return int(ends[0]), False
    return None, inside ^ (data.count(csv.quote.encode()) % 2 == 1)
