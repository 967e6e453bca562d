"""NDJSON: lines of envelopes decoded into one batch for each type.

Owns the order of the steps: split, group by type, read in bulk, read what was refused
exactly, tell all problems together. Never checks rules that need more than one line.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.change.type_batch import EntityType, TypeBatch
from omnigraph.write.load.columns.typed_rows import finish
from omnigraph.write.load.ndjson.envelopes import CHUNK, group_by_type
from omnigraph.write.load.ndjson.exact import read_exact
from omnigraph.write.load.ndjson.line_errors import LineErrors, raise_together
from omnigraph.write.load.ndjson.lines import Lines, NdjsonSource
from omnigraph.write.load.ndjson.locate import LinePlaces
from omnigraph.write.load.ndjson.typed_lines import read_bulk

__all__ = ["NdjsonSource", "decode_ndjson"]


def decode_ndjson(sources: Sequence[NdjsonSource], catalog: Catalog) -> list[TypeBatch]:
    """The rows of all sources, one batch for each type, in the order of the type keys.

    Raises one ValidationError for all that is wrong, or ResourceLimit for a line that is
    too large.
    """
    lines = Lines(sources)
    where = lines.where()
    every = [LineErrors(where)]
    groups = group_by_type(lines.texts, catalog, is_utf8=are_utf8(sources), problems=every[0])
    read: list[tuple[EntityType, pa.Table | None, np.ndarray]] = []
    for type_, ordinals in groups:
        every.append(LineErrors(where))
        table = read_lines(type_, lines.select(ordinals), ordinals, every[-1])
        read.append((type_, table, ordinals))
    raise_together(every)
    return [
        finish(type_, table, LinePlaces(where, ordinals, of_edges=type_.kind == "edge"))
        for type_, table, ordinals in read
        if table is not None
    ]


def read_lines(
    type_: EntityType, lines: list[bytes], ordinals: np.ndarray, problems: LineErrors
) -> pa.Table | None:
    """The columns of lines whose type is known, or None if some of them have problems."""
    table = read_bulk(type_, lines)
    if table is not None:
        return table
    # Mostly one line is wrong: the chunks without it are quick to read again.
    parts = []
    for start in range(0, len(lines), CHUNK):
        some = lines[start : start + CHUNK]
        part = read_bulk(type_, some) if len(lines) > CHUNK else None
        if part is None:
            part = read_exact(type_, some, ordinals[start : start + CHUNK].tolist(), problems)
        if part is not None:
            parts.append(part)
    return None if problems.total else pa.concat_tables(parts)


def are_utf8(sources: Sequence[NdjsonSource]) -> bool:
    """Whether all of the text is right by itself, so that no line need be looked at for it."""
    return all(map(_is_utf8, sources))


def _is_utf8(source: NdjsonSource) -> bool:
    if source.data.isascii():
        return True
    try:
        source.data.decode()
    except UnicodeDecodeError:
        return False
    return True
