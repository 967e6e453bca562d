"""Change sets: what a write does to each type, as rows in memory.

Owns the batches that statements and loads give to a type, how they add up, and the ids of rows,
whole columns at a time: the canonical ones of keyed rows and fresh ones. Never looks at what is
stored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.schema.keys import canonical_float
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.lang.types import FLOATS, Scalar
from omnigraph.rows.json_strings import json_arrays
from omnigraph.rows.references import nodes_of
from omnigraph.storage.tables.columns import plain_blobs, table_columns
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID
from omnigraph.write.rules.violations import NoSource, SourceMap

Rows = npt.NDArray[np.int64]

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_HALF = 8
"""A ULID's random part is two halves of 40 bits, eight letters each."""
_LOW_BITS = np.uint64(40)
_LOW = (1 << 40) - 1
_TIME = 10
_LENGTH = _TIME + 2 * _HALF


def located_columns(type_: EntityType) -> tuple[str, ...]:
    """What is kept of a stored row that is replaced or deleted: its id, and its endpoints."""
    return (ID, SRC, DST) if isinstance(type_, EdgeType) else (ID,)


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
        return self.rows.column(ID).combine_chunks()


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
    return rows.filter(pc.is_in(rows.column(ID), value_set=ids))


def without(rows: pa.Table, ids: pa.Array | pa.ChunkedArray) -> pa.Table:
    """The rows whose id is not among these."""
    if not rows.num_rows or not len(ids):
        return rows
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    return rows.filter(pc.invert(pc.is_in(rows.column(ID), value_set=ids)))


def last_of_each_id(rows: pa.Table) -> Rows | None:
    """Where the last row of each id stands, in the order of the rows; None if none is repeated."""
    codes, distinct = _codes(rows.column(ID))
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
    """The columns of a type's table: the structural ones, then properties by name."""
    structural = (ID,) if isinstance(type_, NodeType) else (ID, SRC, DST)
    return table_columns(structural, {name: p.type for name, p in type_.properties.items()})


def row_columns(type_: EntityType) -> pa.Schema:
    """The same columns as rows in memory have them: a blob is plain bytes."""
    return plain_blobs(row_schema(type_))


@dataclass(frozen=True, slots=True)
class TypeBatch:
    """Rows of one type that came in together.

    ``rows`` has exactly the columns of `row_columns`. ``fresh`` marks the rows whose ids
    were made up here, so that no stored row can have them; None means all of them. ``given`` marks,
    column by column, the cells of a patch that the input mentions; None means that rows are whole.
    """

    type: EntityType
    rows: pa.Table
    fresh: pa.BooleanArray | None = None
    places: SourceMap = field(default_factory=NoSource)
    given: pa.Table | None = None


def key_ids(type_: EntityType, rows: pa.Table) -> pa.Array:
    """The id that the key of a type gives to each row; null where a key member is null."""
    return key_texts(type_, type_.key, rows)


def key_texts(type_: NodeType | EdgeType, members: Sequence[str], rows: pa.Table) -> pa.Array:
    """The keys of rows as texts, equal only for equal keys; null where a member is null."""
    parts = [member_texts(type_, member, rows) for member in members]
    return parts[0] if len(parts) == 1 else json_arrays(parts)


def member_texts(type_: NodeType | EdgeType, member: str, rows: pa.Table) -> pa.Array:
    """The values of one member as texts; ends and ids are texts themselves."""
    property_ = type_.properties.get(member)
    scalar = property_.type.scalar if property_ is not None else Scalar.STRING
    texts = canonical_texts(rows.column(member), scalar)
    return texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()


def shown_ends(
    type_: EntityType, name: str, texts: pa.Array | pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    """A column as it is told: an end that may be of several types by the id of the node."""
    is_shared = isinstance(type_, EdgeType) and name in type_.shared
    return nodes_of(texts) if is_shared else texts


def canonical_texts(values: pa.ChunkedArray | pa.Array, scalar: Scalar) -> pa.ChunkedArray:
    """The canonical text of every value of a column; null stays null."""
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if scalar in FLOATS:
        return _float_texts(column, 32 if scalar is Scalar.F32 else 64)
    if scalar is Scalar.DATE:
        column = column.cast(pa.int32())
    elif scalar is Scalar.DATETIME:
        column = column.cast(pa.int64())
    return column.cast(pa.string())


def _float_texts(column: pa.ChunkedArray, width: Literal[32, 64]) -> pa.ChunkedArray:
    encoded = pc.dictionary_encode(column).unify_dictionaries()
    if encoded.num_chunks == 0:
        return pa.chunked_array([], pa.string())
    # One text per distinct value: making one is exact arithmetic and slow.
    unique = encoded.chunk(0).dictionary.to_pylist()
    texts = pa.array(map(partial(canonical_float, width=width), unique), pa.string())
    return pa.chunked_array([texts.take(chunk.indices) for chunk in encoded.chunks], pa.string())


def fresh_ids(count: int) -> pa.Array:
    """So many new ULIDs of this moment, distinct and in ascending order."""
    high, low = _ascending_pairs(count)
    letters = np.empty((count, _LENGTH), dtype=np.uint8)
    letters[:, :_TIME] = _ALPHABET[_fives(np.uint64(time.time_ns() // 1_000_000), _TIME)]
    letters[:, _TIME : _TIME + _HALF] = _ALPHABET[_fives(high[:, None], _HALF)]
    letters[:, _TIME + _HALF :] = _ALPHABET[_fives(low[:, None], _HALF)]
    offsets = np.arange(count + 1, dtype=np.int64) * _LENGTH
    large = pa.LargeStringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))
    )
    return large.cast(pa.string())


def _ascending_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of 40-bit numbers that ascend by random steps from a random start."""
    start = int.from_bytes(os.urandom(_HALF + 2)) >> 1
    steps = np.frombuffer(os.urandom(4 * count), dtype=np.uint32).astype(np.uint64) + np.uint64(1)
    low = np.cumsum(steps, dtype=np.uint64) + np.uint64(start & _LOW)
    high = (low >> _LOW_BITS) + np.uint64(start >> int(_LOW_BITS))
    return high, low & np.uint64(_LOW)


def _fives(number: np.ndarray | np.uint64, digits: int) -> np.ndarray:
    """The lowest bits of numbers in groups of five, highest group first."""
    shifts = np.arange(digits - 1, -1, -1, dtype=np.uint64) * np.uint64(5)
    groups: np.ndarray = (number >> shifts) & np.uint64(31)
    return groups
