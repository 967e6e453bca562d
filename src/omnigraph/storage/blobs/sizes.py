"""The sizes of blobs, by fragment, without reading one.

Owns asking how much writing a fragment again would have to copy: blobs lie in files of their own,
whose sizes no version knows. What was asked once is remembered, for files never change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.fragments import FragmentPart
from omnigraph.storage.tables.row_address import fragments_of
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

# What the size of one fragment takes.
SIZE_BYTES = 400

_sizes: Cache[tuple[str, str], int] = Cache(
    "blob_sizes", lambda found: [(found, SIZE_BYTES)], budget
)


def blob_bytes(table: Table, parts: Sequence[FragmentPart]) -> list[tuple[FragmentPart, int]]:
    """How many bytes the blobs of some fragments have; none for a table without blobs."""
    schema = table.dataset().schema
    columns = [column.name for column in schema if is_blob(column)]
    if not columns:
        return []
    uri = table.location.uri
    unknown = [part for part in parts if _sizes.get((uri, part.file)) is None]
    if unknown:
        _sizes.missed()
        for part, size in _asked(table, columns, unknown):
            _sizes.keep((uri, part.file), size)
    return [(part, _sizes.look((uri, part.file)) or 0) for part in parts]


def _asked(
    table: Table, columns: Sequence[str], parts: Sequence[FragmentPart]
) -> list[tuple[FragmentPart, int]]:
    dataset = table.dataset()
    fragments = [dataset.get_fragment(part.number) for part in parts]
    with storage_errors(f"reading the sizes of blobs of {table.location}"):
        rows = dataset.scanner(
            columns=list(columns),
            with_row_address=True,
            fragments=[fragment for fragment in fragments if fragment is not None],
        ).to_table()
    owners = fragments_of(rows.column(ROW_ADDRESS).to_numpy())
    size = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns:
        described = rows.column(name).combine_chunks()
        found = pc.struct_field(described, "size")
        size += pc.fill_null(found, 0).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return [(part, int(size[owners == part.number].sum())) for part in parts]
