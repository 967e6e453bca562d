"""Indexing one table in one call, the way no part of the engine does."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from omnigraph.storage.indexes.build import (
    IndexKind,
    Metric,
    build_index,
    commit_indexes,
    index_name,
    partitions,
)
from omnigraph.storage.indexes.table_indexes import fragment_rows, indexes_of
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import Stamp, Table, TablePin


@dataclasses.dataclass(frozen=True, slots=True)
class WantedIndex:
    """An index to be made: its column and kind."""

    column: str
    kind: IndexKind


def create_index(
    table: Table,
    column: str,
    kind: IndexKind,
    *,
    metric: Metric = "cosine",
    with_position: bool = True,
    stamp: Stamp | None = None,
) -> TablePin:
    """Index all rows of a column, in place of an index of the same kind on it.

    A table without rows gets no index: there is nothing to cover yet.
    ``metric`` is for vectors, ``with_position`` (phrase search) for text.
    """
    index_name(table, column, kind)
    fragments = _all_fragments(table)
    if not fragments:
        return table.pin
    built = build_index(
        table,
        column,
        kind,
        fragments,
        partitions=partitions(table.pin.row_count),
        metric=metric,
        with_position=with_position,
    )
    return commit_indexes(table, [built], stamp)


def create_indexes(
    table: Table, wanted: Sequence[WantedIndex], stamp: Stamp | None = None
) -> TablePin:
    """Index all rows of several columns, all in one version."""
    names = [index_name(table, one.column, one.kind) for one in wanted]
    fragments = _all_fragments(table)
    if not fragments or not names:
        return table.pin
    count = partitions(table.pin.row_count)
    built = [
        build_index(table, one.column, one.kind, fragments, partitions=count) for one in wanted
    ]
    return commit_indexes(table, built, stamp)


def extend_index(
    table: Table,
    column: str,
    kind: IndexKind,
    *,
    metric: Metric = "cosine",
    with_position: bool = True,
    stamp: Stamp | None = None,
) -> TablePin:
    """Index the rows that an index does not cover yet, beside what it has; without one, all.

    A text index is built again instead: with the new rows in a segment of their
    own, it would also answer with the old text of rows that were updated.
    """
    name = index_name(table, column, kind)
    known = [index for index in indexes_of(table) if index.name == name]
    if known and not known[0].uncovered:
        return table.pin
    if not known or kind == "INVERTED":
        return create_index(
            table, column, kind, metric=metric, with_position=with_position, stamp=stamp
        )
    uncovered = known[0].uncovered
    built = build_index(
        table,
        column,
        kind,
        uncovered,
        partitions=partitions(fragment_rows(table, uncovered)),
        metric=metric,
        beside=True,
    )
    return commit_indexes(table, [built], stamp)


def _all_fragments(table: Table) -> list[int]:
    return [part.number for part in layout_of(table).parts]
