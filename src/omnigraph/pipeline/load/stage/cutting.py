"""Cutting: the inputs of a load as splits, with the help of tasks where that takes reading.

Owns large CSV files: a line end inside quotes ends no row, so the quotes before a place must
be counted before the file can be cut there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.pipeline.input.csv_records import quote_count
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.splits import TARGET_BYTES, Split, cut, cut_csv, ranges, renumber

RunTasks = Callable[[str, Callable[..., Any], Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class _Range:
    file: InputFile
    start: int
    end: int


def cut_inputs(
    files: Sequence[InputFile], run: RunTasks, target_bytes: int = TARGET_BYTES
) -> list[Split]:
    """The splits of all files, in their order."""
    large = [file for file in files if _is_cuttable(file) and file.size > target_bytes]
    parts = {file: ranges(file.size, target_bytes) for file in large}
    asked = [_Range(file, *part) for file in large for part in parts[file]]
    counted: Iterator[int] = iter(run("count quotes", _quotes, asked))
    cuts = {
        file: cut_csv(file, parts[file], [next(counted) for _ in parts[file]]) for file in large
    }
    splits: list[Split] = []
    for split in cut(files, target_bytes):
        splits += cuts.get(split.file, [split])
    return renumber(splits)


def _is_cuttable(file: InputFile) -> bool:
    return file.format == "csv" and file.compression is None


def _quotes(part: _Range) -> int:
    return quote_count(part.file, part.start, part.end)
