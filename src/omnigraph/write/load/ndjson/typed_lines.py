"""Bulk reading: the lines of one type parsed all at once.

Owns the fast path. Either every line is right and comes out as a row, or the whole
chunk is refused without a reason; the exact path finds it. Never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.lang.schema.catalog import NodeType, PropertyDef
from omnigraph.lang.structural import DST, ID, SRC, spelling
from omnigraph.lang.types import FLOATS, Scalar
from omnigraph.write.change.change_set import EntityType, row_columns
from omnigraph.write.load.columns import cells
from omnigraph.write.load.columns.typed_rows import default_of, derived_ids, marked

_BLOCK = 1 << 22
_TEMPORAL = frozenset({Scalar.DATE, Scalar.DATETIME})
_STARTS_AS_NUMBER = re.compile(rb"\s*\[?\s*[-0-9]")
_NO_VALUE = msgspec.Raw(b"")
_NULL = msgspec.Raw(b"null")

_FROM_TEXT: dict[Scalar, Callable[[pa.Array], pa.Array]] = {
    Scalar.DATE: cells.days_of_texts,
    Scalar.DATETIME: cells.moments_of_texts,
    Scalar.BLOB: cells.blobs_of_texts,
}
_FROM_NUMBER: dict[Scalar, Callable[[pa.Array], pa.Array]] = {
    Scalar.DATE: cells.days_of_numbers,
    Scalar.DATETIME: cells.moments_of_numbers,
}


class _RefusedError(Exception):
    """Something is wrong, or unusual enough to be looked at line by line."""


def read_bulk(
    type_: EntityType, lines: Sequence[bytes], *, patches: bool = False
) -> pa.Table | None:
    """The columns of lines, each of which is known to be one JSON object; None if refused.

    Of ``patches`` only what addresses a row has to be there, and columns of marks tell what is.
    """
    try:
        return _read(type_, lines, frozenset(), patches=patches)
    except _RefusedError:
        pass
    try:
        return _read_mixed(type_, lines, patches=patches)
    except _RefusedError:
        return None


def _read_mixed(type_: EntityType, lines: Sequence[bytes], *, patches: bool) -> pa.Table:
    """Read lines in groups, by which of their dates are written as numbers."""
    names = sorted(n for n, p in type_.properties.items() if p.type.scalar in _TEMPORAL)
    if not names:
        raise _RefusedError
    as_number = [
        np.fromiter(map(bool, map(_STARTS_AS_NUMBER.match, raws)), dtype=bool, count=len(lines))
        for raws in _members(names, lines)
    ]
    signs = sum(mask.astype(np.int64) << bit for bit, mask in enumerate(as_number))
    kinds = np.unique(signs)
    if kinds.tolist() == [0]:
        raise _RefusedError
    parts, order = [], []
    for kind in kinds.tolist():
        chosen = signs == kind
        numeric = frozenset(name for bit, name in enumerate(names) if kind >> bit & 1)
        some = list(compress(lines, chosen.tolist()))
        parts.append(_read(type_, some, numeric, patches=patches))
        order.append(np.flatnonzero(chosen))
    return pa.concat_tables(parts).take(np.argsort(np.concatenate(order)))


def _read(
    type_: EntityType, lines: Sequence[bytes], numeric: frozenset[str], *, patches: bool
) -> pa.Table:
    text = b"\n".join(lines)
    parsed = _parse(_written_schema(type_, numeric), text, longest=max(map(len, lines)))
    if parsed.num_rows != len(lines):
        raise _RefusedError
    # Without the word nothing can be an explicit null, and every null is an absence.
    may_be_null = b"null" in text
    outer = parsed.column("data")
    if outer.null_count and may_be_null:
        (raws,) = _outer_members(("data",), lines)
        if _NULL in raws:
            raise _RefusedError
    inner = dict(zip((field.name for field in outer.type), outer.flatten(), strict=True))
    label = spelling(ID, type_.properties)
    columns = {ID: inner.pop(label)}
    if not isinstance(type_, NodeType):
        columns[SRC], columns[DST] = parsed["from"], parsed["to"]
        _require_ends(columns, lines, may_be_left_out=patches and not type_.key)
    given = {name: columns[name].is_valid() for name in (SRC, DST) if name in columns}
    asked = _asked_about(type_, columns[ID], inner, patches=patches) if may_be_null else []
    explicit = dict(zip(asked, _explicit_nulls(asked, lines), strict=True)) if asked else {}
    if (nulls := explicit.get(label)) is not None and nulls.any():
        raise _RefusedError
    stored = row_columns(type_)
    for name, property_ in type_.properties.items():
        column = _converted(property_, inner[name], as_number=name in numeric)
        is_whole = not patches or name in type_.key
        default = default_of(property_, stored.field(name).type) if is_whole else None
        if default is not None and column.null_count:
            column = _filled(column, default, explicit.get(name))
        if not is_whole:
            given[name] = _given(column, explicit.get(name))
        missing = column.null_count if is_whole else _any(explicit.get(name))
        if missing and not property_.type.nullable and property_.embedding is None:
            raise _RefusedError
        columns[name] = column
    table = _identified(type_, pa.table(columns).select(stored.names))
    if not patches:
        return table
    if table.column(ID).null_count:
        raise _RefusedError
    for name, marks in marked(given).items():
        table = table.append_column(name, marks)
    return table


def _given(column: pa.ChunkedArray, explicit: np.ndarray | None) -> pa.ChunkedArray:
    marks = column.is_valid()
    return marks if explicit is None else pc.or_(marks, pa.array(explicit))


def _any(marks: np.ndarray | None) -> bool:
    return marks is not None and bool(marks.any())


def _require_ends(
    columns: Mapping[str, pa.ChunkedArray], lines: Sequence[bytes], *, may_be_left_out: bool
) -> None:
    """An end is there, or else it is left out, where it may be; a null is neither."""
    missing = any(columns[end].null_count for end in (SRC, DST))
    if missing and not may_be_left_out:
        raise _RefusedError
    if missing and any(_NULL in raws for raws in _outer_members(("from", "to"), lines)):
        raise _RefusedError


def _identified(type_: EntityType, table: pa.Table) -> pa.Table:
    derived = derived_ids(type_, table)
    if derived is None:
        return table
    given = table.column(ID)
    if pc.any(pc.not_equal(given, derived)).as_py():
        raise _RefusedError
    return table.set_column(0, ID, derived)


def _parse(schema: pa.Schema, text: bytes, *, longest: int) -> pa.Table:
    try:
        return pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(block_size=max(_BLOCK, longest + 1)),
            parse_options=pj.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="error"
            ),
        )
    except pa.ArrowInvalid:
        raise _RefusedError from None


def _written_schema(type_: EntityType, numeric: frozenset[str]) -> pa.Schema:
    """Lines as the parser sees them: the envelope, and in it the data."""
    data = [pa.field(spelling(ID, type_.properties), pa.string())]
    stored = row_columns(type_)
    for name, property_ in type_.properties.items():
        kind = _written_type(property_, stored.field(name).type, as_number=name in numeric)
        data.append(pa.field(name, kind))
    heads = ("type",) if isinstance(type_, NodeType) else ("edge", "from", "to")
    return pa.schema([*((head, pa.string()) for head in heads), ("data", pa.struct(data))])


def _written_type(property_: PropertyDef, stored: pa.DataType, *, as_number: bool) -> pa.DataType:
    kind = property_.type
    if kind.is_vector:
        return pa.list_(pa.float32())
    if kind.scalar in _TEMPORAL or kind.is_blob:
        scalar = pa.int64() if as_number else pa.string()
        return pa.list_(scalar) if kind.is_list else scalar
    return stored


def _converted(
    property_: PropertyDef, column: pa.ChunkedArray, *, as_number: bool
) -> pa.ChunkedArray:
    kind = property_.type
    convert = (_FROM_NUMBER if as_number else _FROM_TEXT).get(kind.scalar)
    if kind.dimension is not None:
        size = kind.dimension
        column = _mapped(column, lambda chunk: cells.vectors_of_lists(chunk, size))
    elif convert is not None and kind.is_list:
        column = _mapped(column, lambda chunk: cells.in_lists(chunk, convert))
    elif convert is not None:
        column = _mapped(column, convert)
    inside = pc.list_flatten(column) if kind.is_list or kind.is_vector else column
    if inside is not column and inside.null_count:
        raise _RefusedError
    is_float = kind.is_vector or kind.scalar in FLOATS
    if is_float and pc.all(pc.is_finite(inside), min_count=0).as_py() is False:
        raise _RefusedError
    return column


def _mapped(column: pa.ChunkedArray, convert: Callable[[pa.Array], pa.Array]) -> pa.ChunkedArray:
    """A converted column; refused if a cell did not fit."""
    chunks = [convert(chunk) for chunk in column.chunks]
    converted = (
        pa.chunked_array(chunks)
        if chunks
        else pa.chunked_array([convert(pa.array([], column.type))])
    )
    if converted.null_count != column.null_count:
        raise _RefusedError
    return converted


def _filled(
    column: pa.ChunkedArray, default: pa.Scalar, explicit: np.ndarray | None
) -> pa.ChunkedArray:
    absent = pc.is_null(column)
    if explicit is not None:
        absent = pc.and_(absent, pa.array(~explicit))
    return pc.if_else(absent, default, column)


def _asked_about(
    type_: EntityType,
    ids: pa.ChunkedArray,
    inner: dict[str, pa.ChunkedArray],
    *,
    patches: bool,
) -> list[str]:
    """The members for which an explicit null and an absence are not the same."""
    asked = [spelling(ID, type_.properties)] if ids.null_count else []
    return asked + [
        name
        for name, property_ in type_.properties.items()
        if (patches or property_.default is not None) and inner[name].null_count
    ]


def _explicit_nulls(names: Sequence[str], lines: Sequence[bytes]) -> list[np.ndarray]:
    return [
        np.fromiter(map(_NULL.__eq__, raws), dtype=bool, count=len(lines))
        for raws in _members(names, lines)
    ]


def _members(names: Sequence[str], lines: Sequence[bytes]) -> list[list[msgspec.Raw]]:
    """The raw values of some members of the data, name by name; empty where there is none."""
    data = _raw_struct(names)
    outer = msgspec.defstruct("Outer", [("data", data, msgspec.field(default_factory=data))])
    try:
        inner = list(map(attrgetter("data"), map(msgspec.json.Decoder(outer).decode, lines)))
    except (msgspec.DecodeError, RecursionError):
        raise _RefusedError from None
    return [list(map(attrgetter(f"m{at}"), inner)) for at in range(len(names))]


def _outer_members(names: Sequence[str], lines: Sequence[bytes]) -> list[list[msgspec.Raw]]:
    found = list(map(msgspec.json.Decoder(_raw_struct(names)).decode, lines))
    return [list(map(attrgetter(f"m{at}"), found)) for at in range(len(names))]


def _raw_struct(names: Sequence[str]) -> Any:
    # The names of properties may be words of Python, so the fields have names of their own.
    return msgspec.defstruct(
        "Members",
        [(f"m{at}", msgspec.Raw, _NO_VALUE) for at in range(len(names))],
        rename={f"m{at}": name for at, name in enumerate(names)},
        gc=False,
    )
