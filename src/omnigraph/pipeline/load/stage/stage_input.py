"""Staging the input of a load: frames written down, files cut into splits, splits decoded by tasks.

Owns how large splits are, and what staging has made, for one schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.pipeline.input.csv_records import quote_count
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.splits import (
    TARGET_BYTES,
    Split,
    cut,
    cut_csv,
    first_lines,
    pack,
    ranges,
    renumber,
)
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.pipeline.load.stage.decode import stage
from omnigraph.pipeline.load.stage.frames import LoadInput
from omnigraph.pipeline.load.stage.staged_types import (
    SplitGroup,
    StagedTask,
    StagedType,
    StageJob,
    staged_types,
)
from omnigraph.pipeline.task_runner import TaskRunner
from omnigraph.write.change.change_set import type_key
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.publish.base import Base

# A split of fewer bytes is more trouble than it is worth.
LEAST_BYTES = 2 << 20
# About how much larger the values of a file are than the file.
_PACKED = {"parquet": 2}

RunTasks = Callable[[str, Callable[..., Any], Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class Staged:
    """What staging has made, for one schema."""

    files: tuple[InputFile, ...]
    job: StageJob
    splits: tuple[Split, ...]
    tasks: tuple[StagedTask, ...]
    types: Mapping[str, StagedType]

    @property
    def touched(self) -> frozenset[str]:
        """The types that the input says something about."""
        tables = [
            (split.number, type_key(find_frame_type(split.file.type_name, self.job.catalog)))
            for split in self.splits
            if split.file.type_name is not None and split.file.format != "jsonl"
        ]
        # A table without rows says that there are none; one with wrong rows only says nothing.
        rejecting = self.rejecting
        wrong = {key for number, key in tables if number in rejecting}
        return frozenset([*self.types, *({key for _, key in tables} - wrong)])

    @property
    def rejecting(self) -> frozenset[int]:
        """The splits with rows that are wrong by themselves."""
        return frozenset(
            found.number for task in self.tasks for found in task.splits if found.codes
        )

    def first_rejecting(self, of_each: int) -> set[int]:
        """The first splits that together have so many rejected rows of each kind, if there are."""
        told: Counter[str] = Counter()
        chosen = set()
        for found in (found for task in self.tasks for found in task.splits):
            if any(told[code] < of_each for code in found.codes):
                chosen.add(found.number)
                told.update(found.codes)
        return chosen

    @property
    def codes(self) -> dict[str, int]:
        """How many rows were rejected, by code."""
        return added(found.codes for task in self.tasks for found in task.splits)

    @property
    def embedding(self) -> dict[str, str] | None:
        """The provider and the model that have made vectors, if any."""
        used = (task.embedding for task in self.tasks if task.embedding is not None)
        return next(map(dict, used), None)

    def first_lines(self) -> dict[int, int]:
        """How many lines of its file stand before each split."""
        lines = {found.number: found.lines for task in self.tasks for found in task.splits}
        return first_lines(self.splits, lines)


def stage_input(
    files: tuple[InputFile, ...],
    base: Base,
    area: StagingArea,
    embedding: EmbedderConfig,
    runner: TaskRunner,
    *,
    shown: int,
    patches: bool = False,
) -> Staged:
    """Decode every row and write those that are right by themselves, for the tables of a base.

    So many rejects are ``shown`` of every split.
    """
    target = _split_bytes(files, runner.cores)
    splits = tuple(cut_inputs(files, runner.run, target))
    job = StageJob(base.catalog, _tables(base), area, embedding, patches)
    groups = [SplitGroup(job, group, shown) for group in pack(splits, target)]
    tasks = tuple(runner.run("stage", stage, groups))
    return Staged(files, job, splits, tasks, staged_types(tasks, base, runner.share))


def write_down(found: LoadInput, area: StagingArea, runner: TaskRunner) -> tuple[InputFile, ...]:
    """Frames and lines as files, beside those that were given: some can be read only once."""
    if not found.unwritten:
        return found.files
    with runner.stage("frames"):
        written = [file for one in found.unwritten for file in one.write(area)]
    return (*found.files, *written)


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts by code, put together."""
    total: dict[str, int] = {}
    for found in counts:
        for code, count in found.items():
            total[code] = total.get(code, 0) + count
    return total


def _split_bytes(files: Sequence[InputFile], cores: int) -> int:
    """Small enough that every core has something to do, and not smaller."""
    weight = sum(file.size * _PACKED.get(file.format, 1) for file in files)
    return max(LEAST_BYTES, min(TARGET_BYTES, weight // max(2 * cores, 1)))


def _tables(base: Base) -> dict[str, Any]:
    return {key: base.table(key).table for key in base.snapshot.tables}


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
