"""Rows of small files that this process has just written: folding them need not read them.

Owns remembering them for a while, a few bytes of each table. Whatever is not known is read from
storage; a file that has lost rows or got columns since then counts as not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.table import ROW_ID, Table

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata

# Rows of so many bytes are remembered, and in all of them so large a part of the budget.
MOST_BYTES = 256 * 2**10
FRESH_PART = 64
# What rows take besides their values.
ROWS_BYTES = 2_000

_rows: Cache[tuple[str, str], pa.Table] = Cache(
    "fresh_rows",
    lambda rows: [(rows, ROWS_BYTES + int(rows.get_total_buffer_size()))],
    budget,
    lambda whole: whole // FRESH_PART,
)


def note_rows(table: Table, files: Sequence[tuple[str, int]], rows: pa.Table) -> None:
    """Remember rows, by their stored columns, that were written into one file."""
    if len(files) != 1 or any(is_blob(column) for column in rows.schema):
        return
    ((file, count),) = files
    whole = rows.combine_chunks()
    if count == rows.num_rows and whole.get_total_buffer_size() <= MOST_BYTES:
        _rows.keep((table.location.uri, file), whole)


def fresh_rows(table: Table, metadata: FragmentMetadata) -> pa.Table | None:
    """The rows of a fragment by their stored columns, with their row ids, if they are known."""
    from lance.fragment import RowIdSequence

    row_ids = metadata.row_id_meta
    if metadata.deletion_file is not None or len(metadata.files) != 1 or row_ids is None:
        return None
    known = _rows.look((table.location.uri, str(metadata.files[0].path)))
    schema = table.dataset().schema
    if known is None or sorted(known.schema.names) != sorted(schema.names):
        return None
    known = known.select(schema.names)
    if known.schema.types != schema.types:
        return None
    found = RowIdSequence.from_inline_metadata(row_ids).to_pyarrow()
    return known.append_column(ROW_ID, found.cast(pa.uint64()))


def forget_rows(table: Table, files: Iterable[str]) -> None:
    """They are in another file by now."""
    for file in files:
        _rows.forget((table.location.uri, file))
