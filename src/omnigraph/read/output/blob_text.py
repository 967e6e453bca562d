"""Blobs as JSON text: from descriptions of where they lie to what an export writes.

Owns when the bytes are read: only for the rows at hand, a bounded number of
bytes at a time. Never follows a reference to something outside the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.output.json_text import json_text
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_BYTES = 16 << 20

# What Lance writes into a description for a blob that is a reference.
_EXTERNAL = 3


def within_bytes(
    batch: pa.RecordBatch, blobs: Sequence[str], max_bytes: int = MAX_BYTES
) -> Iterator[pa.RecordBatch]:
    """The batch in slices whose blobs have together about this many bytes, or that are one row."""
    if not blobs:
        yield batch
        return
    sizes = sum(_sizes(batch.column(name)) for name in blobs)
    before = np.cumsum(sizes) - sizes
    starts = np.flatnonzero(np.diff(before // max_bytes, prepend=-1))
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        yield batch.slice(start, end - start)


def _sizes(descriptions: pa.Array) -> npt.NDArray[np.int64]:
    sizes = pc.struct_field(descriptions, "size").cast(pa.int64())
    found: npt.NDArray[np.int64] = sizes.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def blob_text(table: Table, batch: pa.RecordBatch, name: str) -> pa.Array:
    """The JSON text of a column of blobs; the batch has the row addresses too.

    `"base64:…"` for bytes the graph keeps, the URI for a reference, null for null.
    """
    descriptions = batch.column(name)
    is_external = pc.equal(pc.struct_field(descriptions, "kind"), _EXTERNAL).fill_null(
        fill_value=False
    )
    kept = pc.and_(descriptions.is_valid(), pc.invert(is_external))
    texts = json_text(_contents(table, name, batch.column(ROW_ADDRESS), kept))
    if not pc.any(is_external).as_py():
        return texts
    return pc.if_else(is_external, json_text(pc.struct_field(descriptions, "blob_uri")), texts)


def _contents(table: Table, name: str, addresses: pa.Array, wanted: pa.Array) -> pa.Array:
    """The bytes of the wanted rows, null for the others."""
    count = pc.sum(wanted).as_py()
    if not count:
        return pa.nulls(len(addresses), pa.large_binary())
    with storage_errors(f"reading blobs of {table.location}"):
        found = table.dataset().read_blobs(
            name, addresses=addresses.filter(wanted), preserve_order=True
        )
    contents = pa.array(list(map(itemgetter(1), found)), pa.large_binary())
    if count == len(addresses):
        return contents
    places = np.cumsum(wanted.to_numpy(zero_copy_only=False)) - 1
    return contents.take(pc.if_else(wanted, pa.array(places), pa.scalar(None, pa.int64())))
