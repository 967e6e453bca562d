"""Rows that two versions of a table have in the same place, and columns that may differ there.

Owns telling, fragment by fragment, which columns need not be read: data files are immutable, and
a column that no file of a fragment has is null. Never says what makes two values different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.fragments import FragmentPart, layout_of, stream_parts
from omnigraph.storage.tables.table import ROW_ADDRESS, Table, column_names

if TYPE_CHECKING:
    from lance.lance.schema import LanceField


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """What two versions call a column that they mean the same by; None where one has none."""

    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class RowsInPlace:
    """Rows of both versions, aligned, with the columns in which they may differ."""

    pairs: tuple[ColumnPair, ...]
    before: pa.RecordBatch
    after: pa.RecordBatch

    @property
    def addresses(self) -> npt.NDArray[np.uint64]:
        """Where they lie, ascending."""
        return _addresses(self.after)


def is_stored_once(before: Table, after: Table, pair: ColumnPair) -> bool:
    """Whether both versions read a pair from one column: then rows in place cannot differ in it."""
    if pair.before is None or pair.after is None:
        return False
    return before.columns.reads_alike(pair.before, after.columns, pair.after)


def rows_in_place(
    before: Table, after: Table, pairs: Sequence[ColumnPair]
) -> Iterator[RowsInPlace]:
    """The rows that lie in the same place in both, where pairs of columns may differ."""
    for found, parts in _readings(before, after, pairs).items():
        # Whether there is a blob is told without reading it.
        with_blobs = any(pair.before and _is_blob(after, pair.after) for pair in found)
        old, new = (
            _streamed(table, names, parts, with_blobs=with_blobs)
            for table, names in (
                (before, [pair.before for pair in found]),
                (after, [pair.after for pair in found]),
            )
        )
        for mine, theirs in _in_step(old, new):
            yield RowsInPlace(found, mine, theirs)


def _is_blob(table: Table, name: str | None) -> bool:
    return name is not None and is_blob(table.schema.field(name))


def _streamed(
    table: Table, names: Sequence[str | None], parts: Sequence[FragmentPart], *, with_blobs: bool
) -> Iterator[pa.RecordBatch]:
    read = [*(name for name in names if name is not None), ROW_ADDRESS]
    batches = stream_parts(table, read, parts, with_blobs=with_blobs)
    return (batch for batch in batches if batch.num_rows)


def _readings(
    before: Table, after: Table, pairs: Sequence[ColumnPair]
) -> dict[tuple[ColumnPair, ...], list[FragmentPart]]:
    """The fragments of both by the pairs that may differ in them, if any may."""
    asked = [pair for pair in pairs if not is_stored_once(before, after, pair)]
    if not asked or before.location != after.location:
        return {}
    old, new = _Columns.of(before), _Columns.of(after)
    known = {part.number: part for part in layout_of(before).parts}
    groups: dict[tuple[ColumnPair, ...], list[FragmentPart]] = {}
    for part in layout_of(after).parts:
        there = known.get(part.number)
        if there is not None and there.file == part.file:
            mine, theirs = old.files(part.number), new.files(part.number)
            found = tuple(
                pair for pair in asked if old.has(pair.before, mine) or new.has(pair.after, theirs)
            )
            if found:
                groups.setdefault(found, []).append(part)
    return groups


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a version by name, each with the numbers of all its fields.

    ``filled`` are names that say something where nothing is stored.
    """

    dataset: lance.LanceDataset
    fields: Mapping[str, frozenset[int]]
    filled: frozenset[str]

    @classmethod
    def of(cls, table: Table) -> _Columns:
        dataset, names = table.dataset(), column_names(table)
        with storage_errors(f"reading the columns of {table.location}"):
            stored = {field.name(): _numbers(field) for field in dataset.lance_schema.fields()}
        columns = {name: column for name in names if (column := table.columns.find(name))}
        shown = {name: table.columns.shown_as(name) for name in names}
        return cls(
            dataset,
            {name: stored[column] for name, column in columns.items()},
            frozenset(
                name for name, how in shown.items() if how is not None and how.fill is not None
            ),
        )

    def files(self, number: int) -> frozenset[int]:
        """The fields that a fragment has a file for."""
        fragment = self.dataset.get_fragment(number)
        if fragment is None:
            raise AssertionError("a layout names a fragment that its version does not have")
        return frozenset(field for file in fragment.metadata.files for field in file.fields)

    def has(self, name: str | None, files: frozenset[int]) -> bool:
        """Whether a column can say anything in a fragment with these fields."""
        if name is None:
            return False
        return name in self.filled or not self.fields.get(name, frozenset()).isdisjoint(files)


def _numbers(field: LanceField) -> frozenset[int]:
    inside = (number for child in field.children() for number in _numbers(child))
    return frozenset({field.id(), *inside})


def _in_step(
    old: Iterator[pa.RecordBatch], new: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """The rows that both have, piece by piece; both ascend by address, and no piece is empty."""
    left, right = next(old, None), next(new, None)
    while left is not None and right is not None:
        mine, theirs = _addresses(left), _addresses(right)
        end = min(mine[-1], theirs[-1])
        done, passed = (int(np.searchsorted(part, end, side="right")) for part in (mine, theirs))
        _, first, second = np.intersect1d(
            mine[:done], theirs[:passed], assume_unique=True, return_indices=True
        )
        if len(first):
            yield left.take(pa.array(first)), right.take(pa.array(second))
        left = left.slice(done) if done < len(mine) else next(old, None)
        right = right.slice(passed) if passed < len(theirs) else next(new, None)


def _addresses(rows: pa.RecordBatch) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = rows.column(ROW_ADDRESS).to_numpy()
    return found
