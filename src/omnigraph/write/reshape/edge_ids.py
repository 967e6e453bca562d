"""Ids of edges that get a key: every row is written again under the id that its key gives it.

Owns that rewriting; rows keep their row ids. That no two rows have one key is checked before.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import ID
from omnigraph.storage.tables.table import ROW_ADDRESS, Stamp, Table, TablePin
from omnigraph.storage.tables.write_rows import WrittenRows, apply_rows, write_streams
from omnigraph.write.change.change_set import key_texts
from omnigraph.write.publish.read_set import has_blobs


def rekey_edges(
    edge: NodeType | EdgeType, table: Table, stamp: Stamp
) -> tuple[WrittenRows, TablePin]:
    """Write all edges of a table again with the ids of their key, as one detached commit."""
    gone: list[pa.Array] = []
    with_blobs = has_blobs(table.schema)

    def rows() -> Iterator[pa.Table]:
        batches = table.batches(
            None, with_row_id=True, with_row_address=True, with_blobs=with_blobs
        )
        for batch in batches:
            gone.append(batch.column(ROW_ADDRESS))
            read = pa.Table.from_batches([batch]).drop_columns([ROW_ADDRESS])
            yield with_key_ids(edge, read)

    written = write_streams(table, rows(), ())
    return written, apply_rows(table, written, pa.chunked_array(gone, pa.uint64()), stamp)


def with_key_ids(edge: NodeType | EdgeType, rows: pa.Table) -> pa.Table:
    """Edges with the ids that their key gives them."""
    position = rows.schema.get_field_index(ID)
    ids = key_texts(edge, edge.key, rows)
    return rows.set_column(position, rows.schema.field(position), ids)
