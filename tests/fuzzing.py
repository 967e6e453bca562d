"""What the fuzzed tests draw: values of any shape, JSON that is nearly right, broken bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, timedelta, timezone
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from omnigraph.errors import OmniGraphError

DEEP = 3000
"""Deeper than Python's stack."""
TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(
    ["\ud800", "\x00", "é" * 300, "9" * 5000, "1e999", "-0", "base64:", "base64:!", "2024-02-30"]
)
NUMBERS = (
    st.integers()
    | st.floats()
    | st.sampled_from([2**31, 2**63, 2**64, -(2**63) - 1, 10**400, -0.0, 3.5e38, 1e-60])
)
MOMENTS = st.datetimes(timezones=st.none() | st.sampled_from([UTC, timezone(timedelta(hours=14))]))
SCALARS = (
    st.none()
    | st.booleans()
    | NUMBERS
    | TEXTS
    | st.binary(max_size=4)
    | MOMENTS
    | st.dates()
    | st.decimals()
    | st.builds(object)
    | st.just(Decimal("1.5"))
)


def _deep(inner: Any) -> Any:
    for _ in range(DEEP):
        inner = [inner]
    return inner


VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS | st.integers(), inner, max_size=3)
        | st.builds(_deep, inner)
    ),
    max_leaves=5,
)
JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | st.sampled_from(
        ["", "a", "2024-01-01", "2024-01-01T00:00:00Z", "base64:aGk=", "1", "x" * 999]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@st.composite
def broken(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes with a few of them deleted, doubled, replaced or moved."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 4))):
        at, end = sorted(draw(st.tuples(*[st.integers(0, len(data))] * 2)))
        piece = draw(st.binary(max_size=3) | st.sampled_from(PIECES))
        if draw(st.booleans()):
            end = at + (end - at) % 4
        data[at:end] = piece
    return bytes(data)


PIECES = (b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\r", b"\xff", b"\xed\xa0\x80",
          b"\\ud800", b"\x00", b"\xef\xbb\xbf", b"null", b"NaN", b"1e999", b"-", b"9" * 400, b"'",
          b"[" * DEEP, b'{"a":' * DEEP)  # fmt: skip


def line(envelope: Any) -> bytes:
    """A line of NDJSON."""
    return json.dumps(envelope).encode()


@contextmanager
def only_our_errors(*codes: str) -> Iterator[None]:
    """Nothing but an error of ours leaves the block; with codes, one of these."""
    try:
        yield
    except OmniGraphError as error:
        _check(error, codes)


def _check(error: OmniGraphError, codes: tuple[str, ...]) -> None:
    assert not codes or error.code in codes, error
    assert 0 < len(error.message) < MOST_SAID


MOST_SAID = 100_000
"""A hundred problems, each with what it quotes."""
