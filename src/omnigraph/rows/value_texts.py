"""Values as text: how results spell numbers and moments, wherever a text of them is made.

Owns the spelling, without quotes. Lists and objects are for whoever writes a format.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

# 64-bit offsets: the text of a batch may be larger than two gigabytes where its values are not.
TEXT = pa.large_string()


def float_texts(values: pa.Array) -> pa.Array:
    """The shortest text that reads back at the same width; null where it is no finite number."""
    texts = values.cast(TEXT)
    # Without a fraction many readers would take it for an integer, and lose the sign of zero.
    whole = pc.equal(pc.trunc(values), values)
    if pc.any(whole).as_py():
        whole = pc.and_(whole, pc.invert(pc.match_substring(texts, "e")))
        texts = pc.if_else(whole, _ended(texts, ".0"), texts)
    finite = pc.is_finite(values)
    if pc.all(finite).as_py() is False:
        texts = pc.if_else(finite, texts, pa.scalar(None, TEXT))
    return texts


def moment_texts(values: pa.Array) -> pa.Array:
    """`2024-01-31T10:00:00.000Z`."""
    # Without its zone, which Arrow would look up and write into the text.
    texts = values.cast(pa.int64()).cast(pa.timestamp("ms")).cast(TEXT)
    return _ended(pc.binary_replace_slice(texts, 10, 11, "T"), "Z")


def _ended(texts: pa.Array, ending: str) -> pa.Array:
    return pc.binary_join_element_wise(texts, pa.scalar(ending, TEXT), pa.scalar("", TEXT))
