"""Parsing the statements of a mutation: what is inserted, updated, deleted, and for whom.

Owns their forms, and how parsing goes on after a broken one. What their names mean is the
checker's to say.
"""

from __future__ import annotations

from omnigraph.lang.cursor import Cursor, SyntaxFailure
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.clauses import at_query, parse_items
from omnigraph.lang.query.parsing.expressions import goes_on, parse_expr
from omnigraph.lang.query.parsing.names import parse_variable
from omnigraph.lang.tokens import Kind

STATEMENTS = (*terms.INSERTS, "update", "delete")
STATEMENTS_TOLD = ", ".join(f"`{word}`" for word in (*STATEMENTS, "for"))
_OPERATORS = (*terms.WORD_OPERATORS, "is", "in")


def at_statement(cursor: Cursor) -> bool:
    """Whether a statement begins here."""
    return cursor.token.text in STATEMENTS or _at_for(cursor)


def parse_statements(cursor: Cursor) -> tuple[ast.Statement, ...]:
    """Statements up to the end of their block; a broken one is left out before giving up."""
    statements: list[ast.Statement] = []
    broken = False
    while not (_at_end(cursor) or cursor.at("return")):
        mark = cursor.mark()
        try:
            statements.append(_parse_statement(cursor))
        except SyntaxFailure:
            broken = True
            cursor.skip_until(lambda: at_statement(cursor), since=mark)
    if broken:
        cursor.accept("}")
        raise SyntaxFailure
    return tuple(statements)


def _at_end(cursor: Cursor) -> bool:
    return cursor.at("}") or cursor.at_end() or at_query(cursor)


def _at_for(cursor: Cursor) -> bool:
    return cursor.at("for") and cursor.peek().kind is Kind.VARIABLE


def _parse_statement(cursor: Cursor) -> ast.Statement:
    word = cursor.token
    if _at_for(cursor):
        return _parse_for(cursor)
    if word.text not in STATEMENTS:
        cursor.fail_expected(f"{STATEMENTS_TOLD} or `}}`", known=STATEMENTS)
    cursor.advance()
    if word.text in terms.INSERTS:
        return _parse_insert(cursor, word.text, word.start)
    if cursor.token.kind is Kind.VARIABLE:
        return _parse_matched(cursor, word.text, word.start)
    type_name = _parse_type(cursor)
    if word.text == "delete":
        return ast.Delete(type_name, _parse_where(cursor), span=cursor.span_from(word.start))
    cursor.keyword("set")
    assignments = _parse_assignments(cursor)
    where = _parse_where(cursor)
    return ast.Update(type_name, assignments, where, span=cursor.span_from(word.start))


def _parse_insert(cursor: Cursor, verb: terms.InsertVerb, start: int) -> ast.Insert:
    variable = None
    if cursor.token.kind is Kind.VARIABLE:
        variable = parse_variable(cursor)
        cursor.expect(":", instead="`:` and a type after the variable")
    type_name = _parse_type(cursor)
    assignments = _parse_assignments(cursor)
    return ast.Insert(verb, type_name, assignments, variable, span=cursor.span_from(start))


def _parse_matched(cursor: Cursor, word: str, start: int) -> ast.UpdateMatched | ast.DeleteMatched:
    """`update $p set { … }` or `delete $p`."""
    variable = parse_variable(cursor)
    if word == "delete":
        return ast.DeleteMatched(variable, span=cursor.span_from(start))
    cursor.keyword("set")
    assignments = _parse_assignments(cursor)
    return ast.UpdateMatched(variable, assignments, span=cursor.span_from(start))


def _parse_type(cursor: Cursor) -> terms.Name:
    token = cursor.expect_kind(Kind.TYPE)
    return terms.Name(token.text, span=token.span)


def _parse_for(cursor: Cursor) -> ast.ForEach:
    start = cursor.advance().start
    variable = parse_variable(cursor, "a name for the element")
    cursor.keyword("in")
    over = parse_variable(cursor, "a list parameter")
    cursor.expect("{")
    with cursor.nested():
        statements = parse_statements(cursor)
    if not statements:
        cursor.fail_expected(STATEMENTS_TOLD)
    cursor.expect("}")
    return ast.ForEach(variable, over, statements, span=cursor.span_from(start))


def _parse_assignments(cursor: Cursor) -> tuple[ast.Assignment, ...]:
    # An empty block parses: "no assignments" is a rule with a code of its own.
    return parse_items(
        cursor, lambda: _parse_assignment(cursor), noun="an assignment", required=False
    )


def _parse_assignment(cursor: Cursor) -> ast.Assignment:
    token = cursor.expect_kind(Kind.IDENT, "a property name")
    cursor.expect(":")
    value = _parse_assigned(cursor)
    cursor.accept(",")
    return ast.Assignment(terms.Name(token.text, span=token.span), value)


def _parse_assigned(cursor: Cursor) -> terms.Expr:
    """A value; `null` is one here, and nowhere else."""
    token = cursor.token
    value = parse_expr(cursor)
    if value == terms.Alias("null"):
        return terms.Literal("null", None, span=token.span)
    return value


def _parse_where(cursor: Cursor) -> terms.Expr:
    cursor.keyword("where")
    condition = _parse_any(cursor) or parse_expr(cursor)
    if not (_at_end(cursor) or at_statement(cursor) or cursor.at("return")):
        cursor.fail_expected("an operator", known=_OPERATORS)
    return condition


def _parse_any(cursor: Cursor) -> terms.Expr | None:
    """`any { a  b } or { c }`, which is `a and b or c`."""
    if not (cursor.at("any") and cursor.peek().text == "{"):
        return None
    start = cursor.advance().start
    groups: list[terms.Expr] = []
    while not groups or cursor.accept("or"):
        opened = cursor.token.start
        conditions = parse_items(cursor, lambda: parse_expr(cursor), noun="a condition")
        span = cursor.span_from(opened)
        alone = len(conditions) == 1
        groups.append(conditions[0] if alone else terms.Logical("and", conditions, span=span))
    if goes_on(cursor):
        cursor.fail(
            cursor.token.span,
            "nothing is joined to `any`",
            hint="write `(a or b) and c` instead of blocks",
        )
    if len(groups) == 1:
        return groups[0]
    return terms.Logical("or", tuple(groups), span=cursor.span_from(start))
