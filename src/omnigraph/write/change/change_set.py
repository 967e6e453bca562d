"""Change sets: what a write does to each type, as rows in memory.

Owns the batches that statements and loads give to a type, and how they add up. Never looks at
what is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.tables.columns import plain_blobs, table_columns
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID
from omnigraph.write.rules.violations import NoSource, SourceMap

Rows = npt.NDArray[np.int64]


def located_columns(type_: EntityType) -> tuple[str, ...]:
    """What is kept of a stored row that is replaced or deleted: its id, and its endpoints."""
    return ("id", "src", "dst") if isinstance(type_, EdgeType) else ("id",)


def no_located(type_: EntityType) -> pa.Table:
    """No stored rows."""
    fields = [pa.field(name, pa.string()) for name in located_columns(type_)]
    fields += [pa.field(name, pa.uint64()) for name in (ROW_ID, ROW_ADDRESS)]
    return pa.schema(fields).empty_table()


@dataclass(frozen=True, slots=True)
class TypeChange:
    """What happens to one type.

    ``rows`` is the final image of what is written, one row per id; ``batches`` are
    the inputs whose own rows must not contradict each other. ``existing`` are the stored rows that
    ``rows`` replace, ``deleted`` those that go, both with row ids and addresses.
    ``replaces_all`` makes ``rows`` the whole table. A strict write refuses ids that are
    stored already, or that its input repeats.
    """

    type: EntityType
    rows: pa.Table
    existing: pa.Table
    deleted: pa.Table
    batches: tuple[TypeBatch, ...] = ()
    places: SourceMap = field(default_factory=NoSource)
    replaces_all: bool = False
    refuses_existing: bool = False
    refuses_repeats: bool = False

    @property
    def type_key(self) -> str:
        """The name of the type's table."""
        return type_key(self.type)

    @property
    def is_empty(self) -> bool:
        """Whether nothing happens."""
        return not (self.rows.num_rows or self.deleted.num_rows or self.replaces_all)

    @property
    def ids(self) -> pa.Array:
        """The ids of the written rows."""
        return self.rows.column("id").combine_chunks()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """What a write does, by type key.

    ``repeatable`` says that it may be prepared again from the same request when its
    read set has changed: inserts and upserts may, what was decided on rows may not.
    """

    types: Mapping[str, TypeChange]
    repeatable: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing happens at all."""
        return all(change.is_empty for change in self.types.values())

    @property
    def size(self) -> int:
        """Bytes that will be written, roughly."""
        return sum(change.rows.nbytes for change in self.types.values())

    def get(self, key: str) -> TypeChange | None:
        """The change of one type."""
        return self.types.get(key)


def among(rows: pa.Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows whose id is one of these."""
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return rows.filter(pc.is_in(rows.column("id"), value_set=ids))


def without(rows: pa.Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows whose id is not among these."""
    if not rows.num_rows or not len(ids):
        return rows
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return rows.filter(pc.invert(pc.is_in(rows.column("id"), value_set=ids)))


def last_of_each_id(rows: pa.Table) -> Rows | None:
    """Where the last row of each id stands, in the order of the rows; None if none is repeated."""
    codes, distinct = _codes(rows.column("id"))
    if distinct == len(codes):
        return None
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last)


def repeated_rows(keys: pa.Array | pa.ChunkedArray) -> tuple[Rows, Rows]:
    """The rows whose key an earlier one has, and the first that has it; a null is no key."""
    rows = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
    codes, distinct = _codes(keys if len(rows) == len(keys) else keys.drop_null())
    if distinct == len(codes):
        return rows[:0], rows[:0]
    first = np.empty(distinct, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    again = np.flatnonzero(first[codes] != np.arange(len(codes)))
    return rows[again], rows[first[codes[again]]]


def _codes(keys: pa.Array | pa.ChunkedArray) -> tuple[npt.NDArray[np.int32], int]:
    """A number for each key, equal for equal keys, and how many there are."""
    whole = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    encoded = whole.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


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
