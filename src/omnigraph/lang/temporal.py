"""Dates and times as both languages and the data format write them.

Owns the step from text to a calendar value and on to the stored number.
Never guesses: a text either means one moment or is refused.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone

from omnigraph.errors import quoted

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]"
    r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?"
    r"(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2}))"
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


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
