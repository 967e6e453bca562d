"""Blobs as bytes, for columns that can hold nothing else.

Owns the refusal of content that is not in the graph: such a column has no place for an
address, and what it leads to is never opened.
"""

from __future__ import annotations

from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

# What Lance writes into a description for a blob that is a reference.
_EXTERNAL = 3


def blob_bytes(table: Table, rows: pa.RecordBatch, name: str) -> pa.Array:
    """The bytes of a column of descriptions; the rows have their addresses too."""
    descriptions = rows.column(name)
    _refuse_references(descriptions, name)
    present = descriptions.is_valid()
    addresses = rows.column(ROW_ADDRESS).filter(present)
    if not len(addresses):
        return pa.nulls(rows.num_rows, pa.large_binary())
    with storage_errors(f"reading blobs of {table.location}"):
        found = table.dataset().read_blobs(name, addresses=addresses, preserve_order=True)
    contents = pa.array(list(map(itemgetter(1), found)), pa.large_binary())
    places = np.cumsum(present.to_numpy(zero_copy_only=False)) - 1
    return contents.take(pc.if_else(present, pa.array(places), pa.scalar(None, pa.int64())))


def _refuse_references(descriptions: pa.Array, name: str) -> None:
    outside = pc.equal(pc.struct_field(descriptions, "kind"), _EXTERNAL).fill_null(fill_value=False)
    if not pc.any(outside).as_py():
        return
    uri = pc.struct_field(descriptions, "blob_uri").filter(outside)[0].as_py()
    raise BadRequest(
        f"the column {name} has content outside of the graph ({uri}), which a column of bytes"
        " cannot show: leave the column out, or export as jsonl",
        details={"column": name, "uri": uri},
    )
