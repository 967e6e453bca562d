"""Identity: the ids of rows, whole columns at a time.

Owns the canonical id of keyed rows and the making of fresh ids. Says the same as
the language's rule for one row; never looks at stored rows.
"""

from __future__ import annotations

import json.encoder
import os
import time
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.schema.keys import canonical_float
from omnigraph.lang.types import FLOATS, Scalar

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_HALF = 8
"""A ULID's random part is two halves of 40 bits, eight letters each."""
_LOW_BITS = np.uint64(40)
_LOW = (1 << 40) - 1
_TIME = 10
_LENGTH = _TIME + 2 * _HALF

_JSON_SPECIAL = r'["\\\x00-\x1f]'


def key_ids(type_: NodeType, rows: pa.Table) -> pa.Array:
    """The id that the key of a type gives to each row; null where a key member is null."""
    return key_texts(type_, type_.key, rows)


def key_texts(type_: NodeType | EdgeType, members: Sequence[str], rows: pa.Table) -> pa.Array:
    """The keys of rows as texts, equal only for equal keys; null where a member is null."""
    parts = [member_texts(type_, member, rows) for member in members]
    if len(parts) == 1:
        return parts[0]
    quoted = [_json_strings(part) for part in parts]
    inside = pc.binary_join_element_wise(*quoted, ",", null_handling="emit_null")
    return pc.binary_join_element_wise("[", inside, "]", "", null_handling="emit_null")


def member_texts(type_: NodeType | EdgeType, member: str, rows: pa.Table) -> pa.Array:
    """The values of one member as texts; ends and ids are texts themselves."""
    property_ = type_.properties.get(member)
    scalar = property_.type.scalar if property_ is not None else Scalar.STRING
    texts = canonical_texts(rows.column(member), scalar)
    return texts.chunk(0) if texts.num_chunks == 1 else texts.combine_chunks()


def canonical_texts(values: pa.ChunkedArray | pa.Array, scalar: Scalar) -> pa.ChunkedArray:
    """The canonical text of every value of a column; null stays null."""
    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if scalar in FLOATS:
        return _float_texts(column, 32 if scalar is Scalar.F32 else 64)
    if scalar is Scalar.DATE:
        column = column.cast(pa.int32())
    elif scalar is Scalar.DATETIME:
        column = column.cast(pa.int64())
    return column.cast(pa.string())


def _float_texts(column: pa.ChunkedArray, width: Literal[32, 64]) -> pa.ChunkedArray:
    encoded = pc.dictionary_encode(column).unify_dictionaries()
    if encoded.num_chunks == 0:
        return pa.chunked_array([], pa.string())
    # One text per distinct value: making one is exact arithmetic and slow.
    unique = encoded.chunk(0).dictionary.to_pylist()
    texts = pa.array(map(partial(canonical_float, width=width), unique), pa.string())
    return pa.chunked_array([texts.take(chunk.indices) for chunk in encoded.chunks], pa.string())


def _json_strings(texts: pa.Array) -> pa.Array:
    """Texts as JSON strings, non-ASCII as it is."""
    if pc.any(pc.match_substring_regex(texts, _JSON_SPECIAL)).as_py():
        plain = pc.fill_null(texts, "").to_pylist()
        escaped = pa.array(map(json.encoder.encode_basestring, plain), pa.string())
        return pc.if_else(texts.is_valid(), escaped, pa.scalar(None, pa.string()))
    return pc.binary_join_element_wise('"', texts, '"', "", null_handling="emit_null")


def fresh_ids(count: int) -> pa.Array:
    """So many new ULIDs of this moment, distinct and in ascending order."""
    high, low = _ascending_pairs(count)
    letters = np.empty((count, _LENGTH), dtype=np.uint8)
    letters[:, :_TIME] = _ALPHABET[_fives(np.uint64(time.time_ns() // 1_000_000), _TIME)]
    letters[:, _TIME : _TIME + _HALF] = _ALPHABET[_fives(high[:, None], _HALF)]
    letters[:, _TIME + _HALF :] = _ALPHABET[_fives(low[:, None], _HALF)]
    offsets = np.arange(count + 1, dtype=np.int64) * _LENGTH
    large = pa.LargeStringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))
    )
    return large.cast(pa.string())


def _ascending_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of 40-bit numbers that ascend by random steps from a random start."""
    start = int.from_bytes(os.urandom(_HALF + 2)) >> 1
    steps = np.frombuffer(os.urandom(4 * count), dtype=np.uint32).astype(np.uint64) + np.uint64(1)
    low = np.cumsum(steps, dtype=np.uint64) + np.uint64(start & _LOW)
    high = (low >> _LOW_BITS) + np.uint64(start >> int(_LOW_BITS))
    return high, low & np.uint64(_LOW)


def _fives(number: np.ndarray | np.uint64, digits: int) -> np.ndarray:
    """The lowest bits of numbers in groups of five, highest group first."""
    shifts = np.arange(digits - 1, -1, -1, dtype=np.uint64) * np.uint64(5)
    groups: np.ndarray = (number >> shifts) & np.uint64(31)
    return groups
