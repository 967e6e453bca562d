"""Rows that are left out of a load: rejected, or superseded by a later row of their id.

Owns putting together what several rules say of one row (the first one counts) and keeping it in
files by group of fragments. Whoever hands this on has numbers and names, however many rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.load.check.key_source import RowList
from omnigraph.pipeline.load.check.wrong_rows import (
    MESSAGE,
    RULE,
    WRONG,
    SetRule,
    WrongRows,
)
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.table import ROW_ADDRESS

RunTasks = Callable[[str, Callable[..., Any], Sequence[Any]], list[Any]]

REJECTED = pa.schema([(ROW_ADDRESS, pa.uint64()), (RULE, pa.int64()), (MESSAGE, pa.string())])


@dataclass(frozen=True, slots=True)
class RejectedPart:
    """The rejected rows of one group of fragments, in their order, in a file."""

    file: str
    codes: Mapping[str, int]
    fragments: frozenset[int]

    @property
    def count(self) -> int:
        """How many rows there are."""
        return sum(self.codes.values())


@dataclass(frozen=True, slots=True)
class _Joining:
    """What was rejected of a group before, and what rules say of it now, the first one first."""

    area: StagingArea
    before: RejectedPart | None
    found: tuple[WrongRows, ...]
    rules: Mapping[int, SetRule]


def join_rejected(job: _Joining) -> RejectedPart:
    """What a task does."""
    tables = [] if job.before is None else [read_rejected(job.area, job.before)]
    for one in job.found:
        rows = one.read(job.area)
        order = -1 if one.rule is None else one.rule.order
        numbers = pa.array(np.full(rows.num_rows, order, dtype=np.int64))
        tables.append(pa.table([rows.column(ROW_ADDRESS), numbers, rows.column(MESSAGE)], REJECTED))
    return keep_rejected(job.area, pa.concat_tables(tables), job.rules)


def keep_rejected(area: StagingArea, rows: pa.Table, rules: Mapping[int, SetRule]) -> RejectedPart:
    """Keep rows of one group: of several that say something of one row, the first."""
    _, firsts = np.unique(rows.column(ROW_ADDRESS).to_numpy(), return_index=True)
    table = rows.take(pa.array(firsts)).combine_chunks()
    orders, counts = np.unique(table.column(RULE).to_numpy(), return_counts=True)
    codes: Counter[str] = Counter()
    for order, count in zip(orders.tolist(), counts.tolist(), strict=True):
        codes[rules[order].code] += count
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=REJECTED)]
    fragments = np.unique(fragments_of(table.column(ROW_ADDRESS).to_numpy())).tolist()
    file = area.write_slices("rejected", batches[:1])
    return RejectedPart(file, dict(codes), frozenset(fragments))


def read_rejected(area: StagingArea, part: RejectedPart) -> pa.Table:
    """The rows of a part: their addresses, the rule of each and what is said."""
    batch = area.read_slice(part.file, 0, REJECTED)
    return REJECTED.empty_table() if batch is None else pa.Table.from_batches([batch])


@dataclass(slots=True)
class RejectedRows:
    """The staged rows that are left out, by type key and group of fragments."""

    rejected: dict[str, dict[int, RejectedPart]] = field(default_factory=dict)
    superseded: dict[str, dict[int, WrongRows]] = field(default_factory=dict)
    rules: dict[int, SetRule] = field(default_factory=dict)

    def reject(self, run: RunTasks, area: StagingArea, found: Sequence[WrongRows]) -> None:
        """Add rows, those of the first rules first."""
        by_place: dict[tuple[str, int], list[WrongRows]] = {}
        for one in sorted(found, key=lambda one: -1 if one.rule is None else one.rule.order):
            if one.rule is not None and one.count:
                self.rules[one.rule.order] = one.rule
                by_place.setdefault((one.rule.type_key, one.group), []).append(one)
        jobs = [
            _Joining(area, self.rejected.get(key, {}).get(group), tuple(some), self.rules)
            for (key, group), some in by_place.items()
        ]
        made = run("leave out", join_rejected, jobs)
        for (key, group), part in zip(by_place, made, strict=True):
            self.rejected.setdefault(key, {})[group] = part

    def count(self, type_key: str, *, with_superseded: bool = False) -> int:
        """How many rows of a type were rejected; a superseded row is not."""
        count = sum(part.count for part in self.rejected.get(type_key, {}).values())
        if with_superseded:
            count += sum(part.count for part in self.superseded.get(type_key, {}).values())
        return count

    def counts(self) -> dict[str, int]:
        """How many rows were rejected, by code."""
        counts: Counter[str] = Counter()
        for part in (part for parts in self.rejected.values() for part in parts.values()):
            counts.update(part.codes)
        return dict(counts)

    def lists(
        self, area: StagingArea, type_key: str, group: int, *, with_superseded: bool = True
    ) -> tuple[RowList, ...]:
        """The rows of a group that are left out."""
        found = []
        rejected = self.rejected.get(type_key, {}).get(group)
        if rejected is not None:
            found.append(RowList(area, rejected.file, REJECTED))
        superseded = self.superseded.get(type_key, {}).get(group)
        if superseded is not None and with_superseded:
            found.append(RowList(area, superseded.file, WRONG))
        return tuple(found)
