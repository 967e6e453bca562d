"""Records: envelopes that are Python's own values, written as NDJSON.

Owns how such values are spelled. Never decides whether a value fits: bytes where no Blob is
wanted are written as something that no property takes.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import date
from itertools import islice
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog, PropertyDef
from omnigraph.write.load.columns.cells import BASE64
from omnigraph.write.load.ndjson.values import BYTES

_AT_ONCE = 8192
_BYTES = (bytes, bytearray, memoryview)


def encode_records(records: Iterator[Any], catalog: Catalog) -> Iterator[bytes]:
    """Envelopes as NDJSON, some thousands at a time."""
    nodes, edges = catalog.nodes.values(), catalog.edges.values()
    every = [*(one.properties for one in nodes), *(one.properties for one in edges)]
    has_blobs = any(one.type.is_blob for properties in every for one in properties.values())
    number = 0
    while chunk := list(islice(records, _AT_ONCE)):
        if not all(map(_is_mapping, chunk)):
            at = next(at for at, one in enumerate(chunk) if not _is_mapping(one))
            found = type(chunk[at]).__name__
            raise BadRequest(f"record {number + at + 1} must be a dict, found {found}")
        if has_blobs:
            chunk = [_with_blobs(record, catalog) for record in chunk]
        try:
            yield ("\n".join(map(_ENCODER.encode, chunk)) + "\n").encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise _unwritable(chunk, number, error) from None
        number += len(chunk)


def _is_mapping(record: object) -> bool:
    return isinstance(record, dict)


def _with_blobs(record: dict[Any, Any], catalog: Catalog) -> dict[Any, Any]:
    """The record with the bytes of its Blobs as their text."""
    data = record.get("data")
    if not isinstance(data, dict):
        return record
    known = _properties(record, catalog)
    written = {
        name: BASE64 + b64encode(value).decode()
        for name, value in data.items()
        if isinstance(value, _BYTES) and name in known and known[name].type.is_blob
    }
    return {**record, "data": {**data, **written}} if written else record


def _properties(record: dict[Any, Any], catalog: Catalog) -> Mapping[str, PropertyDef]:
    node, edge = record.get("type"), record.get("edge")
    if isinstance(node, str) and node in catalog.nodes:
        return catalog.nodes[node].properties
    found = catalog.find_edge(edge) if isinstance(edge, str) else None
    return {} if found is None else found.properties


def _unwritable(chunk: list[Any], number: int, error: Exception) -> BadRequest:
    for at, record in enumerate(chunk):
        try:
            _ENCODER.encode(record).encode()
        except (TypeError, ValueError, RecursionError) as found:
            return BadRequest(f"record {number + at + 1} cannot be written as JSON: {found}")
    return BadRequest(f"the records cannot be written as JSON: {error}")


def _encode(value: object) -> object:
    if isinstance(value, _BYTES):
        return {BYTES: len(value)}
    if isinstance(value, date):
        return value.isoformat()
    # NumPy's numbers and arrays say this of themselves.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is no value of a property")


# Not msgspec: that writes bytes as bare base64, which a String would take for text.
_ENCODER = json.JSONEncoder(default=_encode, ensure_ascii=False, allow_nan=False)
