"""The canonical text of expressions.

Owns how they read on one line, and which of them need parentheses. Never changes what one means.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.literals import decimal, quote
from omnigraph.lang.query import terms

# How tightly an expression holds together; what stands inside another has to hold as tightly.
_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _MINUS, _WHOLE = range(8)


def spell(expr: terms.Expr, tightness: int = _OR) -> str:
    """The canonical text of an expression, in parentheses where it holds together too loosely."""
    text = _spell(expr)
    return f"({text})" if _tightness(expr) < tightness else text


def spell_aggregate(aggregate: terms.Aggregate) -> str:
    """`count(distinct x)` and its kin."""
    inside = ""
    if aggregate.fields:
        inside = f"{{ {', '.join(map(spell_projection, aggregate.fields))} }}"
    elif aggregate.argument is not None:
        inside = f"{'distinct ' if aggregate.distinct else ''}{spell(aggregate.argument)}"
    if aggregate.fraction is not None:
        inside += f", {spell(aggregate.fraction)}"
    if aggregate.order:
        inside += f" order {', '.join(map(spell_ordering, aggregate.order))}"
    if aggregate.limit is not None:
        inside += f" limit {spell(aggregate.limit)}"
    return f"{aggregate.name}({inside})"


def spell_block_head(block: terms.BlockValue) -> str:
    """What stands before the brace of a block that has a value."""
    if not isinstance(block.value, terms.Aggregate):
        return block.value
    is_count = block.value == terms.Aggregate("count")
    return "count" if is_count else spell_aggregate(block.value)


def blocks_in(expr: terms.Expr) -> Iterator[terms.BlockValue]:
    """The blocks of an expression in the order they are written; those inside blocks are theirs."""
    for part in terms.parts_of(expr):
        yield from blocks_in(part)
    if isinstance(expr, terms.BlockValue):
        yield expr


def spell_inside(block: terms.BlockValue) -> str:
    """The block itself, on one line."""
    # Clauses are made of expressions, and blocks of clauses.
    from omnigraph.lang.query.format import spell_clauses

    return spell_clauses(block.clauses)


def spell_projection(projection: terms.Projection) -> str:
    """`expr as alias`."""
    text = spell(projection.expr)
    return text if projection.alias is None else f"{text} as {projection.alias.text}"


def spell_ordering(ordering: terms.Ordering) -> str:
    """`expr` or `expr desc`; ascending is what no direction means."""
    text = spell(ordering.expr)
    if ordering.descending:
        text += " desc"
    return text if ordering.nulls is None else f"{text} nulls {ordering.nulls}"


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
        case terms.Aggregate():
            return spell_aggregate(expr)
        case terms.BlockValue():
            return f"{spell_block_head(expr)} {spell_inside(expr)}"
        case terms.Call(name, arguments):
            return _spell_call(name.text, *arguments)
        case terms.NodeKey(type_name, members):
            return _spell_call(type_name.text, *members)
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
