"""JSON strings: columns of texts as JSON spells them, non-ASCII as it is.

Owns which characters are escaped and how, whole columns at a time. Ids of several parts are
such texts, so that the spelling of one never changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_SHORT_ESCAPES = {"\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r", '"': r"\""}
_BACKSLASH = ord("\\")


def json_strings(texts: pa.Array) -> pa.Array:
    """Texts between quotes, in their own type; null stays null."""
    return _joined(texts.type, '"', _escaped(texts), '"')


def json_arrays(columns: Sequence[pa.Array]) -> pa.Array:
    """The texts of each row as one array without blanks; null where one of them is null."""
    pieces: list[pa.Array | str] = []
    for number, texts in enumerate(columns):
        pieces += ['","' if number else '["', _escaped(texts)]
    return _joined(columns[0].type, *pieces, '"]')


def _joined(type_: pa.DataType, *pieces: pa.Array | str) -> pa.Array:
    # One pass for all pieces: every join copies what it has so far.
    literals = (pa.scalar(one, type_) if isinstance(one, str) else one for one in (*pieces, ""))
    return pc.binary_join_element_wise(*literals, null_handling="emit_null")


def text_bytes(texts: pa.Array) -> npt.NDArray[np.uint8]:
    """All texts as they lie in memory, one behind the other; a view, not a copy."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, dtype=np.uint8)
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    places = np.frombuffer(offsets, dtype=width)
    start, end = places[texts.offset], places[texts.offset + len(texts)]
    return np.frombuffer(data, dtype=np.uint8)[start:end]


def _escaped(texts: pa.Array) -> pa.Array:
    """The texts with what JSON cannot hold as it is spelled out; one pass if there is nothing."""
    for byte in _bytes_to_escape(texts):
        character = chr(byte)
        spelling = _SHORT_ESCAPES.get(character, f"\\u{byte:04x}")
        texts = pc.replace_substring(texts, character, r"\\" if byte == _BACKSLASH else spelling)
    return texts


def _bytes_to_escape(texts: pa.Array) -> list[int]:
    """Which bytes of these texts JSON cannot hold; the backslash first, for the others add some."""
    raw = text_bytes(texts)
    special = raw[(raw < 0x20) | (raw == ord('"')) | (raw == _BACKSLASH)]
    found: list[int] = np.unique(special).tolist()
    return sorted(found, key=lambda byte: byte != _BACKSLASH)
