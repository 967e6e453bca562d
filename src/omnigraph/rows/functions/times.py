"""The functions of days and moments, in UTC and the Gregorian calendar.

Owns arithmetic with the calendar: what a month later is, and how many months lie between. Years
are those that the languages can write, 1 to 9999; beyond is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import QueryError, quoted
from omnigraph.lang.functions.of_times import UNITS
from omnigraph.lang.types import Scalar
from omnigraph.rows.arrow_types import SCALARS
from omnigraph.rows.functions.call import (
    Call,
    Flags,
    Integers,
    Kernel,
    bounded,
    by_constant,
    valid,
)

Days = npt.NDArray[np.datetime64]

DAY = SCALARS[Scalar.DATE]
MOMENT = SCALARS[Scalar.DATETIME]
_PLAIN_MOMENT = pa.timestamp("ms")
_DAY_MS = 86_400_000
FIRST_DAY = int(np.datetime64("0001-01-01", "D").astype(np.int64))
LAST_DAY = int(np.datetime64("9999-12-31", "D").astype(np.int64))
_FAR = 10**15
_FEWER = 4
_PATTERN = re.compile(r"(?:[^%]|%[YmdHMSjGVuyaAbBFT%])*", re.DOTALL)


# -- as numbers ----------------------------------------------------------------------


def is_day(times: pa.Array) -> bool:
    """Whether they are days, and not moments."""
    return bool(pa.types.is_date(times.type))


def millis(times: pa.Array) -> Integers:
    """Milliseconds since 1970, of days those of their midnight; 0 where there is none."""
    if is_day(times):
        return _days(times) * _DAY_MS
    return cast("Integers", times.cast(pa.int64()).fill_null(0).to_numpy())


def _days(times: pa.Array) -> Integers:
    if is_day(times):
        whole: Integers = times.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        return whole
    return millis(times) // _DAY_MS


def days_column(days: Integers, is_valid: Flags, name: str) -> pa.Array:
    """Days since 1970 as a column of Dates."""
    _require_years(days, is_valid, name)
    kept = np.where(is_valid, days, 0).astype(np.int32)
    return pa.array(kept, mask=~is_valid).cast(DAY)


def moments_column(moments: Integers, is_valid: Flags, name: str) -> pa.Array:
    """Milliseconds since 1970 as a column of DateTimes."""
    _require_years(moments // _DAY_MS, is_valid, name)
    return pa.array(np.where(is_valid, moments, 0), mask=~is_valid).cast(MOMENT)


def _require_years(days: Integers, is_valid: Flags, name: str) -> None:
    outside = is_valid & ((days < FIRST_DAY) | (days > LAST_DAY))
    if bool(outside.any()):
        raise QueryError(
            f"the result of {name} lies outside of the years 1 to 9999: keep such rows out",
            details={"function": name},
        )


def _plain(times: pa.Array) -> pa.Array:
    """Moments without a zone, which Arrow would look up."""
    return times if is_day(times) else times.cast(pa.int64()).cast(_PLAIN_MOMENT)


# -- parts ---------------------------------------------------------------------------


def _part(work: Callable[[pa.Array], pa.Array]) -> Kernel:
    return lambda call: _of_few_days(
        lambda times: work(times).cast(pa.int64()), _plain(call.column(0))
    )


def _of_few_days(work: Callable[[pa.Array], pa.Array], times: pa.Array) -> pa.Array:
    """The same of each day once, where many are of one: the calendar is what takes long."""
    if not is_day(times) or times.null_count == len(times):
        return work(times)
    days = times.view(pa.int32())
    bounds = pc.min_max(days)
    least, last = bounds["min"].as_py(), bounds["max"].as_py()
    if last - least >= len(times) // _FEWER:
        return work(times)
    every = work(pa.array(np.arange(least, last + 1, dtype=np.int32)).view(DAY))
    if times.null_count:
        return every.take(pc.subtract(days, pa.scalar(least, pa.int32())))
    return pa.array(every.to_numpy()[days.to_numpy() - least], every.type)


def _weekday(times: pa.Array) -> pa.Array:
    return pc.day_of_week(times, count_from_zero=False, week_start=1)


def to_days(call: Call) -> pa.Array:
    """The days of moments."""
    times = call.column(0)
    return times if is_day(times) else days_column(_days(times), valid(times), call.name)


def to_moments(call: Call) -> pa.Array:
    """The midnights of days."""
    times = call.column(0)
    return moments_column(millis(times), valid(times), call.name) if is_day(times) else times


def _truncate(call: Call) -> pa.Array:
    def work(times: pa.Array, unit: object) -> pa.Array:
        if unit not in UNITS:
            raise QueryError(
                f"truncate knows no unit `{quoted(unit)}`: it is one of {', '.join(UNITS)}",
                details={"function": "truncate", "unit": quoted(unit)},
            )
        plain = _plain(times)
        if is_day(times) and unit in ("hour", "minute", "second"):
            return times
        begin = _of_few_days(
            lambda some: pc.floor_temporal(some, unit=unit, week_starts_monday=True), plain
        )
        return begin.cast(pa.int64()).cast(MOMENT) if not is_day(times) else begin

    return by_constant(call, 1, work)


# -- arithmetic ----------------------------------------------------------------------


def _plus(milliseconds: int) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        times, given = call.column(0), call.column(1)
        number, known = bounded(given, _FAR // milliseconds * 10), valid(times, given)
        if is_day(times):
            return days_column(_days(times) + number, known, call.name)
        return moments_column(millis(times) + number * milliseconds, known, call.name)

    return kernel


def _months(days: Integers) -> Integers:
    """Months since January 1970."""
    dates = days.astype("datetime64[D]").astype("datetime64[M]")
    return cast("Integers", dates.astype(np.int64))


def _first_day(months: Integers) -> Integers:
    dates = months.astype("datetime64[M]").astype("datetime64[D]")
    return cast("Integers", dates.astype(np.int64))


def _moved(days: Integers, by: Integers) -> Integers:
    """Days so many months later, at most at the month's end."""
    months = _months(days)
    within = days - _first_day(months)
    begin = _first_day(months + by)
    last = _first_day(months + by + 1) - begin - 1
    found: Integers = begin + np.minimum(within, last)
    return found


def _plus_months(months: int) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        times, given = call.column(0), call.column(1)
        number, known = bounded(given, 10**6) * months, valid(times, given)
        days = _days(times)
        later = _moved(days, number)
        if is_day(times):
            return days_column(later, known, call.name)
        return moments_column(later * _DAY_MS + millis(times) % _DAY_MS, known, call.name)

    return kernel


def _between(milliseconds: int) -> Kernel:
    def kernel(call: Call) -> pa.Array:
        start, end = call.column(0), call.column(1)
        units = (millis(end) - millis(start)) // milliseconds
        return pa.array(units, mask=~valid(start, end))

    return kernel


def _months_between(call: Call) -> pa.Array:
    start, end = call.column(0), call.column(1)
    first, last = _days(start), _days(end)
    months = _months(last) - _months(first)
    reached = _moved(first, months) * _DAY_MS + millis(start) % _DAY_MS
    months -= (reached > millis(end)).astype(np.int64)
    return pa.array(months, mask=~valid(start, end))


# -- milliseconds and texts ----------------------------------------------------------


def _epoch(call: Call) -> pa.Array:
    times = call.column(0)
    return pa.array(millis(times), mask=~valid(times))


def _from_epoch(call: Call) -> pa.Array:
    given = call.column(0)
    return moments_column(bounded(given, 10 * _FAR), valid(given), call.name)


def _format(call: Call) -> pa.Array:
    def work(times: pa.Array, pattern: object) -> pa.Array:
        text = str(pattern)
        if _PATTERN.fullmatch(text) is None:
            wrong = text[cast("re.Match[str]", _PATTERN.match(text)).end() :][:2]
            raise QueryError(
                f"format does not know `{wrong}`: it takes %Y %m %d %H %M %S %j %G %V %u %y %a %A "
                "%b %B %F %T and %%",
                details={"function": "format", "pattern": quoted(text)},
            )
        seconds = millis(times) // 1000
        moments = pa.array(seconds, mask=~valid(times)).cast(pa.timestamp("s"))
        # Spelling takes long, and many rows are of one day.
        several = moments.dictionary_encode()
        return pc.strftime(several.dictionary, text, locale="C").take(several.indices)

    return by_constant(call, 1, work)


KERNELS: Mapping[str, Kernel] = {
    "year": _part(pc.year),
    "month": _part(pc.month),
    "day": _part(pc.day),
    "hour": _part(pc.hour),
    "minute": _part(pc.minute),
    "second": _part(pc.second),
    "weekday": _part(_weekday),
    "week": _part(pc.iso_week),
    "day_of_year": _part(pc.day_of_year),
    "date": to_days,
    "datetime": to_moments,
    "truncate": _truncate,
    "plus_days": _plus(_DAY_MS),
    "plus_hours": _plus(3_600_000),
    "plus_minutes": _plus(60_000),
    "plus_seconds": _plus(1000),
    "plus_months": _plus_months(1),
    "plus_years": _plus_months(12),
    "days_between": _between(_DAY_MS),
    "hours_between": _between(3_600_000),
    "minutes_between": _between(60_000),
    "seconds_between": _between(1000),
    "months_between": _months_between,
    "epoch_ms": _epoch,
    "from_epoch_ms": _from_epoch,
    "format": _format,
}
