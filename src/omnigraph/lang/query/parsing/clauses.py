"""Parsing the clauses of a match block.

Owns how a clause is recognised by its first tokens and how parsing goes on
after a broken one. Needs the declared parameter names, because a parameter
left of `contains` or `in` makes a filter where a node makes a traversal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn, TypeVar

from omnigraph.lang.cursor import Cursor, NestingFailure, SyntaxFailure
from omnigraph.lang.diagnostics import Phase, did_you_mean
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.expressions import continue_expr, goes_on, parse_expr
from omnigraph.lang.query.parsing.names import parse_property_name, parse_variable
from omnigraph.lang.query.parsing.traversals import (
    is_undirected,
    is_way_step,
    parse_edge_words,
    parse_every,
    parse_hops,
    parse_way_step,
)
from omnigraph.lang.source import Span
from omnigraph.lang.tokens import Kind

BLOCK_WORDS = ("not", "exists", "optional", "any")
_FILTER_WORDS = (*terms.WORD_OPERATORS, "is", "in", "and", "or")
_JOINING = ("and", "or")
_STRAY_WORDS = {
    **{word: f"write `{word} {{ … }}`" for word in BLOCK_WORDS if word != "any"},
    "any": "write `any { … } or { … }`",
}

Block = tuple[ast.Clause, ...]
Item = TypeVar("Item")


def at_query(cursor: Cursor) -> bool:
    """Whether a new query begins here, which no clause can."""
    return cursor.at("query") and cursor.peek().kind is Kind.IDENT and cursor.peek(2).text == "("


def parse_items(
    cursor: Cursor, parse: Callable[[], Item], *, noun: str, required: bool = True
) -> tuple[Item, ...]:
    """`{ item … }`; a broken item is given up and parsing resumes at the next line.

    Raises after the closing brace when an item was broken, so that no caller
    works with half a block.
    """
    cursor.expect("{")
    items: list[Item] = []
    broken = False
    while not cursor.at("}"):
        if broken and cursor.at_end():
            # What closes the block may well be part of what could not be read.
            raise SyntaxFailure
        if cursor.at_end() or at_query(cursor):
            cursor.fail_expected(f"{noun} or `}}`")
        mark = cursor.mark()
        try:
            items.append(parse())
        except NestingFailure:
            raise
        except SyntaxFailure:
            broken = True
            cursor.skip_until(cursor.starts_line, since=mark)
    if required and not items and not broken:
        cursor.fail_expected(noun)
    cursor.expect("}")
    if broken:
        raise SyntaxFailure
    return tuple(items)


def parse_block(cursor: Cursor, params: frozenset[str]) -> Block:
    """`{ clause clause … }`."""
    with cursor.nested():
        return parse_items(cursor, lambda: parse_clause(cursor, params), noun="a clause")


def parse_clause(cursor: Cursor, params: frozenset[str]) -> ast.Clause:
    """One clause of whatever sort."""
    token = cursor.token
    following = cursor.peek()
    if token.kind is Kind.VARIABLE:
        if following.text == ":":
            return _parse_binding(cursor)
        if is_way_step(cursor, params):
            return parse_way_step(cursor)
        if _traversal_follows(cursor, params):
            return _parse_traversal(cursor, params)
    elif token.kind is Kind.IDENT:
        if following.text == "{" and token.text not in (*terms.AGGREGATES, "case"):
            return _parse_block_clause(cursor, params)
        if following.kind is Kind.VARIABLE and token.text == "let":
            return _parse_let(cursor)
        if following.kind is Kind.VARIABLE and token.text == "for":
            return _parse_for(cursor)
        if following.text not in ("(", "{"):
            # No clause begins with a word alone.
            cursor.teach()
    return _parse_condition(cursor, parse_expr(cursor))


# -- nested blocks ---------------------------------------------------------------


def _parse_block_clause(cursor: Cursor, params: frozenset[str]) -> ast.Clause:
    word = cursor.token
    if word.text not in BLOCK_WORDS:
        cursor.fail_expected("a clause", known=(*BLOCK_WORDS, "count"))
    cursor.advance()
    if word.text == "any":
        return _parse_any(cursor, word.start, params)
    clauses = parse_block(cursor, params)
    span = cursor.span_from(word.start)
    if word.text == "optional":
        return ast.Optional(clauses, span=span)
    if goes_on(cursor):
        kind: Literal["not", "exists"] = "not" if word.text == "not" else "exists"
        value = terms.BlockValue(kind, clauses, span=span)
        return _parse_condition(cursor, continue_expr(cursor, value))
    return ast.Not(clauses, span=span) if word.text == "not" else ast.Exists(clauses, span=span)


def _parse_any(cursor: Cursor, start: int, params: frozenset[str]) -> ast.AnyOf:
    groups: list[Block] = []
    spans: list[Span] = []
    while True:
        group_start = cursor.token.start
        groups.append(parse_block(cursor, params))
        spans.append(cursor.span_from(group_start))
        if not cursor.at("or"):
            break
        cursor.advance()
    if len(groups) < 2:
        cursor.fail_expected("`or { … }`: `any` needs at least two groups", known=("or",))
    return ast.AnyOf(tuple(groups), tuple(spans), span=cursor.span_from(start))


# -- values with names -----------------------------------------------------------


def _parse_let(cursor: Cursor) -> ast.Let:
    start = cursor.advance().start
    variable = parse_variable(cursor)
    cursor.expect("=")
    value = parse_expr(cursor)
    return ast.Let(variable, value, span=cursor.span_from(start))


def _parse_for(cursor: Cursor) -> ast.For:
    start = cursor.advance().start
    variable = parse_variable(cursor)
    cursor.expect("in")
    items = parse_expr(cursor)
    return ast.For(variable, items, span=cursor.span_from(start))


# -- bindings and traversals -----------------------------------------------------


def _parse_binding(cursor: Cursor) -> ast.Binding:
    variable = parse_variable(cursor)
    cursor.expect(":")
    token = cursor.expect_kind(Kind.TYPE, "a node type (they start with an upper-case letter)")
    type_name = terms.Name(token.text, span=token.span)
    matches: list[ast.PropertyMatch] = []
    if cursor.accept("{"):
        while True:
            matches.append(_parse_match(cursor))
            if not cursor.accept(","):
                break
            if cursor.at("}"):
                break
        cursor.expect("}", instead="`,` or `}`")
    return ast.Binding(
        variable, type_name, tuple(matches), span=cursor.span_from(variable.span.start)
    )


def _parse_match(cursor: Cursor) -> ast.PropertyMatch:
    name = parse_property_name(cursor)
    cursor.expect(":")
    return ast.PropertyMatch(name, parse_expr(cursor))


def _traversal_follows(cursor: Cursor, params: frozenset[str]) -> bool:
    """Whether the variable under the cursor starts a traversal rather than a filter."""
    word, after = cursor.peek(1), cursor.peek(2)
    is_param = cursor.token.text[1:] in params
    if word.kind is Kind.VARIABLE:
        return not is_param or (after.text == ":" and cursor.peek(3).kind is not Kind.TYPE)
    if word.kind is Kind.TYPE:
        return True
    if word.text == "<":
        return is_undirected(cursor)
    if word.kind is not Kind.IDENT:
        return False
    if word.text == "is":
        return not (after.text == "null" or (after.text == "not" and cursor.peek(3).text == "null"))
    if word.text == "in":
        return after.text != "[" and not is_param
    if word.text in terms.WORD_OPERATORS:
        return not is_param and (after.kind is Kind.VARIABLE or after.text == "{")
    if word.text in _JOINING and (is_param or after.kind is not Kind.VARIABLE):
        return after.text == "{" and cursor.peek(3).kind is Kind.INTEGER
    # What comes after a condition that is one variable begins a clause of its own.
    if word.text in ("let", "for") and after.kind is Kind.VARIABLE:
        return cursor.peek(3).text not in ("=", "in")
    begins_clause = after.text == "(" or (
        after.text == "{" and cursor.peek(3).kind is not Kind.INTEGER
    )
    return not (begins_clause and (is_param or word.text in (*BLOCK_WORDS, *terms.AGGREGATES)))


def _parse_traversal(cursor: Cursor, params: frozenset[str]) -> ast.Traversal:
    left = parse_variable(cursor)
    every = parse_every(cursor)
    edge_variable = None
    undirected = False
    if cursor.token.kind is Kind.VARIABLE:
        edge_variable = parse_variable(cursor)
        cursor.expect(":", instead="`:` and an edge after the edge variable")
    if cursor.accept("<"):
        undirected = True
    # `$e:(knows | follows)` is read too: files of the reference have it.
    in_parentheses = edge_variable is not None and not undirected and cursor.accept("(")
    edge, others = parse_edge_words(cursor)
    if in_parentheses:
        cursor.expect(")", instead="`|` or `)`")
    if undirected:
        cursor.expect(">")
    hops = parse_hops(cursor) if cursor.at("{") else None
    right = parse_variable(cursor, "a destination variable")
    each = _parse_each(cursor, params) if _each_follows(cursor) else None
    weight = None
    if cursor.at("by"):
        cursor.advance()
        weight = parse_expr(cursor)
    span = cursor.span_from(left.span.start)
    return ast.Traversal(
        left,
        edge,
        right,
        edge_variable,
        undirected,
        hops,
        others,
        every=every,
        each=each,
        weight=weight,
        span=span,
    )


def _each_follows(cursor: Cursor) -> bool:
    return cursor.at("each") and cursor.peek().kind is Kind.VARIABLE


def _parse_each(cursor: Cursor, params: frozenset[str]) -> ast.Each:
    """`each $edge, $node { … }`; a block is not needed where only a weight follows."""
    start = cursor.advance().start
    edge = parse_variable(cursor, "a variable for the edge of a step")
    cursor.expect(",", instead="`,` and a variable for the node that a step enters")
    node = parse_variable(cursor, "a variable for the node that a step enters")
    clauses = None if cursor.at("by") else parse_block(cursor, params)
    return ast.Each(edge, node, clauses, span=cursor.span_from(start))


# -- conditions ------------------------------------------------------------------


def _parse_condition(cursor: Cursor, condition: terms.Expr) -> ast.Where:
    """What was read as a clause of its own, unless it can be none."""
    if isinstance(condition, terms.Alias):
        if condition.name in _JOINING:
            _fail_joining(cursor, condition)
        known = (*BLOCK_WORDS, *_FILTER_WORDS)
        hint = _STRAY_WORDS.get(condition.name) or did_you_mean(condition.name, known)
        cursor.fail(condition.span, f"`{condition.name}` does not begin a clause", hint=hint)
    _refuse_negated_traversal(cursor, condition)
    if isinstance(condition, _NO_CONDITIONS):
        cursor.fail_expected("an operator", known=_FILTER_WORDS)
    return ast.Where(condition, span=condition.span)


def _fail_joining(cursor: Cursor, word: terms.Alias) -> NoReturn:
    """A traversal or a binding is no condition that another could be joined to."""
    cursor.reporter.report(
        word.span,
        f"`{word.name}` joins conditions, not traversals or bindings",
        phase=Phase.TYPE,
        code="T26",
        hint="leave it out: all clauses of a block hold together"
        if word.name == "and"
        else "write `any { … } or { … }`",
    )
    raise SyntaxFailure


def _refuse_negated_traversal(cursor: Cursor, condition: terms.Expr) -> None:
    """`not $a knows $b` is a traversal, which goes into a block."""
    if not (
        isinstance(condition, terms.Negation) and isinstance(condition.operand, terms.Variable)
    ):
        return
    if cursor.token.kind is Kind.IDENT and cursor.peek().kind is Kind.VARIABLE:
        cursor.reporter.report(
            condition.span,
            "`not` denies a condition, not a traversal",
            phase=Phase.TYPE,
            code="T26",
            hint="write `not { … }`",
        )
        raise SyntaxFailure


_NO_CONDITIONS = (
    terms.Literal,
    terms.ListLiteral,
    terms.Now,
    terms.Aggregate,
    terms.Nearest,
    terms.Bm25,
    terms.Rrf,
    terms.Negative,
    terms.Arithmetic,
)
