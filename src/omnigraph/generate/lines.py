"""Lines: rows as text, NDJSON envelopes or CSV records, whole columns at a time.

Owns the spelling of both formats, also for a single row given as values. Every line ends with a
newline and has no other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.generate.prose import joined

Kind = Literal["node", "edge"]
Piece: TypeAlias = pa.Array | str
_ENDS = {"src": "from", "dst": "to"}


# -- NDJSON ------------------------------------------------------------------------


def json_lines(name: str, kind: Kind, table: pa.Table) -> pa.Array:
    """The envelopes of rows; a property without a value is left out."""
    parts: list[Piece] = [f'{{"type":"{name}"' if kind == "node" else f'{{"edge":"{name}"']
    columns = {column: table.column(column).combine_chunks() for column in table.column_names}
    if kind == "edge":
        for end, member in _ENDS.items():
            parts += [f',"{member}":', *_json_pieces(columns.pop(end))]
    if columns:
        # The first is never null: a comma before it would be one too many.
        opening = ',"data":{'
        for column, values in columns.items():
            member_pieces = [f'{opening}"{column}":', *_json_pieces(values)]
            # Joined at once where possible: every further join copies all texts again.
            parts += [joined(*member_pieces).fill_null("")] if values.null_count else member_pieces
            opening = ","
        parts.append("}")
    return joined(*parts, "}\n")


def json_line(name: str, kind: Kind, row: Mapping[str, Any]) -> str:
    """The envelope of one row, which may have any members and values."""
    data = {column: _plain(value) for column, value in row.items()}
    envelope: dict[str, Any] = {"type" if kind == "node" else "edge": name}
    if kind == "edge":
        envelope |= {member: data.pop(end) for end, member in _ENDS.items()}
    if data:
        envelope["data"] = data
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")) + "\n"


def _json_pieces(values: pa.Array) -> list[Piece]:
    """What the texts of values are joined from."""
    if pa.types.is_string(values.type):
        return ['"', _escaped(values), '"']
    if pa.types.is_list(values.type):
        return [_json_lists(values)]
    texts = _texts(values)
    return ['"', texts, '"'] if _is_temporal(values.type) else [texts]


def _json_lists(values: pa.Array) -> pa.Array:
    items = joined(*_json_pieces(values.flatten()))
    lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), items)
    texts = joined("[", pc.binary_join(lists, ","), "]")
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def _escaped(values: pa.Array) -> pa.Array:
    """The words have quotes and backslashes at most, and most columns have neither."""
    for character in ("\\", '"'):
        if _has(values, character):
            values = pc.replace_substring(values, character, f"\\{character}")
    return values


# -- CSV ---------------------------------------------------------------------------


def csv_header(columns: Sequence[str]) -> str:
    """The first line."""
    return ",".join(columns) + "\n"


def csv_lines(table: pa.Table) -> pa.Array:
    """The records of rows: text always in quotes, nothing at all for null, lists as JSON."""
    parts: list[Piece] = []
    for column in table.column_names:
        parts += [",", *_csv_pieces(table.column(column).combine_chunks())]
    return joined(*parts[1:], "\n")


def csv_line(row: Mapping[str, Any]) -> str:
    """The record of one row, which may have any values."""
    return ",".join(map(_csv_cell, row.values())) + "\n"


def _csv_pieces(values: pa.Array) -> list[Piece]:
    if pa.types.is_list(values.type):
        values = _json_lists(values)
    elif not pa.types.is_string(values.type):
        return [_texts(values).fill_null("")]
    if _has(values, '"'):
        values = pc.replace_substring(values, '"', '""')
    quoted: list[Piece] = ['"', values, '"']
    return [joined(*quoted).fill_null("")] if values.null_count else quoted


def _csv_cell(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, list):
        plain = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    if isinstance(plain, str) and not isinstance(value, date):
        return '"' + plain.replace('"', '""') + '"'
    return plain if isinstance(plain, str) else json.dumps(plain)


# -- values ------------------------------------------------------------------------


def _texts(values: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(values.type):
        local = values.cast(pa.int64()).cast(pa.timestamp("ms")).cast(pa.timestamp("s"))
        return joined(pc.binary_replace_slice(local.cast(pa.string()), 10, 11, "T"), "Z")
    return values.cast(pa.string())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat() if isinstance(value, date) else value


def _is_temporal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def _has(texts: pa.Array, character: str) -> bool:
    data = texts.buffers()[2]
    return data is not None and bool((np.frombuffer(data, np.uint8) == ord(character)).any())
