"""The functions of texts and of lists.

Owns their signatures and what is told about them. What they do is done over rows.
"""

from __future__ import annotations

from omnigraph.lang.functions.kinds import (
    A_LIST,
    A_LIST_OF_NUMBERS,
    A_LIST_OF_TEXTS,
    A_TEXT,
    AN_INTEGER,
    ANY_KIND,
    BOOL,
    INTEGER,
    NUMBERS,
    TEXT,
    TEXT_OR_LIST,
    TEXTS,
    common_type,
    number_of,
)
from omnigraph.lang.functions.signature import Function, Group, Parameter, Types
from omnigraph.lang.types import ValueType

_S = Parameter("s", A_TEXT)
_N = Parameter("n", AN_INTEGER)
_FILL = Parameter("fill", A_TEXT, optional=True)
_LIST = Parameter("list", A_LIST)


def _text(_: Types) -> ValueType:
    return TEXT


def _integer(_: Types) -> ValueType:
    return INTEGER


def _condition(_: Types) -> ValueType:
    return BOOL


def _member(types: Types) -> ValueType | None:
    whole, part = types
    if not whole.is_list:
        return BOOL if part.is_text else None
    return BOOL if common_type((whole.element(), part)) is not None else None


def _element(types: Types) -> ValueType:
    return types[0].element()


def _same(types: Types) -> ValueType:
    return types[0].without_null


def _sum(types: Types) -> ValueType:
    return number_of([types[0].element()])


def _of_text(name: str, description: str, example: str, gives: str, *more: Parameter) -> Function:
    return Function(name, Group.TEXTS, (_S, *more), _text, description, example, gives)


TEXT_FUNCTIONS = (
    Function("length", Group.TEXTS, (_S,), _integer, "How many characters.", 'length("Zoë")', "3"),
    _of_text("lower", "In lower case.", 'lower("Ann")', '"ann"'),
    _of_text("upper", "In upper case.", 'upper("Ann")', '"ANN"'),
    _of_text("trim", "Without blanks at both ends.", 'trim("  Ann ")', '"Ann"'),
    _of_text(
        "replace",
        "With every a replaced by b.",
        'replace("banana", "an", "o")',
        '"booa"',
        Parameter("a", A_TEXT),
        Parameter("b", A_TEXT),
    ),
    _of_text(
        "substring",
        "n characters, or all, from a position on; the first is 0.",
        'substring("banana", 2, 3)',
        '"nan"',
        Parameter("start", AN_INTEGER),
        Parameter("n", AN_INTEGER, optional=True),
    ),
    Function(
        "split",
        Group.TEXTS,
        (_S, Parameter("separator", A_TEXT)),
        lambda _: TEXTS,
        "The texts between separators; without one, the characters.",
        'split("a,b,,c", ",")',
        '["a", "b", "", "c"]',
    ),
    Function(
        "join",
        Group.TEXTS,
        (Parameter("list", A_LIST_OF_TEXTS), Parameter("separator", A_TEXT)),
        _text,
        "The texts of a list as one, with a separator between them.",
        'join(["a", "b"], "-")',
        '"a-b"',
    ),
    Function(
        "concat",
        Group.TEXTS,
        (Parameter("a", A_TEXT),),
        _text,
        "All texts as one; null if one of them is.",
        'concat("a", "b", "c")',
        '"abc"',
        variadic=True,
    ),
    _of_text("repeat", "n times; not at all below 1.", 'repeat("ab", 3)', '"ababab"', _N),
    _of_text("reverse", "The characters from the last to the first.", 'reverse("abc")', '"cba"'),
    _of_text("left", "The first n characters.", 'left("banana", 3)', '"ban"', _N),
    _of_text("right", "The last n characters.", 'right("banana", 3)', '"ana"', _N),
    _of_text(
        "pad_left",
        "Filled up on the left to n characters, with blanks or with another text; never cut.",
        'pad_left("7", 3, "0")',
        '"007"',
        _N,
        _FILL,
    ),
    _of_text(
        "pad_right",
        "Filled up on the right to n characters, with blanks or with another text; never cut.",
        'pad_right("7", 3, ".")',
        '"7.."',
        _N,
        _FILL,
    ),
    Function(
        "contains",
        Group.TEXTS,
        (Parameter("s", TEXT_OR_LIST), Parameter("x", ANY_KIND)),
        _member,
        "Whether a text stands in another, or a value in a list.",
        'contains("banana", "nan")',
        "true",
        together="be two texts, or a list and a value of its kind",
    ),
    Function(
        "starts_with",
        Group.TEXTS,
        (_S, Parameter("start", A_TEXT)),
        _condition,
        "Whether a text begins with another.",
        'starts_with("banana", "ba")',
        "true",
    ),
    Function(
        "ends_with",
        Group.TEXTS,
        (_S, Parameter("end", A_TEXT)),
        _condition,
        "Whether a text ends with another.",
        'ends_with("banana", "na")',
        "true",
    ),
    Function(
        "matches",
        Group.TEXTS,
        (_S, Parameter("regex", A_TEXT)),
        _condition,
        "Whether a regular expression (RE2) is found anywhere in a text.",
        'matches("banana", "^b.*(an){2}")',
        "true",
    ),
    Function(
        "like",
        Group.TEXTS,
        (_S, Parameter("pattern", A_TEXT)),
        _condition,
        "Whether the whole text fits a pattern: `%` stands for any characters, `_` for one, "
        "and after a backslash each stands for itself.",
        'like("banana", "b%n_")',
        "true",
    ),
)

LIST_FUNCTIONS = (
    Function("size", Group.LISTS, (_LIST,), _integer, "How many values.", "size([3, 4])", "2"),
    Function(
        "first",
        Group.LISTS,
        (_LIST,),
        _element,
        "The first value; null of an empty list.",
        "first([3, 4])",
        "3",
        may_be_null=True,
    ),
    Function(
        "last",
        Group.LISTS,
        (_LIST,),
        _element,
        "The last value; null of an empty list.",
        "last([3, 4])",
        "4",
        may_be_null=True,
    ),
    Function(
        "at",
        Group.LISTS,
        (_LIST, Parameter("i", AN_INTEGER)),
        _element,
        "The value at a position; the first is 0, and outside of the list is null.",
        "at([3, 4], 1)",
        "4",
        may_be_null=True,
    ),
    Function(
        "slice",
        Group.LISTS,
        (_LIST, Parameter("a", AN_INTEGER), Parameter("b", AN_INTEGER, optional=True)),
        _same,
        "The values from position a up to b, without it; without b, to the end.",
        "slice([3, 4, 5, 6], 1, 3)",
        "[4, 5]",
    ),
    Function(
        "sort", Group.LISTS, (_LIST,), _same, "From low to high.", "sort([3, 1, 2])", "[1, 2, 3]"
    ),
    Function(
        "unique",
        Group.LISTS,
        (_LIST,),
        _same,
        "Each value once, where it comes first.",
        "unique([3, 1, 3])",
        "[3, 1]",
    ),
    Function(
        "sum_of",
        Group.LISTS,
        (Parameter("list", A_LIST_OF_NUMBERS),),
        _sum,
        "The sum of the values; null if there are none.",
        "sum_of([1, 2, 3])",
        "6",
        may_be_null=True,
    ),
    Function(
        "range",
        Group.LISTS,
        (Parameter("a", AN_INTEGER), Parameter("b", AN_INTEGER)),
        lambda _: NUMBERS,
        "The integers from a up to b, without it.",
        "range(1, 4)",
        "[1, 2, 3]",
    ),
)
