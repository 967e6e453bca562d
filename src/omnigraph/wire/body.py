"""Bodies: what every JSON object that leaves the program has in common, and its encoder.

Owns the layouts, compact and for people. Knows no body by name, and writes to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

INDENT = 2


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """One JSON object: its fields under their names, in their order.

    A field with a default is left out while it has that value; any other is always written,
    null included.
    """


@dataclass(frozen=True, slots=True)
class LazyObject:
    """An object whose members are found one after the other; an iterator is an array."""

    members: Iterable[tuple[str, Any]]


encode = msgspec.json.Encoder().encode
"""A body, or a value of one, as JSON on one line."""


def pretty(value: Any) -> str:
    """The same for people to read, in lines with an indent."""
    return msgspec.json.format(encode(value), indent=INDENT).decode()
