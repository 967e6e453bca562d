"""Kinds of arguments: which types a function takes in a place, and what people call them.

Owns that, and the one type that values of several types have together. Never looks at values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from omnigraph.lang.types import INTEGERS, NUMERIC, Scalar, ValueType

BOOL = ValueType(Scalar.BOOL)
INTEGER = ValueType(Scalar.I64)
LARGE_INTEGER = ValueType(Scalar.U64)
FLOAT = ValueType(Scalar.F64)
TEXT = ValueType(Scalar.STRING)
DAY = ValueType(Scalar.DATE)
MOMENT = ValueType(Scalar.DATETIME)
TEXTS = ValueType(Scalar.STRING, is_list=True)
NUMBERS = ValueType(Scalar.I64, is_list=True)

_TIMES = frozenset({Scalar.DATE, Scalar.DATETIME})
_ORDERED = NUMERIC | _TIMES | {Scalar.STRING, Scalar.BOOL}


@dataclass(frozen=True, slots=True)
class Kind:
    """What may stand in a place: ``noun`` completes "expected …"."""

    noun: str
    accepts: Callable[[ValueType], bool]


def _scalar(*scalars: Scalar) -> Callable[[ValueType], bool]:
    return lambda type_: not type_.is_list and type_.scalar in scalars


ANY_KIND = Kind("a value", lambda type_: not type_.is_blob)
ORDERED = Kind("a value that has an order", _scalar(*_ORDERED))
A_CONDITION = Kind("a condition", _scalar(Scalar.BOOL))
A_NUMBER = Kind("a number", _scalar(*NUMERIC))
AN_INTEGER = Kind("an integer", _scalar(*INTEGERS))
A_TEXT = Kind("a text", _scalar(Scalar.STRING))
A_DAY = Kind("a Date", _scalar(Scalar.DATE))
A_MOMENT = Kind("a DateTime", _scalar(Scalar.DATETIME))
A_TIME = Kind("a Date or DateTime", _scalar(*_TIMES))
NUMBER_LIKE = Kind("a text, a Bool or a number", _scalar(Scalar.STRING, Scalar.BOOL, *NUMERIC))
BOOL_LIKE = Kind("a text or a Bool", _scalar(Scalar.STRING, Scalar.BOOL))
TIME_LIKE = Kind("a text, a Date or a DateTime", _scalar(Scalar.STRING, *_TIMES))
SHOWABLE = Kind("a text, a Bool, a number or a time", _scalar(*_ORDERED))
A_LIST = Kind("a list", lambda type_: type_.is_list)
TEXT_OR_LIST = Kind("a text or a list", lambda type_: type_.is_list or type_.is_text)
A_LIST_OF_NUMBERS = Kind(
    "a list of numbers", lambda type_: type_.is_list and type_.scalar in NUMERIC
)
A_LIST_OF_TEXTS = Kind(
    "a list of texts", lambda type_: type_.is_list and type_.scalar is Scalar.STRING
)
A_VECTOR = Kind(
    "a vector or a list of numbers",
    lambda type_: type_.is_vector or (type_.is_list and type_.scalar in NUMERIC),
)


def integer_of(types: Iterable[ValueType]) -> ValueType:
    """The type of an integer made of integers: I64, or U64 where one of them is.

    A column of either holds I64 if all of its values fit, else U64 if all fit.
    """
    large = any(type_.scalar is Scalar.U64 for type_ in types)
    return LARGE_INTEGER if large else INTEGER


def number_of(types: Iterable[ValueType]) -> ValueType:
    """The type of a number made of numbers."""
    types = tuple(types)
    return integer_of(types) if all(t.scalar in INTEGERS for t in types) else FLOAT


def common_type(types: Iterable[ValueType]) -> ValueType | None:
    """The one type that values of these types have, nullable where all are; None if there is none.

    Equal types stay what they are; other numbers become I64, U64 or F64, an enum a String.
    """
    first, *rest = types = tuple(types)
    found: ValueType | None = first.without_null
    for type_ in rest:
        found = found and _common(found, type_.without_null)
    return found and found.or_null(when=all(type_.nullable for type_ in types))


def _common(left: ValueType, right: ValueType) -> ValueType | None:
    if left.is_list != right.is_list:
        return None
    if left == right:
        return left
    if left.scalar in NUMERIC and right.scalar in NUMERIC:
        return replace(number_of((left, right)), is_list=left.is_list)
    if left.scalar is right.scalar is Scalar.STRING:
        return replace(left, enum_values=None)
    return None
