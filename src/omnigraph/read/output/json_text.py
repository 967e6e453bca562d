"""Columns as JSON text: one Arrow array of values in, one of their JSON texts out.

Owns blobs too, from descriptions of where they lie to what an export writes.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.rows.json_strings import json_strings
from omnigraph.rows.references import nodes_of, types_of
from omnigraph.rows.value_texts import TEXT, float_texts, moment_texts
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

if TYPE_CHECKING:
    import numpy.typing as npt

_MOMENT: Final = pa.timestamp("ms", "UTC")

_encode_base64 = partial(b2a_base64, newline=False)

MAX_BYTES = 16 << 20
# What Lance writes into a description for a blob that is a reference.
_EXTERNAL = 3


def json_text(values: pa.Array) -> pa.Array:
    """The JSON text of every value; null stays null, for `join_texts` to write as `null`.

    Dates are text, floats the shortest text that reads back at their own width,
    non-finite floats null, and bytes `"base64:…"`.
    """
    type_ = values.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return json_strings(values.cast(TEXT))
    if pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_null(type_):
        return values.cast(TEXT)
    if pa.types.is_floating(type_):
        return float_texts(values)
    if pa.types.is_date32(type_):
        return _quoted(values.cast(TEXT))
    if type_ == _MOMENT:
        return _quoted(moment_texts(values))
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return _list_text(values)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return _base64_text(values)
    if pa.types.is_struct(type_):
        return _object_text(values)
    raise TypeError(f"a column of {type_} has no JSON text")


def join_texts(*parts: pa.Array | str) -> pa.Array:
    """The parts of every row joined to one text: arrays give their text or `null`, others stay."""
    literals = (_literal(part) if isinstance(part, str) else part for part in parts)
    return pc.binary_join_element_wise(
        *literals, _literal(""), null_handling="replace", null_replacement="null"
    )


def _literal(text: str) -> pa.Scalar:
    return pa.scalar(text, TEXT)


def _quoted(texts: pa.Array, opening: str = '"', closing: str = '"') -> pa.Array:
    """The texts between two others; null where there is none."""
    return pc.binary_join_element_wise(_literal(opening), texts, _literal(closing), _literal(""))


# -- lists and bytes ---------------------------------------------------------------


def _list_text(values: pa.Array) -> pa.Array:
    items, offsets = _items(values)
    texts = json_text(items)
    if texts.null_count:
        texts = texts.fill_null("null")
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), texts)
    joined = _quoted(pc.binary_join(lists, _literal(",")), "[", "]")
    return _null_as_in(values, joined)


def _object_text(values: pa.Array) -> pa.Array:
    pieces: list[pa.Array | str] = []
    names = pa.array([field.name for field in values.type], TEXT)
    for number, name in enumerate(json_strings(names).to_pylist()):
        pieces.append(f"{',' if number else '{'}{name}:")
        pieces.append(json_text(values.field(number)))
    return _null_as_in(values, join_texts(*pieces, "}"))


def _items(values: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """The items of all lists in one array, and where each list begins and ends in it."""
    if pa.types.is_fixed_size_list(values.type):
        width = values.type.list_size
        offsets = np.arange(len(values) + 1, dtype=np.int64) * width
        return values.values.slice(values.offset * width, len(values) * width), offsets
    offsets = values.offsets.to_numpy().astype(np.int64)
    return values.values.slice(offsets[0], offsets[-1] - offsets[0]), offsets - offsets[0]


def _base64_text(values: pa.Array) -> pa.Array:
    contents: list[Any] = values.fill_null(b"").to_pylist()
    encoded = pa.array(list(map(_encode_base64, contents)), pa.large_binary()).cast(TEXT)
    return _null_as_in(values, _quoted(encoded, '"base64:'))


def _null_as_in(values: pa.Array, texts: pa.Array) -> pa.Array:
    if not values.null_count:
        return texts
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, TEXT))


def within_bytes(
    batch: pa.RecordBatch, blobs: Sequence[str], max_bytes: int = MAX_BYTES
) -> Iterator[pa.RecordBatch]:
    """The batch in slices whose blobs have together about this many bytes, or that are one row."""
    if not blobs:
        yield batch
        return
    sizes = sum(_sizes(batch.column(name)) for name in blobs)
    before = np.cumsum(sizes) - sizes
    starts = np.flatnonzero(np.diff(before // max_bytes, prepend=-1))
    for start, end in zip(starts, [*starts[1:], batch.num_rows], strict=True):
        yield batch.slice(start, end - start)


def _sizes(descriptions: pa.Array) -> npt.NDArray[np.int64]:
    sizes = pc.struct_field(descriptions, "size").cast(pa.int64())
    found: npt.NDArray[np.int64] = sizes.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def blob_text(table: Table, batch: pa.RecordBatch, name: str) -> pa.Array:
    """The JSON text of a column of blobs; the batch has the row addresses too.

    `"base64:…"` for bytes the graph keeps, the URI for a reference, null for null.
    """
    descriptions = batch.column(name)
    is_external = pc.equal(pc.struct_field(descriptions, "kind"), _EXTERNAL).fill_null(
        fill_value=False
    )
    kept = pc.and_(descriptions.is_valid(), pc.invert(is_external))
    texts = json_text(_contents(table, name, batch.column(ROW_ADDRESS), kept))
    if not pc.any(is_external).as_py():
        return texts
    return pc.if_else(is_external, json_text(pc.struct_field(descriptions, "blob_uri")), texts)


def _contents(table: Table, name: str, addresses: pa.Array, wanted: pa.Array) -> pa.Array:
    """The bytes of the wanted rows, null for the others."""
    count = pc.sum(wanted).as_py()
    if not count:
        return pa.nulls(len(addresses), pa.large_binary())
    with storage_errors(f"reading blobs of {table.location}"):
        found = table.stored.dataset().read_blobs(
            table.columns.of(name), addresses=addresses.filter(wanted), preserve_order=True
        )
    contents = pa.array(list(map(itemgetter(1), found)), pa.large_binary())
    if count == len(addresses):
        return contents
    places = np.cumsum(wanted.to_numpy(zero_copy_only=False)) - 1
    return contents.take(pc.if_else(wanted, pa.array(places), pa.scalar(None, pa.int64())))


def end_text(type_: EdgeType, column: str, references: pa.Array) -> pa.Array:
    """The nodes at an end of edges, as a load reads them: with their types if need be."""
    if column not in type_.shared:
        return json_text(references)
    types = json_text(types_of(references, type_.end_types))
    return join_texts('{"@type":', types, ',"key":', json_text(nodes_of(references)), "}")
