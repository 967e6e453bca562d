"""Parameters: from JSON (or Python) values to values of their declared types.

Owns coercion and its messages. Values come out as str, int, float, bool, date,
aware datetime, tuples of those, or None. Never guesses: what is not stated to
be accepted is an error that names the parameter.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from math import isfinite
from typing import Any, Literal, NoReturn

from omnigraph.errors import ParamError, quoted
from omnigraph.lang.diagnostics import MAX_LISTED, nearest_name
from omnigraph.lang.literals import parse_date, parse_datetime
from omnigraph.lang.types import INTEGER_RANGE, RecordList, Scalar, ValueType

Mode = Literal["standard", "javascript"]
ParamScalar = str | int | float | bool | date | datetime
ParamValue = ParamScalar | None | tuple[ParamScalar, ...]

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer a JavaScript number holds exactly."""
ENGINE_MAX = 2**63 - 1
F32_OVERFLOW = (2 - 2**-24) * 2.0**127
"""From here on a number rounds to infinity at 32 bits."""
_DECIMAL_DIGITS = 40


def coerce_params(
    declared: Mapping[str, ValueType],
    given: object,
    *,
    mode: Mode = "standard",
    records: Mapping[str, RecordList] | None = None,
) -> dict[str, ParamValue]:
    """The value of every parameter that has one.

    Of a list of ``records`` every field has a list of its own, under the name of both.

    A nullable parameter that is not given is null. A missing required one is left
    out: it is an error only where it is used. A name that is not declared is refused,
    since it is most likely another one misspelled.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        found = type(given).__name__
        raise ParamError(
            f"params must be a JSON object, in Python a mapping of names to values; found {found}",
            details={"found": found},
        )
    values: dict[str, ParamValue] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise ParamError(
                f"the names of params are texts, found {quoted(repr(name))}",
                details={"found": type(name).__name__},
            )
        type_ = declared.get(name)
        if records is not None and name in records:
            values |= _Coercion(name, mode).records(value, records[name])
            continue
        if type_ is None:
            raise _undeclared(name, (*declared, *(records or ())))
        values[name] = _Coercion(name, mode).coerce(value, type_)
    for name, type_ in declared.items():
        if type_.nullable:
            values.setdefault(name, None)
    for name, fields in (records or {}).items():
        if fields.nullable:
            values.setdefault(name, None)
    return values


def require(values: Mapping[str, ParamValue], name: str) -> ParamValue:
    """The value of a parameter that is about to be used."""
    if name not in values:
        raise ParamError(f"parameter '{name}' not provided", details={"param": name})
    return values[name]


def _undeclared(name: str, declared: Iterable[str]) -> ParamError:
    names = list(declared)
    near = nearest_name(name, names)
    if near is not None:
        hint = f"did you mean '{near}'?"
    elif names:
        hint = f"declared are {', '.join(names[:MAX_LISTED])}" + "…" * (len(names) > MAX_LISTED)
    else:
        hint = "the query declares none"
    return ParamError(
        f"there is no parameter '{quoted(name)}': {hint}",
        details={"param": quoted(name), "declared": names},
    )


class _Coercion:
    """Coerces the value of one parameter."""

    def __init__(self, name: str, mode: Mode) -> None:
        self.name = name
        self.mode = mode

    def fail(self, message: str) -> NoReturn:
        raise ParamError(f"param '{self.name}': {message}", details={"param": self.name})

    def coerce(self, value: object, type_: ValueType) -> ParamValue:
        """A value as its declared type."""
        if value is None:
            if type_.nullable:
                return None
            self.fail(f"null is not a value of {type_}")
        if type_.is_vector:
            return self._vector(value, type_)
        if type_.is_list:
            return self._list(value, type_)
        return self._scalar(value, type_.scalar)

    def records(self, value: object, type_: RecordList) -> dict[str, ParamValue]:
        """A list of records: how many there are, as a list of their numbers, and every field."""
        if value is None:
            if not type_.nullable:
                self.fail(f"null is not a value of {type_}")
            return {self.name: None}
        if not isinstance(value, list | tuple):
            self.fail(f"expected an array for {type_}, found {_json_name(value)}")
        columns: dict[str, list[Any]] = {name: [] for name, _ in type_.fields}
        for index, item in enumerate(value):
            if not isinstance(item, Mapping):
                self.fail(f"element {index}: expected an object, found {_json_name(item)}")
            for name in item:
                if name not in columns:
                    near = nearest_name(str(name), columns)
                    hint = f": did you mean '{near}'?" if near else ""
                    self.fail(f"element {index} has no field '{quoted(str(name))}'{hint}")
            for name, field in type_.fields:
                if name not in item and not field.nullable:
                    self.fail(f"element {index} lacks the field '{name}'")
                of = _Coercion(f"{self.name}[{index}].{name}", self.mode)
                columns[name].append(of.coerce(item.get(name), field))
        found: dict[str, ParamValue] = {self.name: tuple(range(len(value)))}
        return found | {f"{self.name}.{name}": tuple(column) for name, column in columns.items()}

    def _list(self, value: object, type_: ValueType) -> tuple[ParamScalar, ...]:
        if not isinstance(value, list | tuple):
            self.fail(f"expected an array for {type_}, found {_json_name(value)}")
        return tuple(self._element(item, index, type_) for index, item in enumerate(value))

    def _element(self, item: object, index: int, type_: ValueType) -> ParamScalar:
        if item is None:
            self.fail(f"element {index} is null; lists hold no nulls")
        return self._scalar(item, type_.scalar)

    def _vector(self, value: object, type_: ValueType) -> tuple[ParamScalar, ...]:
        if not isinstance(value, list | tuple):
            self.fail(f"expected an array for {type_}, found {_json_name(value)}")
        if len(value) != type_.dimension:
            self.fail(f"expected {type_.dimension} numbers, found {len(value)}")
        # As it mostly is: hundreds of numbers are not looked at singly.
        all_finite = set(map(type, value)) == {float} and all(map(isfinite, value))
        if all_finite and -F32_OVERFLOW < min(value) <= max(value) < F32_OVERFLOW:
            return tuple(value)
        return tuple(self._float(item, Scalar.F32) for item in value)

    def _scalar(self, value: object, scalar: Scalar) -> ParamScalar:
        if scalar in INTEGER_RANGE:
            return self._integer(value, scalar)
        if scalar in (Scalar.F32, Scalar.F64):
            return self._float(value, scalar)
        if scalar is Scalar.BOOL:
            if isinstance(value, bool):
                return value
            self.fail(f"expected true or false, found {_json_name(value)}")
        if scalar in (Scalar.DATE, Scalar.DATETIME):
            return self._temporal(value, scalar)
        if scalar is Scalar.BLOB and isinstance(value, bytes | bytearray | memoryview):
            return "base64:" + b64encode(value).decode()
        if isinstance(value, str):
            return self._text(value)
        self.fail(f"expected a string for {scalar}, found {_json_name(value)}")

    def _text(self, value: str) -> str:
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                self.fail(f"character {error.start} is half of a surrogate pair and no text")
        return value

    def _integer(self, value: object, scalar: Scalar) -> int:
        number = self._whole_number(value, scalar)
        low, high = INTEGER_RANGE[scalar]
        if scalar is Scalar.U64 and ENGINE_MAX < number <= high:
            self.fail(f"{quoted(number)} exceeds current engine range (at most {ENGINE_MAX})")
        if not low <= number <= high:
            self.fail(f"{quoted(number)} is out of range for {scalar}")
        return number

    def _whole_number(self, value: object, scalar: Scalar) -> int:
        javascript = self.mode == "javascript"
        if isinstance(value, str):
            digits = value.removeprefix("-")
            if digits.isascii() and digits.isdigit() and len(digits) <= _DECIMAL_DIGITS:
                return int(value)
            self.fail(f"'{quoted(value)}' is not a decimal integer")
        if isinstance(value, float) and javascript and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"expected an integer for {scalar}, found {_json_name(value)}")
        if javascript and abs(value) > MAX_SAFE_INTEGER:
            self.fail(f"{quoted(value)} is not exact as a JavaScript number; pass it as a string")
        return value

    def _float(self, value: object, scalar: Scalar) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"expected a number for {scalar}, found {_json_name(value)}")
        try:
            number = float(value)
        except OverflowError:
            self.fail(f"the number is too large for {scalar}")
        if not isfinite(number):
            self.fail(f"{number} is not a finite number")
        if scalar is Scalar.F32 and abs(number) >= F32_OVERFLOW:
            self.fail(f"{number} is out of range for F32")
        return number

    def _temporal(self, value: object, scalar: Scalar) -> date | datetime:
        if scalar is Scalar.DATE and isinstance(value, date) and not isinstance(value, datetime):
            return value
        if scalar is Scalar.DATETIME and isinstance(value, datetime):
            if value.tzinfo is None:
                self.fail("a datetime needs a time zone")
            try:
                return value.astimezone(UTC)
            except (OverflowError, ValueError):
                self.fail("the moment lies outside the years 1 to 9999")
        if not isinstance(value, str):
            self.fail(f"expected a string for {scalar}, found {_json_name(value)}")
        try:
            return parse_date(value) if scalar is Scalar.DATE else parse_datetime(value)
        except ValueError as invalid:
            self.fail(str(invalid))


def _json_name(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a float"
        case str():
            return "a string"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return type(value).__name__
