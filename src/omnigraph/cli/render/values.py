"""Single values as text for people: moments, and values of any kind on one line.

Owns their spelling. Must never import what `--help` has no use for.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from omnigraph.read.output.cells import printable

MAX_VALUE = 60


def time_text(microseconds: int) -> str:
    """A moment, given in µs since the epoch, to the second."""
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def value_text(value: Any) -> str:
    """A value as JSON, cut where it is long."""
    from omnigraph.wire.body import encode

    text = printable(encode(value).decode())
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
