"""Type batches: the rows one statement or one load gives to one type.

Owns their shape: columns in the order of the stored table, ids filled in. The
same batches are made in this process and inside Spark tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.tables.columns import plain_blobs, table_columns
from omnigraph.write.rules.violations import NoSource, SourceMap

EntityType = NodeType | EdgeType


def type_key(type_: EntityType) -> str:
    """The name of a type's table: `node:Person`."""
    return f"{type_.kind}:{type_.name}"


def find_type(catalog: Catalog, key: str) -> EntityType:
    """The type of a table's name."""
    kind, name = key.split(":", 1)
    types: Mapping[str, EntityType] = catalog.nodes if kind == "node" else catalog.edges
    return types[name]


def row_schema(type_: EntityType) -> pa.Schema:
    """The columns of a type's table: `id`, for edges `src` and `dst`, then properties by name."""
    structural = ("id",) if isinstance(type_, NodeType) else ("id", "src", "dst")
    return table_columns(structural, {name: p.type for name, p in type_.properties.items()})


def row_columns(type_: EntityType) -> pa.Schema:
    """The same columns as rows in memory have them: a blob is plain bytes."""
    return plain_blobs(row_schema(type_))


@dataclass(frozen=True, slots=True)
class TypeBatch:
    """Rows of one type that came in together.

    ``rows`` has exactly the columns of `row_columns`. ``fresh`` marks the rows whose ids
    were made up here, so that no stored row can have them; None means all of them.
    """

    type: EntityType
    rows: pa.Table
    fresh: pa.BooleanArray | None = None
    places: SourceMap = field(default_factory=NoSource)
