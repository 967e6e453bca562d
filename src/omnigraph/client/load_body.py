"""What is loaded, as the body of one request: NDJSON, whatever form it was handed over in.

Owns which forms can be sent, and the limit of a request. Never decides whether a row is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from omnigraph.errors import BadRequest, NotServed, ResourceLimit
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.load.input import (
    SUFFIXES,
    PathInput,
    RecordInput,
    TextInput,
    classify,
)
from omnigraph.write.load.records import encode_records
from omnigraph.write.load.streams import read_file

LIMIT = 32 << 20
"""How many bytes one request may carry."""


def load_body(data: object, catalog: Callable[[], Catalog]) -> bytes:
    """The lines of a load; the catalog is asked for where bytes have to become a Blob's text."""
    match classify(data):
        case TextInput(pieces):
            return _joined(pieces)
        case PathInput(paths):
            return _joined(
                _with_newline(read_file(file)) for path in paths for file in _files(path)
            )
        case RecordInput(records):
            return _joined(_encoded(records, catalog))
    raise NotServed(
        "a server takes NDJSON: give lines, envelope records or .jsonl files; frames are loaded by "
        "whoever can open the storage of the graph"
    )


def _joined(pieces: Iterable[bytes]) -> bytes:
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > LIMIT:
            raise ResourceLimit(
                f"one request carries at most {LIMIT >> 20} MiB: load it in parts, or open the "
                "storage of the graph and load it there",
                details={
                    "resource": "graph_batch_request_bytes",
                    "limit": LIMIT,
                    "actual": len(body),
                },
            )
    return bytes(body)


def _with_newline(text: bytes) -> bytes:
    return text if not text or text.endswith(b"\n") else text + b"\n"


def _encoded(records: Iterator[Any], catalog: Callable[[], Catalog]) -> Iterator[bytes]:
    every = list(records)
    known = catalog() if any(map(_has_bytes, every)) else Catalog("")
    return encode_records(iter(every), known)


def _has_bytes(record: object) -> bool:
    data = record.get("data") if isinstance(record, Mapping) else None
    if not isinstance(data, Mapping):
        return False
    return any(isinstance(value, bytes | bytearray | memoryview) for value in data.values())


def _files(path: object) -> Iterator[Path]:
    text = str(path)
    if "://" in text and not text.startswith("file://"):
        raise NotServed(f"{text} is not read here: a server takes files of this machine")
    place = Path(text.removeprefix("file://")).expanduser()
    if place.is_dir():
        found = sorted(one for one in place.rglob("*") if one.suffix in SUFFIXES)
    elif not place.exists() and has_magic(text):
        found = [Path(one) for one in sorted(glob(str(place), recursive=True))]  # noqa: PTH207 - of any root
    else:
        found = [place]
    if not found:
        raise BadRequest(f"there is nothing to load at {text}")
    for one in found:
        if one.exists() and one.suffix not in (*SUFFIXES, ""):
            raise NotServed(
                f"a server takes NDJSON, and {one} is not that (.jsonl, .ndjson): open the storage "
                "of the graph to load tables"
            )
        yield one
