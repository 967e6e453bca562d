"""Columns of tables: the fields that typed properties are stored in, and schemas of Lance.

Owns their order, how a column of blobs is told, and Lance schemas with their field ids, which
are never given out twice: renumbering would corrupt what is stored. Never says what a table is
for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import lance
import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.lang.types import ValueType
from omnigraph.rows.arrow_types import arrow_type
from omnigraph.storage.tables.table import BLOB

if TYPE_CHECKING:
    from lance.schema import LanceSchema

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
