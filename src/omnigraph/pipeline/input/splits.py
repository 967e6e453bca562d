"""Splits: the parts of input files that are read side by side.

Owns where files are cut and in which order the parts stand. Opens Parquet footers and the
first line of CSV files, never the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.csv_records import read_header
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.parquet_files import open_parquet

TARGET_BYTES = 32 << 20
_FOOTERS_AT_ONCE = 16
_SPLITS_IN_A_TASK = 64
# A part of a row group has so many rows at least.
_FEWEST_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file.

    ``start`` and ``end`` are row groups of Parquet, and bytes of everything else; what begins
    there belongs to the split. ``header`` and ``inside_quotes`` are for a part of a CSV file,
    which can see neither by itself. ``weight`` estimates the bytes to read, for Parquet, and
    ``rows`` are the part of a row group that is too large for one split.
    """

    number: int
    file: InputFile
    start: int
    end: int
    header: tuple[str, ...] | None = None
    inside_quotes: bool = False
    weight: int | None = None
    rows: tuple[int, int] | None = None

    @property
    def input_bytes(self) -> int:
        """About how much there is to read."""
        return self.end - self.start if self.weight is None else self.weight


def cut(files: Sequence[InputFile], target_bytes: int = TARGET_BYTES) -> list[Split]:
    """The splits of files, numbered by file and position; every file has at least one.

    Lines are cut by bytes and Parquet by row groups. What is compressed stays whole, and so
    does CSV: see `cut_csv`.
    """
    groups = _row_groups([file for file in files if file.format == "parquet"])
    splits: list[Split] = []
    for file in files:
        if file.format == "parquet":
            splits += _parquet_splits(file, next(groups), target_bytes)
        elif file.format == "jsonl" and file.compression is None:
            splits += (Split(0, file, *part) for part in ranges(file.size, target_bytes))
        else:
            splits.append(Split(0, file, 0, file.size))
    return renumber(splits)


def cut_csv(
    file: InputFile, parts: Sequence[tuple[int, int]], counts: Sequence[int]
) -> list[Split]:
    """The splits of one CSV file from the number of quotes in each of its parts.

    The parts follow each other from 0 to the size of the file: `ranges` makes them,
    and `quote_count` counts. An odd number of quotes before a part means that it begins
    inside a quoted value.
    """
    if file.compression is not None:
        raise BadRequest(f"{file.uri} is compressed and can only be read as one split")
    before = list(accumulate(counts, initial=0))
    if before[-1] % 2:
        raise BadRequest(
            f"{file.uri} has an odd number of quotes: a quoted value never ends, or holds a"
            ' quote that is not doubled ("")'
        )
    header = read_header(file)
    # All of the header is in the first split, however small the parts are.
    kept = [at for at, (start, _) in enumerate(parts) if at == 0 or start >= header.size]
    starts = [parts[at][0] for at in kept]
    ends = [*starts[1:], file.size]
    return [
        Split(number, file, starts[number], ends[number], header.names, before[at] % 2 == 1)
        for number, at in enumerate(kept)
    ]


def ranges(size: int, target_bytes: int = TARGET_BYTES) -> list[tuple[int, int]]:
    """Ranges of about equal length, none above the target, that cover all bytes."""
    count = max(1, -(-size // max(target_bytes, 1)))
    bounds = [size * at // count for at in range(count + 1)]
    return list(pairwise(bounds))


def renumber(splits: Iterable[Split]) -> list[Split]:
    """The same splits, numbered as they stand."""
    return [replace(split, number=number) for number, split in enumerate(splits)]


def pack(splits: Iterable[Split], target_bytes: int = TARGET_BYTES) -> list[tuple[Split, ...]]:
    """Neighbours put together into tasks of about the target, the order kept."""
    tasks: list[tuple[Split, ...]] = []
    chosen: list[Split] = []
    size = 0
    for split in splits:
        # Opening a file takes time, however small it is.
        cost = max(split.input_bytes, target_bytes // _SPLITS_IN_A_TASK)
        if chosen and size + cost > target_bytes:
            tasks.append(tuple(chosen))
            chosen, size = [], 0
        chosen.append(split)
        size += cost
    return [*tasks, tuple(chosen)] if chosen else tasks


def _row_groups(files: Sequence[InputFile]) -> Iterator[list[_RowGroup]]:
    """The row groups, file by file."""
    if not files:
        return iter(())
    with ThreadPoolExecutor(min(len(files), _FOOTERS_AT_ONCE)) as threads:
        return iter(list(threads.map(_group_sizes, files)))


@dataclass(frozen=True, slots=True)
class _RowGroup:
    size: int
    rows: int


def _group_sizes(file: InputFile) -> list[_RowGroup]:
    with open_parquet(file) as opened:
        groups = map(opened.metadata.row_group, range(opened.metadata.num_row_groups))
        return [_RowGroup(group.total_byte_size, group.num_rows) for group in groups]


def _parquet_splits(file: InputFile, groups: Sequence[_RowGroup], target: int) -> Iterator[Split]:
    start = weight = 0
    for at, group in enumerate(groups):
        parts = min(-(-group.size // max(target, 1)), -(-group.rows // _FEWEST_ROWS))
        if at > start and (weight + group.size > target or parts > 1):
            yield Split(0, file, start, at, weight=weight)
            start, weight = at, 0
        if parts > 1:
            # Each reads the whole group and keeps its part: reading is the least of the work.
            for first, last in ranges(group.rows, -(-group.rows // parts)):
                share = group.size // parts
                yield Split(0, file, at, at + 1, weight=share, rows=(first, last))
            start = at + 1
            continue
        weight += group.size
    if start < len(groups) or not groups:
        yield Split(0, file, start, len(groups), weight=weight)


def first_lines(splits: Sequence[Split], lines: Mapping[int, int]) -> dict[int, int]:
    """How many lines of the same name stand before each split, given the lines of every split."""
    before: dict[str | None, int] = {}
    found: dict[int, int] = {}
    for split in splits:
        found[split.number] = before.get(split.file.name, 0)
        before[split.file.name] = found[split.number] + lines[split.number]
    return found
