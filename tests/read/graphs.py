"""A graph with every type of property, and rows written to it as a load would leave them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import omnigraph as og
from omnigraph.lang.structural import spelling
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.read.output.export import Export, open_export
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.table import Table
from tests.table_writes import insert

SCHEMA = """\
node Person {
    name: String @key
    joined: Date?
    age: I32?
    tags: [String]?
}

node Sample {
    yes: Bool?
    i32: I32?
    i64: I64?
    u32: U32?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    moment: DateTime?
    kind: enum(a, b)?
    flags: [Bool]?
    numbers: [I64]?
    halves: [F64]?
    days: [Date]?
    moments: [DateTime]?
    vector: Vector(2)?
    blob: Blob?
}

edge Knows: Person -> Person {
    since: Date?
    note: String?
}
"""


def make_graph(root: Path) -> og.Graph:
    """A graph without rows."""
    return og.init(root, SCHEMA)


def add_rows(graph: og.Graph, key: str, rows: list[dict[str, Any]], branch: str = "main") -> None:
    """Append rows to the table of a type key such as `node:Person`, and publish them.

    They are spelled as people do: `id`, `src`, `dst`.
    """
    shown = graph.snapshot(branch).tables[key]
    table = Table(graph.location.join(shown.table.path), shown.pin)
    labels = {name: spelling(name, table.schema.names) for name in table.schema.names}
    columns = [
        _column(field, [row.get(labels[field.name]) for row in rows]) for field in table.schema
    ]
    pin = insert(table, pa.table(columns, schema=table.schema))
    change = AdvanceTable(shown.identity, shown.version, pin)
    graph.manifest.publish(
        graph.manifest.branch_id(branch), PublishRequest(PendingCommit.mint(None), (change,))
    )


def _column(field: pa.Field, values: list[Any]) -> Any:
    if not is_blob(field):
        return pa.array(values, field.type)
    # Without the wrapping, empty would be written as null.
    return lance.blob_array([lance.Blob.empty() if value == b"" else value for value in values])


def export_of(
    graph: og.Graph,
    types: list[str] | None = None,
    *,
    branch: str = "main",
    limits: SortLimits = DEFAULT_LIMITS,
) -> Export:
    """The export of a branch."""
    shown = graph.snapshot(branch)
    return open_export(shown, catalog_of(shown.schema), types, limits=limits)
