"""Parsing expressions: values and conditions, by the rank of their operators.

Owns operators and what may stand between them. Says where an expression is
malformed, never whether it makes sense: that is the checker's.
"""

from __future__ import annotations

from typing import cast

from omnigraph.lang.cursor import Cursor
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.aggregates import parse_block_value
from omnigraph.lang.query.parsing.calls import parse_call, parse_case
from omnigraph.lang.query.parsing.literals import at_temporal, parse_literal, parse_number
from omnigraph.lang.query.parsing.names import (
    parse_access,
    parse_property_name,
    parse_variable,
)
from omnigraph.lang.tokens import Kind

# The ranks of operators: the higher one is bound sooner.
_OR, _AND, _COMPARED, _SUM, _PRODUCT = range(1, 6)
_RANKS: dict[str, int] = {
    "or": _OR,
    "and": _AND,
    "is": _COMPARED,
    "in": _COMPARED,
    **dict.fromkeys((*terms.COMPARISONS, *terms.WORD_OPERATORS), _COMPARED),
    **dict.fromkeys(terms.SUMS, _SUM),
    **dict.fromkeys(terms.PRODUCTS, _PRODUCT),
}
_NUMBERS = (Kind.INTEGER, Kind.FLOAT)


def parse_expr(cursor: Cursor) -> terms.Expr:
    """Any expression, conditions included."""
    return _climb(cursor, _prefixed(cursor, _OR), _OR)


def continue_expr(cursor: Cursor, first: terms.Expr) -> terms.Expr:
    """The rest of an expression that begins with what was read already."""
    return _climb(cursor, first, _OR)


def goes_on(cursor: Cursor) -> bool:
    """Whether an operator follows, so that what was read is part of an expression."""
    return _rank(cursor) > 0


# -- operators -------------------------------------------------------------------


def _rank(cursor: Cursor) -> int:
    """How tightly the operator under the cursor binds; 0 where none follows."""
    return 0 if cursor.token.kind is Kind.STRING else _RANKS.get(cursor.token.text, 0)


def _climb(cursor: Cursor, left: terms.Expr, lowest: int) -> terms.Expr:
    """An expression that goes on from ``left`` with operators of this rank or higher ones."""
    while (rank := _rank(cursor)) >= lowest:
        if rank in (_SUM, _PRODUCT):
            left = _arithmetic(cursor, left, rank)
        elif rank == _COMPARED:
            left = _compared(cursor, left)
            if _rank(cursor) == _COMPARED:
                cursor.fail(
                    cursor.token.span,
                    "comparisons do not chain",
                    hint="write two of them, joined by `and`",
                )
        else:
            left = _logical(cursor, left, rank)
    if cursor.at("not") and cursor.peek().text == "in":
        cursor.fail(
            cursor.token.span.to(cursor.peek().span),
            "`not in` is written around the whole",
            hint="write `not (… in […])`",
        )
    return left


def _operand(cursor: Cursor, rank: int) -> terms.Expr:
    """What stands right of an operator of the rank before."""
    return _climb(cursor, _prefixed(cursor, rank), rank)


def _arithmetic(cursor: Cursor, first: terms.Expr, rank: int) -> terms.Arithmetic:
    rest: list[tuple[terms.ArithmeticOp, terms.Expr]] = []
    while _rank(cursor) == rank:
        op = cast("terms.ArithmeticOp", cursor.advance().text)
        rest.append((op, _operand(cursor, rank + 1)))
    return terms.Arithmetic(first, tuple(rest), span=cursor.span_from(first.span.start))


def _logical(cursor: Cursor, first: terms.Expr, rank: int) -> terms.Logical:
    operands = [first]
    while _rank(cursor) == rank:
        cursor.advance()
        operands.append(_operand(cursor, rank + 1))
    span = cursor.span_from(first.span.start)
    return terms.Logical("or" if rank == _OR else "and", tuple(operands), span=span)


def _compared(cursor: Cursor, left: terms.Expr) -> terms.Condition:
    start = left.span.start
    op = cursor.advance()
    if op.text == "is":
        negated = cursor.accept("not")
        cursor.expect("null", instead="`null` or `not null`")
        return terms.NullTest(left, negated, span=cursor.span_from(start))
    if op.text == "in":
        choices = _operand(cursor, _SUM)
        return terms.Membership(left, choices, span=cursor.span_from(start))
    if cursor.token.start == op.end and (op.text + cursor.token.text) in ("==", "<>"):
        right = "=" if op.text == "=" else "!="
        cursor.fail(
            op.span.to(cursor.token.span),
            f"`{op.text}{cursor.token.text}` is no operator here",
            hint=f"write `{right}`",
        )
    other = _operand(cursor, _SUM)
    name = cast("terms.FilterOp", op.text)
    return terms.Comparison(left, name, other, span=cursor.span_from(start))


def _prefixed(cursor: Cursor, rank: int) -> terms.Expr:
    """`not x`, `-x`, or what has no operator before it."""
    token = cursor.token
    if token.kind is Kind.IDENT and token.text == "not" and rank <= _COMPARED:
        if cursor.peek().text == "{":
            cursor.advance()
            return parse_block_value(cursor, "not", token.start)
        if not _is_word_alone(cursor):
            cursor.advance()
            with cursor.nested():
                operand = _operand(cursor, _COMPARED)
            return terms.Negation(operand, span=cursor.span_from(token.start))
    elif token.text == "-" and token.kind is Kind.PUNCT:
        if cursor.peek().kind in _NUMBERS:
            return parse_number(cursor)
        cursor.advance()
        with cursor.nested():
            operand = _prefixed(cursor, _PRODUCT)
        return terms.Negative(operand, span=cursor.span_from(token.start))
    return _primary(cursor)


def _is_word_alone(cursor: Cursor) -> bool:
    """Whether the word under the cursor is a name, for nothing follows that it could apply to."""
    after = cursor.peek()
    if after.kind is Kind.PUNCT:
        return after.text not in ("(", "[", "-", "{")
    if after.kind is not Kind.IDENT:
        return after.kind is Kind.END
    is_called = after.text not in _JOINING and cursor.peek(2).text == "("
    return after.text in _ENDINGS and not is_called


_TRUTHS = ("true", "false")
_JOINING = ("as", "and", "or", "is", "in")
_ENDINGS = (*_JOINING, "asc", "desc", "contains", "starts_with", "ends_with")


# -- what stands between operators -------------------------------------------------


def _of_variable(cursor: Cursor, variable: terms.Variable) -> terms.Expr:
    """`$x.property`; `$x.@type` is another spelling of `type($x)`."""
    access = parse_access(cursor, variable)
    if access.property.text != "@type":
        return access
    return terms.Call(terms.Name("type", span=access.property.span), (variable,), span=access.span)


def _primary(cursor: Cursor) -> terms.Expr:
    token = cursor.token
    if token.kind is Kind.VARIABLE:
        variable = parse_variable(cursor)
        return _of_variable(cursor, variable) if cursor.at(".") else variable
    if token.kind is Kind.IDENT:
        after = cursor.peek()
        if token.text in _TRUTHS or at_temporal(cursor):
            return parse_literal(cursor)
        if after.text == "(":
            return parse_call(cursor, parse_expr)
        if token.text == "case":
            if after.text == "{":
                return parse_case(cursor, parse_expr)
            if after.text == "when" or after.kind is Kind.VARIABLE:
                cursor.teach()
        if after.text == "{" and token.text in ("exists", "count"):
            cursor.advance()
            if token.text == "exists":
                return parse_block_value(cursor, "exists", token.start)
            return parse_block_value(cursor, terms.Aggregate("count"), token.start)
        if after.text == "{" and token.text in terms.AGGREGATES:
            cursor.fail(
                token.span,
                f"`{token.text}` of a block needs a property",
                hint=f"write `{token.text}($x.property) {{ … }}`",
            )
        cursor.advance()
        return terms.Alias(token.text, span=token.span)
    if cursor.at("("):
        return _parenthesised(cursor)
    if cursor.at("["):
        return _list(cursor)
    if cursor.at("@"):
        name = parse_property_name(cursor)
        return terms.Alias(name.text, span=name.span)
    if token.kind is Kind.TYPE and cursor.peek().text == "(":
        return _node_key(cursor)
    return parse_literal(cursor, "an expression")


def _node_key(cursor: Cursor) -> terms.NodeKey:
    """`Person($n)`: a node by its type and its key."""
    if cursor.token.text.isupper():
        cursor.teach()  # functions of SQL are spelt like that
    token = cursor.advance()
    cursor.expect("(")
    with cursor.nested():
        members = [parse_expr(cursor)]
        while cursor.accept(","):
            members.append(parse_expr(cursor))
    cursor.expect(")", instead="`,` or `)`")
    name = terms.Name(token.text, span=token.span)
    return terms.NodeKey(name, tuple(members), span=cursor.span_from(token.start))


def _parenthesised(cursor: Cursor) -> terms.Expr:
    cursor.advance()
    with cursor.nested():
        inner = parse_expr(cursor)
    cursor.expect(")", instead="an operator or `)`")
    return inner


def _list(cursor: Cursor) -> terms.ListLiteral:
    start = cursor.advance().start
    items: list[terms.Expr] = []
    with cursor.nested():
        while not cursor.at("]"):
            if items:
                cursor.expect(",", instead="`,` or `]`")
            item = parse_expr(cursor)
            if isinstance(item, terms.ListLiteral):
                cursor.fail(item.span, "list literals do not nest")
            items.append(item)
    cursor.expect("]")
    return terms.ListLiteral(tuple(items), span=cursor.span_from(start))
