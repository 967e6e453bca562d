"""A schema with every type of property, and decoding lines against it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from omnigraph.errors import ValidationError
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.write.change.change_set import TypeBatch, row_schema, type_key
from omnigraph.write.load.ndjson.lines import NdjsonSource
from omnigraph.write.load.sifting import sift_lines

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    big: U64?
    small: F32?
    score: F64?
    active: Bool? @default(true)
    born: Date?
    seen: DateTime? @default("2020-01-01T00:00:00Z")
    tags: [String]?
    days: [Date]?
    face: Vector(3)?
    photo: Blob?
    mood: enum(sad, happy)?
    class: String? @default("none")
}
node Note { text: String
 from: String?
 src: I32? }
node Pair { a: F32
 b: String
 @key(a, b) }
node Doc { slug: String @key
 body: String?
 vector: Vector(2) @embed(body) }
edge Knows: Person -> Person { since: Date?
 weight: F32 @default(1.0) }
edge Likes: Person -> Note
"""
CATALOG = compile_schema(SCHEMA).catalog


def decode_ndjson(sources: Sequence[NdjsonSource]) -> list[TypeBatch]:
    return [one.batch for one in sift_lines(sources, CATALOG, strict=True).batches]


def decode(*lines: str | bytes, name: str | None = None) -> dict[str, TypeBatch]:
    data = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    batches = decode_ndjson([NdjsonSource(name, data)])
    keys = [type_key(batch.type) for batch in batches]
    assert keys == sorted(keys)
    for batch in batches:
        assert batch.rows.schema.names == row_schema(batch.type).names
    return dict(zip(keys, batches, strict=True))


def person(**data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": "Ann", **data}})


def one(key: str, line: str) -> dict[str, Any]:
    (row,) = decode(line)[key].rows.to_pylist()
    assert isinstance(row, dict)
    return row


def problems(*lines: str | bytes, name: str | None = None) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        decode(*lines, name=name)
    found = caught.value.details["violations"]
    assert caught.value.details["total"] == len(found)
    return [f"{one['line']}:{one['column']} {one['rule']} {one['message']}" for one in found]


def problem(line: str | bytes) -> str:
    (only,) = problems(line)
    return only
