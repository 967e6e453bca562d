"""Conditions as SQL text, for columns that Arrow expressions cannot reach in storage.

Owns the spelling. A value is digits that are written here, and a text is the hexadecimal
digits of its bytes: nothing that a user wrote is ever a part of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

# What SQL calls the types of Arrow, for numbers and for what is counted by numbers.
_NUMBERS = {
    "int32": "Int32",
    "int64": "Int64",
    "uint32": "UInt32",
    "uint64": "UInt64",
    "float": "Float32",
    "double": "Float64",
}
_COUNTED = {
    "date32[day]": ("Int32", "Date32"),
    "timestamp[ms, tz=UTC]": ("Int64", 'Timestamp(Millisecond, Some("UTC"))'),
}


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """A condition that storage evaluates as text, and memory as an expression."""

    text: str
    expression: pc.Expression


Condition: TypeAlias = "pc.Expression | SqlCondition"
"""What storage evaluates."""


@dataclass(frozen=True, slots=True)
class SqlText:
    """A condition; it is denied as an expression is."""

    text: str

    def __invert__(self) -> SqlText:
        return SqlText(f"(NOT {self.text})")


@dataclass(frozen=True, slots=True, eq=False)
class SqlColumn:
    """A column that is compared as the field of an Arrow expression is, and spells what it says."""

    name: str

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, value: pa.Scalar) -> SqlText:  # type: ignore[override]
        return self._compared("=", value)

    def __ne__(self, value: pa.Scalar) -> SqlText:  # type: ignore[override]
        return self._compared("!=", value)

    def __lt__(self, value: pa.Scalar) -> SqlText:
        return self._compared("<", value)

    def __le__(self, value: pa.Scalar) -> SqlText:
        return self._compared("<=", value)

    def __gt__(self, value: pa.Scalar) -> SqlText:
        return self._compared(">", value)

    def __ge__(self, value: pa.Scalar) -> SqlText:
        return self._compared(">=", value)

    def isin(self, values: pa.Array) -> SqlText:
        """One of some values."""
        return SqlText(f"({self._quoted} IN ({', '.join(map(_value, values))}))")

    def is_null(self) -> SqlText:
        """Nothing."""
        return SqlText(f"({self._quoted} IS NULL)")

    def is_valid(self) -> SqlText:
        """Something."""
        return SqlText(f"({self._quoted} IS NOT NULL)")

    def starts_with(self, text: str) -> SqlText:
        """A text that begins with another."""
        return SqlText(f"starts_with({self._quoted}, {_text(text)})")

    def has_substring(self, text: str) -> SqlText:
        """A text that has another in it."""
        return SqlText(f"contains({self._quoted}, {_text(text)})")

    def _compared(self, op: str, value: pa.Scalar) -> SqlText:
        return SqlText(f"({self._quoted} {op} {_value(value)})")

    @property
    def _quoted(self) -> str:
        if not self.name.replace("@", "").replace("_", "").isalnum():
            raise AssertionError(f"{self.name!r} is no name of a column")
        return f"`{self.name}`"


NEVER = SqlText("false")


def all_of(conditions: Iterable[SqlText]) -> SqlText:
    """All of some conditions hold."""
    return SqlText(f"({' AND '.join(one.text for one in conditions)})")


def any_of(conditions: Iterable[SqlText]) -> SqlText:
    """One of some conditions holds."""
    return SqlText(f"({' OR '.join(one.text for one in conditions)})")


def _value(value: pa.Scalar) -> str:
    name = str(value.type)
    if name == "string":
        return _text(value.as_py())
    if name == "bool":
        return "true" if value.as_py() else "false"
    if name in _COUNTED:
        number, counted = _COUNTED[name]
        return f"arrow_cast({_number(value.value, number)}, '{counted}')"
    return _number(value.as_py(), _NUMBERS[name])


def _text(text: str) -> str:
    return f"arrow_cast(X'{text.encode().hex()}', 'Utf8')"


def _number(number: float, name: str) -> str:
    # Read from text: a literal of SQL is taken for a float where it is large.
    return f"arrow_cast('{number!r}', '{name}')"
