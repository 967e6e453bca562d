"""The small constructs of `.pg`: types, annotations, constraints, cardinalities.

Owns their grammar. Never looks at declarations around them and never resolves
a name; what parses may still break a rule that checks.py knows.
"""

from __future__ import annotations

from omnigraph.lang.cursor import Cursor, shorten
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.literals import integer_value
from omnigraph.lang.schema.syntax.tree import (
    CONSTRAINT_NAMES,
    Annotation,
    Argument,
    Bounds,
    Cardinality,
    Constraint,
    LiteralKind,
)
from omnigraph.lang.source import Name
from omnigraph.lang.tokens import Kind, Token
from omnigraph.lang.types import (
    BASE_NAMES,
    MAX_CARDINALITY,
    MAX_VECTOR_DIMENSION,
    Scalar,
    ValueType,
)

_TYPE_WORDS = (*BASE_NAMES, "Vector", "enum")
_SYSTEM_WORDS = ("id", "src", "dst")
# What other systems call our types, where the spelling alone would not lead there.
_TYPE_ALIASES = {
    "boolean": "Bool",
    "double": "F64",
    "float": "F64",
    "int": "I64",
    "integer": "I64",
    "long": "I64",
    "number": "F64",
    "str": "String",
    "text": "String",
    "time": "DateTime",
    "timestamp": "DateTime",
}


# -- types -------------------------------------------------------------------------


def parse_type(cursor: Cursor) -> ValueType:
    """A property type, `?` included."""
    token = cursor.token
    if cursor.at("["):
        core = _list(cursor)
    elif cursor.at("enum") and token.kind is Kind.IDENT:
        core = ValueType(Scalar.STRING, enum_values=_enum_values(cursor))
    elif cursor.at("Vector"):
        core = ValueType(Scalar.VECTOR, dimension=_dimension(cursor))
    else:
        core = ValueType(_base(cursor, "a type"))
    return core.or_null() if cursor.accept("?") else core


def _base(cursor: Cursor, noun: str) -> Scalar:
    token = cursor.token
    if token.kind is Kind.TYPE and token.text in BASE_NAMES:
        cursor.advance()
        return Scalar(token.text)
    if token.kind not in (Kind.TYPE, Kind.IDENT):
        cursor.fail_expected(noun)
    alias = _TYPE_ALIASES.get(token.text.casefold())
    hint = f"did you mean `{alias}`?" if alias else did_you_mean(token.text, _TYPE_WORDS)
    return cursor.fail(
        token.span,
        f"unknown type `{shorten(token.text)}`",
        hint=hint or f"the types are {', '.join(_TYPE_WORDS)} and lists of them",
    )


def _list(cursor: Cursor) -> ValueType:
    opening = cursor.advance()
    inner = cursor.token
    for text, noun in (("[", "lists"), ("enum", "enums"), ("Vector", "vectors")):
        if cursor.at(text):
            cursor.fail(inner.span, f"there are no lists of {noun}")
    scalar = _base(cursor, "the base type of a list")
    if cursor.at("?"):
        cursor.fail(
            cursor.token.span,
            "elements of a list cannot be marked nullable",
            hint="`?` goes after the `]` and means the whole list",
        )
    cursor.expect("]")
    if scalar is Scalar.BLOB:
        cursor.report(cursor.span_from(opening.start), "there are no lists of Blob")
    return ValueType(scalar, is_list=True)


def _dimension(cursor: Cursor) -> int:
    cursor.advance()
    cursor.expect("(", instead="`(` and the dimension of the vector")
    token = cursor.expect_kind(Kind.INTEGER, "the dimension of the vector")
    cursor.expect(")")
    dimension = integer_value(token.text)
    if dimension is None or not 1 <= dimension <= MAX_VECTOR_DIMENSION:
        cursor.report(
            token.span,
            f"a vector dimension lies between 1 and {MAX_VECTOR_DIMENSION}, "
            f"not {shorten(token.text)}",
        )
        return 1
    return dimension


def _enum_values(cursor: Cursor) -> tuple[str, ...]:
    cursor.advance()
    cursor.expect("(", instead="`(` and the values of the enum")
    values: dict[str, None] = {}
    while True:
        value = _enum_value(cursor)
        if value.text in values:
            cursor.report(value.span, f"duplicate enum value `{shorten(value.text)}`")
        values[value.text] = None
        if not cursor.accept(","):
            break
    cursor.expect(")", instead="`,` or `)`")
    return tuple(values)


def _enum_value(cursor: Cursor) -> Name:
    """One value, joined from adjacent tokens: `in-progress` and `2nd` are several to the lexer."""
    first = cursor.token
    if first.kind is Kind.STRING:
        cursor.fail(first.span, "enum values are written without quotes")
    if not _is_enum_part(first):
        cursor.fail_expected("an enum value (letters, digits, `_` and `-`)")
    parts = [cursor.advance().text]
    while _is_enum_part(cursor.token) and cursor.token.start == cursor.previous_end():
        parts.append(cursor.advance().text)
    return Name("".join(parts), span=cursor.span_from(first.start))


def _is_enum_part(token: Token) -> bool:
    if token.kind in (Kind.IDENT, Kind.TYPE, Kind.INTEGER):
        return True
    return token.kind is Kind.PUNCT and token.text == "-"


# -- arguments ---------------------------------------------------------------------


def _literal(cursor: Cursor, noun: str) -> Argument | None:
    """A literal if one is next; a bare name is none."""
    token = cursor.token
    if token.kind is Kind.STRING:
        return Argument("string", cursor.string(noun), span=token.span)
    if token.kind is Kind.INTEGER:
        return Argument("integer", cursor.advance().text, span=token.span)
    if token.kind is Kind.FLOAT:
        return Argument("float", cursor.advance().text, span=token.span)
    if token.kind is Kind.IDENT and token.text in ("true", "false"):
        return Argument("bool", cursor.advance().text, span=token.span)
    return None


def _number(cursor: Cursor) -> Argument:
    """A number with an optional sign."""
    start = cursor.token.start
    sign = "-" if cursor.accept("-") else ""
    token = cursor.token
    if token.kind not in (Kind.INTEGER, Kind.FLOAT):
        cursor.fail_expected("a number")
    cursor.advance()
    kind: LiteralKind = "integer" if token.kind is Kind.INTEGER else "float"
    return Argument(kind, sign + token.text, span=cursor.span_from(start))


def _value(cursor: Cursor, *, owner: str) -> Argument:
    """The positional value of an annotation."""
    token = cursor.token
    noun = f"the value of `@{shorten(owner)}`"
    if cursor.at("-"):
        if owner != "default":
            cursor.fail(token.span, "a signed number stands only in `@default` and `@range`")
        return _number(cursor)
    literal = _literal(cursor, noun)
    if literal is not None:
        return literal
    if token.kind is Kind.TYPE:
        cursor.fail(
            token.span,
            f"expected {noun}, found `{shorten(token.text)}`",
            hint=f'a name with a capital needs quotes: "{shorten(token.text)}"',
        )
    if token.kind is not Kind.IDENT:
        cursor.fail_expected(noun)
    return Argument("name", cursor.advance().text, span=token.span)


# -- annotations -------------------------------------------------------------------


def at_constraint(cursor: Cursor) -> bool:
    """Whether `@key(`, `@unique(`, `@index(`, `@range(` or `@check(` is next."""
    if not cursor.at("@"):
        return False
    name, opening = cursor.peek(), cursor.peek(2)
    return (
        name.kind is Kind.IDENT
        and name.text in CONSTRAINT_NAMES
        and opening.kind is Kind.PUNCT
        and opening.text == "("
    )


def at_cardinality(cursor: Cursor) -> bool:
    """Whether `@card` is next."""
    name = cursor.peek()
    return cursor.at("@") and name.kind is Kind.IDENT and name.text == "card"


def parse_annotation(cursor: Cursor) -> Annotation:
    """`@name`, `@name(value)` or `@name(value, option=literal)`."""
    start = cursor.expect("@").start
    token = cursor.token
    if token.kind is Kind.TYPE:
        cursor.fail(
            token.span,
            f"expected the name of an annotation, found `{shorten(token.text)}`",
            hint="annotation names start with a lower-case letter",
        )
    name = cursor.expect_kind(Kind.IDENT, "the name of an annotation").text
    if not cursor.accept("("):
        return Annotation(name, span=cursor.span_from(start))
    value = _value(cursor, owner=name)
    if cursor.at("="):
        cursor.fail(value.span, f"the value of `@{shorten(name)}` comes before its options")
    options: dict[str, tuple[Name, Argument]] = {}
    while cursor.accept(","):
        option, argument = _option(cursor)
        if option.text in options:
            cursor.report(option.span, f"`{shorten(option.text)}` is given twice")
        options[option.text] = (option, argument)
    if value.kind == "name" and cursor.at("-"):
        cursor.fail(
            cursor.token.span,
            "expected `,` or `)`, found `-`",
            hint="text that is not a plain name needs quotes",
        )
    cursor.expect(")", instead="`,` or `)`")
    return Annotation(name, value, tuple(options.values()), span=cursor.span_from(start))


def _option(cursor: Cursor) -> tuple[Name, Argument]:
    token = cursor.expect_kind(Kind.IDENT, "the name of an option")
    cursor.expect("=")
    argument = _literal(cursor, "the value of an option")
    if argument is not None:
        return Name(token.text, span=token.span), argument
    if cursor.token.kind in (Kind.IDENT, Kind.TYPE):
        text = shorten(cursor.token.text)
        cursor.fail(
            cursor.token.span,
            f"expected a string, a number, `true` or `false`, found `{text}`",
            hint=f'write "{text}"',
        )
    return cursor.fail_expected("a string, a number, `true` or `false`")


def parse_cardinality(cursor: Cursor) -> Cardinality:
    """`@card(min..max)` or `@card(min..)`."""
    start = cursor.expect("@").start
    cursor.advance()
    cursor.expect("(", instead="`(` and the bounds of `@card`")
    if cursor.at(".."):
        cursor.fail(
            cursor.token.span, "`@card` needs a lower bound", hint="write `0..n` for at most n"
        )
    first = cursor.expect_kind(Kind.INTEGER, "the lower bound of `@card`")
    minimum = _card_bound(cursor, first)
    if cursor.at(")"):
        text = shorten(first.text)
        cursor.report(
            first.span,
            f"`@card({text})` is ambiguous: write `{text}..{text}`",
            hint=f"`{text}..` means at least {text}, `0..{text}` at most {text}",
        )
        cursor.advance()
        return Cardinality(minimum, minimum, span=cursor.span_from(start))
    cursor.expect("..")
    maximum = None
    if cursor.token.kind is Kind.INTEGER:
        maximum = _card_bound(cursor, cursor.advance())
    cursor.expect(")", instead="an upper bound or `)`" if maximum is None else "`)`")
    return Cardinality(minimum, maximum, span=cursor.span_from(start))


def _card_bound(cursor: Cursor, token: Token) -> int:
    bound = integer_value(token.text)
    if bound is None or bound > MAX_CARDINALITY:
        cursor.report(token.span, f"a bound of `@card` is at most {MAX_CARDINALITY}")
        return MAX_CARDINALITY
    return bound


# -- body constraints --------------------------------------------------------------


def parse_constraint(cursor: Cursor) -> Constraint:
    """`@key(…)`, `@unique(…)`, `@index(…)`, `@range(…)` or `@check(…)`."""
    start = cursor.expect("@").start
    word = cursor.advance().text
    name = next(known for known in CONSTRAINT_NAMES if known == word)
    cursor.expect("(")
    arguments: list[Argument | Bounds] = []
    if not cursor.at(")"):
        arguments.append(_constraint_argument(cursor))
        while cursor.accept(","):
            arguments.append(_constraint_argument(cursor))
    cursor.expect(")", instead="`,` or `)`")
    return Constraint(name, tuple(arguments), span=cursor.span_from(start))


def _constraint_argument(cursor: Cursor) -> Argument | Bounds:
    token = cursor.token
    if cursor.at(".."):
        cursor.advance()
        return Bounds(None, _number(cursor), span=cursor.span_from(token.start))
    if cursor.at("-") or token.kind in (Kind.INTEGER, Kind.FLOAT):
        low = _number(cursor)
        if cursor.accept(".."):
            open_ended = cursor.at(")") or cursor.at(",")
            high = None if open_ended else _number(cursor)
            return Bounds(low, high, span=cursor.span_from(token.start))
        if low.text.startswith("-"):
            cursor.fail_expected("`..` after a signed number")
        return low
    literal = _literal(cursor, "an argument")
    if literal is not None:
        return literal
    if token.kind is Kind.IDENT:
        return Argument("name", cursor.advance().text, span=token.span)
    if cursor.at("@") and cursor.peek().kind is Kind.IDENT and cursor.peek().text in _SYSTEM_WORDS:
        cursor.advance()
        return Argument("name", f"@{cursor.advance().text}", span=cursor.span_from(token.start))
    if token.kind is Kind.TYPE:
        cursor.fail(
            token.span,
            f"expected the name of a property, found `{shorten(token.text)}`",
            hint="property names start with a lower-case letter or `_`",
        )
    return cursor.fail_expected("the name of a property, bounds or a literal")
