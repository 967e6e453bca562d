"""Export: one snapshot as NDJSON, in an order that depends on nothing but its content.

Owns writing it to a file: all of it or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityKind, NodeType, unknown_type
from omnigraph.lang.structural import DST, EDGE_COLUMNS, ID, NODE_COLUMNS, SRC, spelling
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.output.json_text import (
    blob_text,
    end_text,
    join_texts,
    json_text,
    within_bytes,
)
from omnigraph.rows.external_sort import DEFAULT_LIMITS, SortLimits
from omnigraph.rows.json_strings import text_bytes
from omnigraph.storage.objects.files import replaced_file
from omnigraph.storage.tables.sorted_scan import sorted_batches
from omnigraph.storage.tables.table import Table

FORMATS: Final = ("jsonl",)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines of one type, each with its newline."""

    kind: EntityKind
    type_name: str
    rows: int
    data: bytes


class Export(Iterator[str]):
    """The lines of an export, one after the other, without their newlines.

    ``chunks`` gives the same text in large pieces, from the start every time:
    for a file or a socket.
    """

    def __init__(
        self,
        tables: Sequence[tuple[NodeType | EdgeType, Table]],
        limits: SortLimits = DEFAULT_LIMITS,
    ) -> None:
        self.tables = tuple(tables)
        self._limits = limits
        self._lines = self._split()

    def __next__(self) -> str:
        return next(self._lines)

    def _split(self) -> Iterator[str]:
        for chunk in self.chunks():
            # Not splitlines: text may contain line separators that JSON does not escape.
            yield from chunk.data.decode().split("\n")[:-1]

    def chunks(self) -> Iterator[Chunk]:
        """The lines in pieces of some megabytes.

        >>> [chunk.rows for chunk in graph.export().chunks()]
        [3, 2, 2]
        """
        for type_, table in self.tables:
            yield from _chunks_of(type_, table, self._limits)


def open_export(
    snapshot: Snapshot,
    catalog: Catalog,
    types: Sequence[str] | None = None,
    format: str = "jsonl",  # noqa: A002 - the word of the public API
    *,
    limits: SortLimits = DEFAULT_LIMITS,
) -> Export:
    """The export of a snapshot, or of the types of these names; a wrong name is refused at once.

    ``catalog`` is that of the snapshot's own schema.
    """
    if format not in FORMATS:
        raise BadRequest(f"cannot export as {format!r}: the formats are {', '.join(FORMATS)}")
    found = [
        (type_, snapshot.table(type_.kind, type_.name).pinned)
        for type_ in _selected(catalog, types)
    ]
    return Export(found, limits)


def _selected(catalog: Catalog, types: Sequence[str] | None) -> list[NodeType | EdgeType]:
    """The types to write, ordered by type key: edges, then nodes, each by name."""
    every: list[NodeType | EdgeType] = [*catalog.edges.values(), *catalog.nodes.values()]
    every.sort(key=lambda type_: (type_.kind, type_.name))
    wanted = {types} if isinstance(types, str) else set(types or ())
    names = {type_.name for type_ in every}
    for name in sorted(wanted - names):
        raise unknown_type(name, names)
    return [type_ for type_ in every if not wanted or type_.name in wanted]


# -- rows --------------------------------------------------------------------------


def _chunks_of(type_: NodeType | EdgeType, table: Table, limits: SortLimits) -> Iterator[Chunk]:
    if not table.pin.row_count:
        return
    structural = NODE_COLUMNS if type_.kind == "node" else EDGE_COLUMNS
    stored = set(table.schema.names)
    present = [name for name in type_.properties if name in stored]
    blobs = [name for name in present if type_.properties[name].type.is_blob]
    batches = sorted_batches(
        table, [*structural, *present], with_row_address=bool(blobs), limits=limits
    )
    for batch in batches:
        for rows in within_bytes(batch, blobs):
            texts = {
                name: blob_text(table, rows, name) if name in blobs else json_text(rows[name])
                for name in (ID, *present)
            }
            if isinstance(type_, EdgeType):
                texts |= {end: end_text(type_, end, rows[end]) for end in (SRC, DST)}
            lines = _lines(type_, texts)
            yield Chunk(type_.kind, type_.name, rows.num_rows, text_bytes(lines).tobytes())


def _lines(type_: NodeType | EdgeType, texts: dict[str, pa.Array]) -> pa.Array:
    """One JSON object and a newline per row; a property that is not stored is null."""
    name, id_ = _json(type_.name), _json(spelling(ID, type_.properties))
    parts: list[pa.Array | str] = []
    if type_.kind == "edge":
        parts += [f'{{"edge":{name},"from":', texts[SRC], ',"to":', texts[DST]]
        parts += [f',"data":{{{id_}:', texts[ID]]
    else:
        parts += [f'{{"type":{name},"data":{{{id_}:', texts[ID]]
    for property_ in type_.properties:
        parts += [f",{_json(property_)}:", texts.get(property_, "null")]
    return join_texts(*parts, "}}\n")


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote: how many entities of every type, and how many bytes."""

    path: str
    nodes: dict[str, int]
    edges: dict[str, int]
    bytes: int

    @property
    def total(self) -> int:
        """How many entities, which is how many lines."""
        return sum(self.nodes.values()) + sum(self.edges.values())


def write_export(export: Export, path: str | Path) -> ExportReport:
    """Write all lines to a local file, replacing it in one step when they are complete."""
    target = _target(path)
    counts: dict[EntityKind, dict[str, int]] = {"node": {}, "edge": {}}
    for type_, _ in export.tables:
        counts[type_.kind][type_.name] = 0
    size = 0
    try:
        with replaced_file(target) as file:
            for chunk in export.chunks():
                file.write(chunk.data)
                counts[chunk.kind][chunk.type_name] += chunk.rows
                size += len(chunk.data)
    except OSError as error:
        raise BadRequest(f"cannot write {target}: {error.strerror or error}") from None
    return ExportReport(str(path), counts["node"], counts["edge"], size)


def _target(path: str | Path) -> Path:
    if "://" in str(path):
        raise BadRequest(f"cannot export to {path}: give the path of a local file")
    # A link keeps its place: what it points to is replaced.
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise BadRequest(f"cannot export to {path}: it is there and not a file")
    return target
