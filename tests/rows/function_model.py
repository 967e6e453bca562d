"""What the functions of the language mean, value by value, as the documentation says it.

Owns a plain model: one Python function for each, over Python values. It shares nothing with the
kernels but the names.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from omnigraph.lang.literals import parse_date, parse_datetime

MIN, MAX = -(2**63), 2**64 - 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RADIUS = 6371.0088


class TooLarge(Exception):
    """The result is none that can be had."""


def whole(value: int) -> int:
    if not MIN <= value <= MAX:
        raise TooLarge
    return value


def number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def guarded(work: Callable[..., float]) -> Callable[..., float | None]:
    def run(*values: float) -> float | None:
        try:
            found = work(*map(float, values))
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if isinstance(found, complex) else number(found)

    return run


def away(value: Fraction) -> int:
    down = math.floor(abs(value))
    nearest = down + 1 if abs(value) - down >= Fraction(1, 2) else down
    return -nearest if value < 0 else nearest


def rounded(x: float, digits: int | None = None) -> float:
    if digits is None:
        return whole(away(Fraction(x)))
    shift = Fraction(10) ** digits
    return float(away(Fraction(x) * shift) / shift)


def quotient(a: float, b: float) -> int | None:
    return None if b == 0 else whole(math.floor(Fraction(a) / Fraction(b)))


def cut(s: Any, start: int, end: int) -> Any:
    return s[max(start, 0) : max(end, start, 0)]


def like(s: str, pattern: str) -> bool:
    regex, escaped = "", False
    for character in pattern:
        if escaped:
            regex, escaped = regex + re.escape(character), False
        elif character == "\\":
            escaped = True
        else:
            regex += {"%": ".*", "_": "."}.get(character) or re.escape(character)
    return re.fullmatch(regex + ("\\\\" if escaped else ""), s, re.DOTALL) is not None


def padding(s: str, n: int, fill: str) -> str:
    return (fill * max(n, 0))[: max(n - len(s), 0)]


# -- times -----------------------------------------------------------------------------


def moment(d: date) -> datetime:
    if isinstance(d, datetime):
        return d
    return datetime(d.year, d.month, d.day, tzinfo=UTC)


def plus(d: date, **delta: int) -> date:
    try:
        return d + timedelta(**delta)
    except OverflowError:
        raise TooLarge from None


def plus_months(d: date, n: int) -> date:
    year, month = divmod(d.year * 12 + d.month - 1 + n, 12)
    if not 1 <= year <= 9999:
        raise TooLarge
    return d.replace(year=year, month=month + 1, day=min(d.day, monthrange(year, month + 1)[1]))


def months_between(a: date, b: date) -> int:
    a, b = moment(a), moment(b)
    guess = (b.year - a.year) * 12 + b.month - a.month
    for n in (guess + 1, guess, guess - 1):
        try:
            if plus_months(a, n) <= b:
                return n
        except TooLarge:
            continue
    raise AssertionError((a, b))


def truncated(d: date, unit: str) -> date:
    zero = {"hour": 0, "minute": 0, "second": 0, "microsecond": 0}
    if not isinstance(d, datetime):
        zero = {}
    first = {
        "year": {"month": 1, "day": 1},
        "quarter": {"month": (d.month - 1) // 3 * 3 + 1, "day": 1},
        "month": {"day": 1},
    }
    if unit in first:
        return d.replace(**first[unit], **zero)
    if unit == "week":
        return (d - timedelta(days=d.weekday())).replace(**zero)
    keep = ("day", "hour", "minute", "second").index(unit)
    return d.replace(**dict(list(zero.items())[keep:]))


def formatted(d: date, pattern: str) -> str:
    d = moment(d)
    own = {"%Y": f"{d.year:04}", "%F": f"{d.year:04}-{d:%m-%d}", "%G": f"{d.isocalendar()[0]:04}"}
    return re.sub("%.", lambda found: own.get(found[0]) or d.strftime(found[0]), pattern)


def spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03}Z".rjust(24, "0")
    return str(value)


def read(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        try:
            return parse(value)
        except ValueError:
            return None

    return run


def to_int(x: Any) -> int | None:
    if not isinstance(x, str):
        return whole(math.trunc(x))
    if re.fullmatch("[+-]?[0-9]+", x) is None:
        return None
    return int(x) if MIN <= int(x) < 2**63 else None


def to_float(x: Any) -> float | None:
    if not isinstance(x, str):
        return float(x)
    found = re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", x)
    return None if found is None else number(float(x))


def to_date(x: Any) -> date:
    if isinstance(x, str):
        return parse_date(x)
    return x.date() if isinstance(x, datetime) else x


def to_datetime(x: Any) -> datetime:
    if not isinstance(x, str):
        return moment(x)
    return moment(parse_date(x)) if re.fullmatch("[0-9-]{10}", x) else parse_datetime(x)


def distance_km(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    a, b, c, d = map(math.radians, (lat1, lon1, lat2, lon2))
    h = math.sin((c - a) / 2) ** 2 + math.cos(a) * math.cos(c) * math.sin((d - b) / 2) ** 2
    return 2 * RADIUS * math.asin(math.sqrt(min(max(h, 0), 1)))


def cosine(a: list[float], b: list[float]) -> float | None:
    lengths = math.hypot(*a) * math.hypot(*b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else None


def unique(values: list[Any]) -> list[Any]:
    return [value for place, value in enumerate(values) if value not in values[:place]]


def kinded(values: tuple[Any, ...]) -> tuple[Any, ...]:
    is_float = any(isinstance(value, float) for value in values)
    return tuple(map(float, values)) if is_float else values


# Null where an argument is null, but for these.
TAKES_NULLS = {
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "if": lambda condition, a, b: a if condition else b,
}

MODEL: dict[str, Callable[..., Any]] = {
    "abs": lambda x: whole(abs(x)) if isinstance(x, int) else abs(x),
    "floor": lambda x: whole(math.floor(x)),
    "ceil": lambda x: whole(math.ceil(x)),
    "round": rounded,
    "sqrt": guarded(math.sqrt),
    "exp": guarded(math.exp),
    "ln": guarded(math.log),
    "log10": guarded(math.log10),
    "pow": guarded(math.pow),
    "sign": lambda x: (x > 0) - (x < 0),
    "div": quotient,
    "min_of": lambda *values: min(kinded(values)),
    "max_of": lambda *values: max(kinded(values)),
    "length": len,
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "replace": lambda s, a, b: s.replace(a, b) if a else s,
    "substring": lambda s, start, n=2**70: cut(s, start, start + n),
    "split": lambda s, sep: s.split(sep) if sep else list(s),
    "join": lambda values, sep: sep.join(values),
    "concat": lambda *values: "".join(values),
    "repeat": lambda s, n: s * n,
    "reverse": lambda s: s[::-1],
    "left": lambda s, n: cut(s, 0, n),
    "right": lambda s, n: s[max(len(s) - max(n, 0), 0) :],
    "pad_left": lambda s, n, fill=" ": padding(s, n, fill) + s,
    "pad_right": lambda s, n, fill=" ": s + padding(s, n, fill),
    "contains": lambda s, x: x in s,
    "starts_with": lambda s, x: s.startswith(x),
    "ends_with": lambda s, x: s.endswith(x),
    "matches": lambda s, regex: re.search(regex, s) is not None,
    "like": like,
    "year": lambda d: d.year,
    "month": lambda d: d.month,
    "day": lambda d: d.day,
    "hour": lambda d: d.hour,
    "minute": lambda d: d.minute,
    "second": lambda d: d.second,
    "weekday": lambda d: d.isoweekday(),
    "week": lambda d: d.isocalendar()[1],
    "day_of_year": lambda d: d.timetuple().tm_yday,
    "date": to_date,
    "datetime": moment,
    "truncate": truncated,
    "plus_days": lambda d, n: plus(d, days=n),
    "plus_hours": lambda d, n: plus(d, hours=n),
    "plus_minutes": lambda d, n: plus(d, minutes=n),
    "plus_seconds": lambda d, n: plus(d, seconds=n),
    "plus_months": plus_months,
    "plus_years": lambda d, n: plus_months(d, 12 * n),
    "days_between": lambda a, b: (moment(b) - moment(a)) // timedelta(days=1),
    "hours_between": lambda a, b: (moment(b) - moment(a)) // timedelta(hours=1),
    "minutes_between": lambda a, b: (moment(b) - moment(a)) // timedelta(minutes=1),
    "seconds_between": lambda a, b: (moment(b) - moment(a)) // timedelta(seconds=1),
    "months_between": months_between,
    "epoch_ms": lambda d: (moment(d) - EPOCH) // timedelta(milliseconds=1),
    "from_epoch_ms": lambda n: plus(EPOCH, milliseconds=n),
    "format": formatted,
    "size": len,
    "first": lambda values: values[0] if values else None,
    "last": lambda values: values[-1] if values else None,
    "at": lambda values, i: values[i] if 0 <= i < len(values) else None,
    "slice": lambda values, a, b=2**70: cut(values, a, b),
    "sort": sorted,
    "unique": unique,
    "sum_of": lambda values: (
        None if not values else whole(sum(values)) if isinstance(values[0], int) else sum(values)
    ),
    "range": lambda a, b: list(range(a, b)),
    "to_int": to_int,
    "to_float": to_float,
    "to_string": spelled,
    "to_bool": lambda x: x if isinstance(x, bool) else {"true": True, "false": False}.get(x),
    "to_date": read(to_date),
    "to_datetime": read(to_datetime),
    "cosine": cosine,
    "dot": lambda a, b: sum(x * y for x, y in zip(a, b, strict=True)),
    "l2": math.dist,
    "distance_km": distance_km,
}


def meaning(name: str, values: tuple[Any, ...]) -> Any:
    """What a function gives of some values; raises TooLarge where there is no such result."""
    if name in TAKES_NULLS:
        return TAKES_NULLS[name](*values)
    return None if None in values else MODEL[name](*values)
