"""The functions of days and moments.

Owns their signatures and what is told about them. What they do is done over rows; `now` and
`today` are of the statement, and no row has a say in them.
"""

from __future__ import annotations

from omnigraph.lang.functions.kinds import (
    A_MOMENT,
    A_TEXT,
    A_TIME,
    AN_INTEGER,
    DAY,
    INTEGER,
    MOMENT,
    TEXT,
)
from omnigraph.lang.functions.signature import Function, Group, Parameter, Types
from omnigraph.lang.types import ValueType

UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
"""What a time may be truncated to; a Date down to a day."""

_TIME = Parameter("d", A_TIME)
_MOMENT = Parameter("dt", A_MOMENT)
_N = Parameter("n", AN_INTEGER)
_BETWEEN = (Parameter("a", A_TIME), Parameter("b", A_TIME))


def _integer(_: Types) -> ValueType:
    return INTEGER


def _moment(_: Types) -> ValueType:
    return MOMENT


def _same(types: Types) -> ValueType:
    return types[0].without_null


def _part(name: str, description: str, gives: str, of: Parameter = _TIME) -> Function:
    example = f'{name}(datetime("2024-02-29T13:14:15Z"))'
    return Function(name, Group.TIMES, (of,), _integer, description, example, gives)


def _plus(name: str, description: str, n: int, gives: str, *, day: bool = True) -> Function:
    start = 'date("2024-01-31")' if day else 'datetime("2024-01-31T23:00:00Z")'
    return Function(
        name,
        Group.TIMES,
        (_TIME if day else _MOMENT, _N),
        _same,
        description,
        f"{name}({start}, {n})",
        gives,
    )


def _between(name: str, description: str, end: str, gives: str) -> Function:
    example = f'{name}(date("2024-01-31"), {end})'
    return Function(name, Group.TIMES, _BETWEEN, _integer, description, example, gives)


FUNCTIONS = (
    _part("year", "The year.", "2024"),
    _part("month", "The month, from 1 to 12.", "2"),
    _part("day", "The day of the month, from 1.", "29"),
    _part("hour", "The hour, from 0 to 23.", "13", _MOMENT),
    _part("minute", "The minute, from 0 to 59.", "14", _MOMENT),
    _part("second", "The second, from 0 to 59.", "15", _MOMENT),
    _part("weekday", "The day of the week: 1 is Monday, 7 is Sunday.", "4"),
    _part("week", "The week of the year, as ISO 8601 counts.", "9"),
    _part("day_of_year", "The day of the year, from 1.", "60"),
    Function(
        "date",
        Group.TIMES,
        (_TIME,),
        lambda _: DAY,
        "The day of a moment, in UTC.",
        'date(datetime("2024-02-29T13:14:15Z"))',
        '"2024-02-29"',
    ),
    Function(
        "datetime",
        Group.TIMES,
        (_TIME,),
        _moment,
        "The midnight in UTC that a day begins with.",
        'datetime(date("2024-02-29"))',
        '"2024-02-29T00:00:00.000Z"',
    ),
    Function(
        "truncate",
        Group.TIMES,
        (_TIME, Parameter("unit", A_TEXT, words=UNITS)),
        _same,
        f"The begin of the {', '.join(UNITS[:-1])} or {UNITS[-1]} around; weeks begin on Monday.",
        'truncate(date("2024-02-29"), "month")',
        '"2024-02-01"',
    ),
    _plus("plus_days", "So many days later.", 1, '"2024-02-01"'),
    _plus("plus_months", "So many months later, at most at the month's end.", 1, '"2024-02-29"'),
    _plus("plus_years", "So many years later, at most at the month's end.", -1, '"2023-01-31"'),
    _plus("plus_hours", "So many hours later.", 2, '"2024-02-01T01:00:00.000Z"', day=False),
    _plus("plus_minutes", "So many minutes later.", -30, '"2024-01-31T22:30:00.000Z"', day=False),
    _plus("plus_seconds", "So many seconds later.", 5, '"2024-01-31T23:00:05.000Z"', day=False),
    _between("days_between", "Whole days from a to b, rounded down.", 'date("2024-02-29")', "29"),
    _between(
        "months_between",
        "The most months that, added to a, are not beyond b.",
        'date("2024-02-29")',
        "1",
    ),
    _between(
        "hours_between",
        "Whole hours from a to b, rounded down.",
        'datetime("2024-01-31T05:59:00Z")',
        "5",
    ),
    _between(
        "minutes_between",
        "Whole minutes from a to b, rounded down.",
        'datetime("2024-01-31T00:59:30Z")',
        "59",
    ),
    _between(
        "seconds_between",
        "Whole seconds from a to b, rounded down.",
        'datetime("2024-01-30T23:59:59.500Z")',
        "-1",
    ),
    Function(
        "epoch_ms",
        Group.TIMES,
        (_TIME,),
        _integer,
        "Milliseconds since 1970-01-01T00:00:00Z.",
        'epoch_ms(datetime("1970-01-01T00:00:01Z"))',
        "1000",
    ),
    Function(
        "from_epoch_ms",
        Group.TIMES,
        (_N,),
        _moment,
        "The moment so many milliseconds after 1970-01-01T00:00:00Z.",
        "from_epoch_ms(1000)",
        '"1970-01-01T00:00:01.000Z"',
    ),
    Function(
        "format",
        Group.TIMES,
        (_TIME, Parameter("pattern", A_TEXT)),
        lambda _: TEXT,
        "A text with the parts of a time where `%Y` (year), `%m` (month), `%d` (day), `%H`, `%M`, "
        "`%S`, `%j` (day of the year), `%G`, `%V` (ISO year and week), `%u` (weekday), `%y`, "
        "`%a`, `%A`, `%b`, `%B` (English names), `%F`, `%T` or `%%` stand.",
        'format(date("2024-02-29"), "%d.%m.%Y")',
        '"29.02.2024"',
    ),
    Function(
        "now", Group.TIMES, (), _moment, "The moment of the statement.", "now() >= now()", "true"
    ),
    Function(
        "today",
        Group.TIMES,
        (),
        lambda _: DAY,
        "The day of the statement, in UTC.",
        "today() = date(now())",
        "true",
    ),
)
