"""Agreement: whether an index of a version finds what a scan of its rows finds.

Owns the questions that are asked of both. Bounded by one column of one fragment. Never says
what is to be done about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.rows.sql_conditions import SqlColumn, SqlText
from omnigraph.storage.indexes.build import VECTOR_KINDS
from omnigraph.storage.indexes.search import nearest_hits
from omnigraph.storage.indexes.table_indexes import TableIndex
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import ROW_ID, Table

SAMPLE = 16
"""Of so many rows, spread over a table, the values are asked for."""
LISTED = 1_000
"""So many values are asked for at once."""
DEEP_SAMPLE = 1_000
"""And of vectors and parts of texts, so many where all values are to be looked at."""
GRAM = 3
SAME = 1e-3
"""A vector that is as near to itself as this has found itself."""

RowIds = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of some values: how many were asked for, and the rows that are found wrongly."""

    values: int
    wrong: RowIds


def scalar_agreement(table: Table, index: TableIndex, *, deep: bool) -> Iterator[Asked]:
    """Ask an index of values, of parts of texts or of vectors."""
    if index.kind in VECTOR_KINDS:
        yield from _vectors(table, index, DEEP_SAMPLE if deep else SAMPLE)
    elif index.kind == "NGRAM":
        yield from _parts_of_texts(table, index, DEEP_SAMPLE if deep else SAMPLE)
    elif index.kind == "BTREE" and deep:
        yield from _all_values(table, index)
    elif index.kind == "BTREE":
        yield from _some_values(table, index)


def sampled(table: Table, column: str, count: int) -> pa.Array:
    """The values of some rows, spread over a table, each once and none of them null."""
    rows = table.pin.row_count
    places = np.unique(np.linspace(0, max(rows - 1, 0), min(count, rows)).astype(np.int64))
    if not len(places):
        return pa.array([], table.schema.field(column).type)
    stored = table.columns.of(column)
    with storage_errors(f"reading {column!r} of {table.location}"):
        found = table.dataset().take(places.tolist(), columns=[stored])
    return found.column(stored).combine_chunks().drop_null().unique()


def _found(
    table: Table, condition: SqlText, *, by_index: bool, fragment: int | None = None
) -> RowIds:
    """The rows that pass a condition, found by an index or without any."""
    dataset = table.dataset()
    one = None if fragment is None else dataset.get_fragment(fragment)
    with storage_errors(f"asking the indexes of {table.location}"):
        found = dataset.scanner(
            columns=[],
            filter=condition.text,
            with_row_id=True,
            use_scalar_index=by_index,
            fragments=None if one is None else [one],
        ).to_table()
    ids: RowIds = np.sort(found.column(ROW_ID).to_numpy().astype(np.int64))
    return ids


def _some_values(table: Table, index: TableIndex) -> Iterator[Asked]:
    values = _comparable(sampled(table, _column(index), SAMPLE))
    if len(values):
        condition = SqlColumn(index.stored).isin(values)
        yield _compared(table, condition, len(values))


def _all_values(table: Table, index: TableIndex) -> Iterator[Asked]:
    """Every value of every fragment; only one fragment's are held at a time."""
    dataset = table.dataset()
    for part in layout_of(table).parts:
        if part.number not in index.covered:
            continue
        with storage_errors(f"reading {index.stored!r} of {table.location}"):
            fragments = [one for one in [dataset.get_fragment(part.number)] if one is not None]
            column = dataset.scanner(columns=[index.stored], fragments=fragments).to_table()
        values = _comparable(column.column(0).combine_chunks().drop_null().unique())
        values = values.take(pc.sort_indices(values))
        for start in range(0, len(values), LISTED):
            some = values.slice(start, LISTED)
            condition = SqlColumn(index.stored).isin(some)
            yield _compared(table, condition, len(some), part.number)


def _compared(table: Table, condition: SqlText, values: int, fragment: int | None = None) -> Asked:
    indexed, scanned = (
        _found(table, condition, by_index=by_index, fragment=fragment) for by_index in (True, False)
    )
    return Asked(values, np.setxor1d(indexed, scanned))


def _comparable(values: pa.Array) -> pa.Array:
    """Without zeros of two signs, which an index tells apart and a comparison does not."""
    if pa.types.is_floating(values.type):
        return values.filter(pc.not_equal(values, 0.0))
    return values


def _parts_of_texts(table: Table, index: TableIndex, count: int) -> Iterator[Asked]:
    for text in sampled(table, _column(index), count).to_pylist():
        middle = max(0, len(text) // 2 - GRAM)
        part = text[middle : middle + 2 * GRAM]
        if len(part) > GRAM:
            yield _compared(table, SqlColumn(index.stored).has_substring(part), 1)


def _vectors(table: Table, index: TableIndex, count: int) -> Iterator[Asked]:
    """A vector that is stored finds itself, or one like it."""
    vectors = sampled_vectors(table, _column(index), count)
    for vector in vectors:
        if not np.any(vector):
            continue  # it has no direction
        _, distances = nearest_hits(table, _column(index), vector, 1, depth=10)
        is_found = len(distances) > 0 and bool(distances[0] <= SAME)
        yield Asked(1, np.empty(0, np.int64) if is_found else np.full(1, -1, np.int64))


def sampled_vectors(table: Table, column: str, count: int) -> Sequence[npt.NDArray[np.float32]]:
    """The vectors of some rows, spread over a table."""
    rows = table.pin.row_count
    places = np.unique(np.linspace(0, max(rows - 1, 0), min(count, rows)).astype(np.int64))
    stored = table.columns.of(column)
    with storage_errors(f"reading {column!r} of {table.location}"):
        found = table.dataset().take(places.tolist(), columns=[stored]).column(stored)
    return [np.asarray(one, dtype=np.float32) for one in found.to_pylist() if one is not None]


def _column(index: TableIndex) -> str:
    if index.column is None:
        raise AssertionError("an index that nothing is read from is not asked")
    return index.column
