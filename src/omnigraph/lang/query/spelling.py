"""The canonical text of expressions.

Owns how they read on one line, and which of them need parentheses. Never changes what one means.
"""

from __future__ import annotations

from omnigraph.lang.literals import decimal, quote
from omnigraph.lang.query import terms

# How tightly an expression holds together; what stands inside another has to hold as tightly.
_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _MINUS, _WHOLE = range(8)


def spell(expr: terms.Expr, tightness: int = _OR) -> str:
    """The canonical text of an expression, in parentheses where it holds together too loosely."""
    text = _spell(expr)
    return f"({text})" if _tightness(expr) < tightness else text


def spell_null_test(*, negated: bool) -> str:
    """`is null` or `is not null`."""
    return "is not null" if negated else "is null"


def _tightness(expr: terms.Expr) -> int:
    match expr:
        case terms.Logical(op, _):
            return _OR if op == "or" else _AND
        case terms.Negation():
            return _NOT
        case terms.Comparison() | terms.NullTest() | terms.Membership():
            return _COMPARED
        case terms.Arithmetic(_, rest):
            return _SUM if rest[0][0] in terms.SUMS else _PRODUCT
        case terms.Negative():
            return _MINUS
        case _:
            return _WHOLE


def _spell(expr: terms.Expr) -> str:
    match expr:
        case terms.Literal():
            return _spell_literal(expr)
        case terms.ListLiteral(items):
            return f"[{', '.join(map(spell, items))}]"
        case terms.Variable(name):
            return f"${name}"
        case terms.Now():
            return "now()"
        case terms.Access(variable, property_):
            return f"${variable.name}.{property_.text}"
        case terms.Alias(name):
            return name
        case terms.Nearest(subject, query):
            return _spell_call("nearest", subject, query)
        case terms.TextCall(name, subject, query, edits):
            return _spell_call(name, subject, query, edits)
        case terms.Bm25(subject, query):
            return _spell_call("bm25", subject, query)
        case terms.Rrf(primary, secondary, k):
            return _spell_call("rrf", primary, secondary, k)
        case terms.Aggregate(name, argument):
            return _spell_call(name, argument)
        case terms.Call(name, arguments):
            return _spell_call(name.text, *arguments)
        case terms.Case(branches, otherwise):
            return _spell_case(branches, otherwise)
        case _:
            return _spell_operator(expr)


def _spell_operator(expr: terms.Negative | terms.Arithmetic | terms.Condition) -> str:
    match expr:
        case terms.Negative(operand):
            return f"-{spell(operand, _MINUS)}"
        case terms.Arithmetic(first, rest):
            inside = _tightness(expr) + 1
            more = (f" {op} {spell(operand, inside)}" for op, operand in rest)
            return spell(first, inside) + "".join(more)
        case terms.Comparison(left, op, right):
            return f"{spell(left, _SUM)} {op} {spell(right, _SUM)}"
        case terms.NullTest(operand, negated):
            return f"{spell(operand, _SUM)} {spell_null_test(negated=negated)}"
        case terms.Membership(operand, choices):
            return f"{spell(operand, _SUM)} in {spell(choices, _SUM)}"
        case terms.Negation(operand):
            return f"not {spell(operand, _NOT)}"
        case terms.Logical(op, operands):
            inside = _tightness(expr) + 1
            return f" {op} ".join(spell(operand, inside) for operand in operands)


def _spell_case(branches: tuple[terms.Branch, ...], otherwise: terms.Expr | None) -> str:
    written = [f"when {spell(one.condition)}: {spell(one.value)}" for one in branches]
    if otherwise is not None:
        written.append(f"else: {spell(otherwise)}")
    return f"case {{ {' '.join(written)} }}"


def _spell_call(name: str, *arguments: terms.Expr | None) -> str:
    written = (spell(argument) for argument in arguments if argument is not None)
    return f"{name}({', '.join(written)})"


def _spell_literal(literal: terms.Literal) -> str:
    match literal.value:
        case None:
            return "null"
        case bool(value):
            return "true" if value else "false"
        case int(value):
            return str(value)
        case float(value):
            return decimal(value)
        case str(value):
            text = quote(value)
            return text if literal.kind == "string" else f"{literal.kind}({text})"
