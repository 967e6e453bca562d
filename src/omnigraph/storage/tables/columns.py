"""Columns of tables: the fields that typed properties are stored in, and changes of them.

Owns their order, how a column of blobs is told, and Lance schemas with their field ids, which
are never given out twice: renumbering would corrupt what is stored. Each change is one detached
commit. Never says what a table is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.lang.types import ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import BLOB, Stamp, Table, TablePin, commit_detached

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]

# Numbers of the protobuf message `lance.file.Field`.
_NAME = 2
_ID = 3
_PARENT = 4
_NO_PARENT = 2**64 - 1
_VARINT = 0
_BYTES = 2


def arrow_field(name: str, type_: ValueType) -> pa.Field:
    """The column of a property.

    It may hold nulls whatever the property may: that is a rule of the schema, which changes
    without the table, and rows that are written after it was dropped have none.
    """
    if type_.is_blob:
        return lance.blob_field(name, nullable=True)
    return pa.field(name, arrow_type(type_))


def table_columns(structural: Iterable[str], properties: Mapping[str, ValueType]) -> pa.Schema:
    """Structural text columns first, then the properties by name."""
    fields = [pa.field(name, pa.string(), nullable=False) for name in structural]
    fields += [arrow_field(name, properties[name]) for name in sorted(properties)]
    return pa.schema(fields)


def plain_blobs(schema: pa.Schema) -> pa.Schema:
    """The same columns with blobs as plain bytes."""
    return pa.schema(
        pa.field(column.name, pa.large_binary(), column.nullable) if is_blob(column) else column
        for column in schema
    )


def is_blob(column: pa.Field) -> bool:
    """Whether a column holds blobs."""
    return getattr(column.type, "extension_name", None) == BLOB


def add_columns(
    table: Table,
    added: pa.Schema,
    *,
    compute: Compute | None = None,
    reading: Sequence[str] | None = None,
    stamp: Stamp | None = None,
) -> TablePin:
    """Add columns: null everywhere, or computed from batches of the columns in ``reading``.

    Null columns write no data file at all. ``compute`` returns a batch with
    exactly the added columns for each batch it gets.
    """
    from lance import LanceOperation

    if not len(added):
        return table.pin
    if taken := set(added.names) & set(table.schema.names):
        raise StorageError(f"there is a column {min(taken)!r} already", kind="permanent")
    if compute is None and (strict := [field.name for field in added if not field.nullable]):
        raise StorageError(f"the new column {strict[0]!r} must allow null", kind="permanent")
    dataset = table.dataset()
    with storage_errors(f"adding columns to {table.location}"):
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        schema = extended(dataset.lance_schema, added, dataset.max_field_id)
    if compute is not None and fragments:
        fragments, schema = _computed(table, added, compute, reading)
    return commit_detached(table, LanceOperation.Merge(fragments, schema), stamp)


def drop_columns(table: Table, names: Collection[str], stamp: Stamp | None = None) -> TablePin:
    """Drop columns, and the indexes on them; the data files stay as they are."""
    _require(table, names)
    if not names:
        return table.pin
    return _project(table, without(table.dataset().lance_schema, names), stamp)


def rename_column(table: Table, old: str, new: str, stamp: Stamp | None = None) -> TablePin:
    """Give a column another name; its indexes follow."""
    _require(table, [old])
    if old == new:
        return table.pin
    if new in table.schema.names:
        raise StorageError(f"there is a column {new!r} already", kind="permanent")
    return _project(table, renamed(table.dataset().lance_schema, old, new), stamp)


def _project(table: Table, schema: LanceSchema, stamp: Stamp | None) -> TablePin:
    from lance import LanceOperation

    return commit_detached(table, LanceOperation.Project(schema), stamp)


def _computed(
    table: Table, added: pa.Schema, compute: Compute, reading: Sequence[str] | None
) -> tuple[list[FragmentMetadata], LanceSchema]:
    def checked(batch: pa.RecordBatch) -> pa.RecordBatch:
        return compute(batch).select(added.names).cast(added)

    fragments: list[FragmentMetadata] = []
    columns = None if reading is None else list(reading)
    with storage_errors(f"computing columns of {table.location}"):
        for fragment in table.dataset().get_fragments():
            merged, schema = fragment.merge_columns(checked, columns)
            fragments.append(merged)
    return fragments, schema


def _require(table: Table, names: Collection[str]) -> None:
    if missing := sorted(set(names) - set(table.schema.names)):
        raise StorageError(f"{table.location} has no column {missing[0]!r}", kind="not_found")


def without(schema: LanceSchema, names: Collection[str]) -> LanceSchema:
    """The schema without some top-level columns and all that is inside them."""
    metadata, messages = _split(schema)
    dropped: set[int] = set()
    kept: list[bytes] = []
    # Parents come before their children.
    for message in messages:
        field = _Field(message)
        inside = field.parent in dropped
        if inside or (field.parent == _NO_PARENT and field.name in names):
            dropped.add(field.id)
        else:
            kept.append(message)
    return _join(metadata, kept)


def renamed(schema: LanceSchema, old: str, new: str) -> LanceSchema:
    """The schema with another name for one top-level column, whose id stays."""
    metadata, messages = _split(schema)
    result: list[bytes] = []
    for message in messages:
        field = _Field(message)
        if field.parent == _NO_PARENT and field.name == old:
            field.name = new
        result.append(field.encoded())
    return _join(metadata, result)


def extended(schema: LanceSchema, added: pa.Schema, highest: int) -> LanceSchema:
    """The schema with more columns, numbered from the highest id the table ever used."""
    from lance.schema import LanceSchema

    metadata, messages = _split(schema)
    _, fresh = _split(LanceSchema.from_pyarrow(added))
    first = highest + 1
    result = list(messages)
    for message in fresh:
        field = _Field(message)
        field.id += first
        if field.parent != _NO_PARENT:
            field.parent += first
        result.append(field.encoded())
    return _join(metadata, result)


class _Field:
    """A field message: three known numbers, the rest carried along as it is."""

    def __init__(self, message: bytes) -> None:
        self.name = ""
        self.id = 0
        self.parent = 0
        self._rest = b""
        for number, value, raw in _parts(message):
            if number == _NAME and isinstance(value, bytes):
                self.name = value.decode()
            elif number == _ID and isinstance(value, int):
                self.id = value
            elif number == _PARENT and isinstance(value, int):
                self.parent = value
            else:
                self._rest += raw

    def encoded(self) -> bytes:
        name = self.name.encode()
        return b"".join(
            [
                _varint(_NAME << 3 | _BYTES) + _varint(len(name)) + name,
                _varint(_ID << 3 | _VARINT) + _varint(self.id),
                _varint(_PARENT << 3 | _VARINT) + _varint(self.parent),
                self._rest,
            ]
        )


def _split(schema: LanceSchema) -> tuple[str, tuple[bytes, ...]]:
    """What a schema is pickled from: its metadata and a message per field."""
    reduced: Any = schema.__reduce__()
    metadata, *messages = reduced[1]
    if not isinstance(metadata, str) or not all(isinstance(part, bytes) for part in messages):
        raise StorageError("this version of Lance pickles schemas otherwise", kind="permanent")
    return metadata, tuple(messages)


def _join(metadata: str, messages: Collection[bytes]) -> LanceSchema:
    from lance.schema import LanceSchema

    return LanceSchema._from_protos(metadata, *messages)  # noqa: SLF001 - what pickle calls


def _parts(message: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """Number, value and raw bytes of each part of a protobuf message."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        value: int | bytes
        match tag & 7:
            case 0:
                value, position = _read_varint(message, position)
            case 1:
                value, position = message[position : position + 8], position + 8
            case 2:
                length, position = _read_varint(message, position)
                value, position = message[position : position + length], position + length
            case 5:
                value, position = message[position : position + 4], position + 4
            case other:
                raise StorageError(f"unknown wire type {other} in a schema", kind="permanent")
        yield tag >> 3, value, message[start:position]


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
