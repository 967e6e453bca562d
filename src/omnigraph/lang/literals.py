"""Literals: text that reads back to the same value, and the numbers that digits name.

Owns the inverse of the lexer's escapes and number forms, for both languages, the guarded
conversions of `.pg`, and dates and times as the languages and the data format write them. Never
guesses: a number nobody can store is None, a text that means no one moment is refused.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

from omnigraph.errors import quoted

_LONGEST = 20
"""Digits of the largest unsigned 64-bit integer: nothing longer fits any type."""
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def quote(text: str) -> str:
    """The text as a string literal; only what must be escaped is escaped."""
    return f'"{text.translate(_ESCAPES)}"'


def decimal(value: float) -> str:
    """The shortest `digits.digits` that reads back to this float; there are no exponents."""
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"


def integer_value(text: str) -> int | None:
    """The integer a signed run of digits names, or None beyond every 64-bit type."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    digits = digits.lstrip("0") or "0"
    # Python refuses to convert very long digit runs, and no type could hold them anyway.
    value = sign * int(digits) if len(digits) <= _LONGEST else None
    return value if value is not None and -(2**63) <= value < 2**64 else None


def float_value(text: str) -> float | None:
    """The finite float64 nearest to a written number, or None beyond its range."""
    value = float(text)
    return value if math.isfinite(value) else None


def number_value(text: str) -> int | float | None:
    """An integer for plain digits, a float for digits with a point, None when too large."""
    return float_value(text) if "." in text else integer_value(text)


def parse_date(text: str) -> date:
    """The day `YYYY-MM-DD` names; a time of day is refused rather than dropped."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise ValueError(f"invalid Date literal '{quoted(text)}'")


def parse_datetime(text: str) -> datetime:
    """The moment an RFC 3339 text names, in UTC; digits below the millisecond are dropped."""
    match = _DATETIME.fullmatch(text)
    try:
        if match is not None:
            return _moment(match)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"invalid DateTime literal '{quoted(text)}'")


def _moment(match: re.Match[str]) -> datetime:
    day, hour, minute, second, fraction, sign, offset_hours, offset_minutes = match.groups()
    offset = timedelta(0)
    if sign is not None:
        if int(offset_minutes) > 59:
            raise ValueError(match.string)
        offset = timedelta(hours=int(offset_hours), minutes=int(offset_minutes))
        offset = -offset if sign == "-" else offset
    return (
        datetime.combine(date.fromisoformat(day), datetime.min.time(), timezone(offset))
        .replace(
            hour=int(hour),
            minute=int(minute),
            second=int(second or 0),
            microsecond=int((fraction or "")[:3].ljust(3, "0")) * 1000,
        )
        .astimezone(UTC)
    )


def epoch_days(day: date) -> int:
    """Days since 1970-01-01, the stored form of a Date."""
    return day.toordinal() - _EPOCH_DAY


def epoch_millis(moment: datetime) -> int:
    """Milliseconds since 1970-01-01T00:00:00Z, the stored form of a DateTime."""
    return (moment - _EPOCH) // _MILLISECOND
