"""Sizes for people: bytes with three digits and a unit.

Owns the units, which are powers of 1,000.
"""

from __future__ import annotations

_UNITS = ("kB", "MB", "GB", "TB", "PB")


def size_text(count: int) -> str:
    """A number of bytes, such as `4.21 MB`."""
    if count < 1_000:
        return f"{count} B"
    value = float(count)
    for unit in _UNITS:
        value /= 1_000
        if value < 999.5 or unit == _UNITS[-1]:
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:,.{digits}f} {unit}"
    raise AssertionError("the last unit has no end")
