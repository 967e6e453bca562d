"""Partitions: a pinned table cut into parts that are read side by side.

Owns the grouping of fragments. A part is itself a table, so that whatever reads a table
can read a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.table import Table

ROWS = 500_000


@dataclass(frozen=True, slots=True)
class TablePart(Table):
    """Some fragments of a table; the pin counts their rows only."""

    fragments: tuple[int, ...] = ()

    def dataset(self) -> Any:
        """The opened version, of which only the fragments are scanned."""
        # Named: a class with slots is made anew, and `super()` would look for the old one.
        return _Fragments(Table.dataset(self), self.fragments)


class _Fragments:
    """A dataset that scans some fragments; all else is as in the dataset."""

    def __init__(self, dataset: Any, numbers: tuple[int, ...]) -> None:
        self._dataset = dataset
        self._numbers = numbers

    def scanner(self, **options: Any) -> Any:
        """A scanner as the dataset would give it, of the fragments, in their order."""
        fragments = [self._dataset.get_fragment(number) for number in self._numbers]
        return self._dataset.scanner(fragments=fragments, scan_in_order=True, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)


def parts_of(table: Table, rows: int = ROWS) -> list[TablePart]:
    """A table in parts of neighbouring fragments: up to so many rows, or one fragment."""
    return [
        TablePart(
            table.location,
            replace(table.pin, row_count=sum(part.rows for part in group)),
            tuple(part.number for part in group),
        )
        for group in _groups(layout_of(table).parts, rows)
    ]


def _groups(parts: tuple[FragmentPart, ...], rows: int) -> Iterator[list[FragmentPart]]:
    group: list[FragmentPart] = []
    for part in parts:
        if group and sum(one.rows for one in group) + part.rows > rows:
            yield group
            group = []
        if part.rows:
            group.append(part)
    if group:
        yield group
