"""The functions of numbers, of choice, of vectors and space, and between kinds of values.

Owns their signatures and what is told about them. What they do is done over rows.
"""

from __future__ import annotations

from omnigraph.lang.functions.kinds import (
    A_CONDITION,
    A_NUMBER,
    A_VECTOR,
    AN_INTEGER,
    ANY_KIND,
    BOOL,
    BOOL_LIKE,
    DAY,
    FLOAT,
    INTEGER,
    MOMENT,
    NUMBER_LIKE,
    ORDERED,
    SHOWABLE,
    TEXT,
    TIME_LIKE,
    common_type,
    integer_of,
    number_of,
)
from omnigraph.lang.functions.signature import Function, Group, Parameter, Types
from omnigraph.lang.types import INTEGERS, ValueType


def _branches(types: Types) -> ValueType | None:
    common = common_type(types[1:])
    return common and common.or_null(when=any(type_.nullable for type_ in types[1:]))


def _not_null(types: Types) -> ValueType | None:
    common = common_type(types)
    return common and common.without_null


def _whole(types: Types) -> ValueType:
    return integer_of(types[:1]) if types[0].scalar in INTEGERS else INTEGER


def _quotient(types: Types) -> ValueType:
    number = number_of(types)
    return number if number.scalar in INTEGERS else INTEGER


def _rounded(types: Types) -> ValueType:
    return _whole(types) if len(types) == 1 else FLOAT


def _same_length(types: Types) -> ValueType | None:
    dimensions = {type_.dimension for type_ in types if type_.is_vector}
    return FLOAT if len(dimensions) < 2 else None


def _to_integer(types: Types) -> ValueType:
    whole = integer_of(types) if types[0].scalar in INTEGERS else INTEGER
    return whole.or_null(when=types[0].is_text)


_A = Parameter("a", ANY_KIND)
_B = Parameter("b", ANY_KIND)
_X = Parameter("x", A_NUMBER)

CHOICE = (
    Function(
        "coalesce",
        Group.CHOICE,
        (_A, _B),
        common_type,
        "The first of its arguments that is not null.",
        'coalesce("Ann", "nobody")',
        '"Ann"',
        variadic=True,
        null_if_any=False,
    ),
    Function(
        "if",
        Group.CHOICE,
        (Parameter("condition", A_CONDITION), _A, _B),
        _branches,
        "One value where a condition is true, another where it is false or unknown.",
        'if(2 > 1, "more", "less")',
        '"more"',
        null_if_any=False,
        together="give one kind of value",
    ),
)

NUMBERS = (
    Function("abs", Group.NUMBERS, (_X,), number_of, "Without its sign.", "abs(-3)", "3"),
    Function("floor", Group.NUMBERS, (_X,), _whole, "The next integer below.", "floor(-2.5)", "-3"),
    Function("ceil", Group.NUMBERS, (_X,), _whole, "The next integer above.", "ceil(2.1)", "3"),
    Function(
        "round",
        Group.NUMBERS,
        (_X, Parameter("digits", AN_INTEGER, optional=True)),
        _rounded,
        "The nearest integer, or the nearest number of so many digits behind the point; "
        "a half goes away from zero.",
        "round(2.5)",
        "3",
    ),
    Function(
        "sqrt",
        Group.NUMBERS,
        (_X,),
        lambda _: FLOAT,
        "The square root; null below zero.",
        "sqrt(9)",
        "3.0",
        may_be_null=True,
    ),
    Function(
        "exp",
        Group.NUMBERS,
        (_X,),
        lambda _: FLOAT,
        "e to this power.",
        "exp(0)",
        "1.0",
        may_be_null=True,
    ),
    Function(
        "ln",
        Group.NUMBERS,
        (_X,),
        lambda _: FLOAT,
        "The natural logarithm; null unless above zero.",
        "ln(1)",
        "0.0",
        may_be_null=True,
    ),
    Function(
        "log10",
        Group.NUMBERS,
        (_X,),
        lambda _: FLOAT,
        "The decimal logarithm; null unless above zero.",
        "log10(1000)",
        "3.0",
        may_be_null=True,
    ),
    Function(
        "pow",
        Group.NUMBERS,
        (_X, Parameter("y", A_NUMBER)),
        lambda _: FLOAT,
        "x to the power of y; null where that is no number.",
        "pow(2, 10)",
        "1024.0",
        may_be_null=True,
    ),
    Function("sign", Group.NUMBERS, (_X,), lambda _: INTEGER, "-1, 0 or 1.", "sign(-2.5)", "-1"),
    Function(
        "div",
        Group.NUMBERS,
        (Parameter("a", A_NUMBER), Parameter("b", A_NUMBER)),
        _quotient,
        "a divided by b, rounded down to an integer; null when b is 0.",
        "div(-7, 2)",
        "-4",
        may_be_null=True,
    ),
    Function(
        "min_of",
        Group.NUMBERS,
        (Parameter("a", ORDERED), Parameter("b", ORDERED)),
        _not_null,
        "The least of its arguments; null if one of them is.",
        "min_of(3, 1, 2)",
        "1",
        variadic=True,
    ),
    Function(
        "max_of",
        Group.NUMBERS,
        (Parameter("a", ORDERED), Parameter("b", ORDERED)),
        _not_null,
        "The greatest of its arguments; null if one of them is.",
        "max_of(3, 1, 2)",
        "3",
        variadic=True,
    ),
)

CONVERSION = (
    Function(
        "to_int",
        Group.CONVERSION,
        (Parameter("x", NUMBER_LIKE),),
        _to_integer,
        "The integer a text names, or a number without its fraction.",
        "to_int(3.9)",
        "3",
    ),
    Function(
        "to_float",
        Group.CONVERSION,
        (Parameter("x", NUMBER_LIKE),),
        lambda types: FLOAT.or_null(when=types[0].is_text),
        "The number a text names, or a number as F64.",
        'to_float("2.5")',
        "2.5",
    ),
    Function(
        "to_string",
        Group.CONVERSION,
        (Parameter("x", SHOWABLE),),
        lambda _: TEXT,
        "The value as results spell it.",
        "to_string(1.0)",
        '"1.0"',
    ),
    Function(
        "to_bool",
        Group.CONVERSION,
        (Parameter("x", BOOL_LIKE),),
        lambda types: BOOL.or_null(when=types[0].is_text),
        "true for the text `true`, false for `false`, null for another.",
        'to_bool("true")',
        "true",
    ),
    Function(
        "to_date",
        Group.CONVERSION,
        (Parameter("x", TIME_LIKE),),
        lambda types: DAY.or_null(when=types[0].is_text),
        "The day a text `YYYY-MM-DD` names, or that of a DateTime in UTC.",
        'to_date("2024-02-30")',
        "null",
    ),
    Function(
        "to_datetime",
        Group.CONVERSION,
        (Parameter("x", TIME_LIKE),),
        lambda types: MOMENT.or_null(when=types[0].is_text),
        "The moment a text names, or the midnight in UTC that a day begins with.",
        'to_datetime("2024-01-31T12:00:00+02:00")',
        '"2024-01-31T10:00:00.000Z"',
    ),
)

SPACE = (
    Function(
        "cosine",
        Group.SPACE,
        (Parameter("a", A_VECTOR), Parameter("b", A_VECTOR)),
        _same_length,
        "How alike the directions of two vectors are: 1 for the same, -1 for the opposite.",
        "cosine([1.0, 0.0], [2.0, 0.0])",
        "1.0",
        may_be_null=True,
        together="have as many numbers",
    ),
    Function(
        "dot",
        Group.SPACE,
        (Parameter("a", A_VECTOR), Parameter("b", A_VECTOR)),
        _same_length,
        "The scalar product of two vectors.",
        "dot([1.0, 2.0], [3.0, 4.0])",
        "11.0",
        may_be_null=True,
        together="have as many numbers",
    ),
    Function(
        "l2",
        Group.SPACE,
        (Parameter("a", A_VECTOR), Parameter("b", A_VECTOR)),
        _same_length,
        "The Euclidean distance of two vectors.",
        "l2([0.0, 0.0], [3.0, 4.0])",
        "5.0",
        may_be_null=True,
        together="have as many numbers",
    ),
    Function(
        "distance_km",
        Group.SPACE,
        tuple(Parameter(name, A_NUMBER) for name in ("lat1", "lon1", "lat2", "lon2")),
        lambda _: FLOAT,
        "Kilometres between two places on the globe, given in degrees.",
        "round(distance_km(52.52, 13.405, 48.8566, 2.3522))",
        "877",
        may_be_null=True,
    ),
)
