"""Patterns over texts: one engine, RE2, whose time grows with the text and never explodes.

Owns asking it, about a pattern and about a column. No other engine stands in for it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_REFUSED = "Invalid regular expression: "


def found_in(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Whether a pattern is found in each text, null for none; ValueError says what it is not."""
    try:
        return pc.match_substring_regex(texts, pattern)
    except pa.ArrowInvalid as error:
        raise ValueError(str(error).removeprefix(_REFUSED)) from None


def refusal(pattern: str) -> str | None:
    """Why the engine does not take a pattern, or None."""
    try:
        found_in(pa.chunked_array([[""]]), pattern)
    except ValueError as error:
        return str(error)
    return None
