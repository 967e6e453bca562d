"""How `.gq` expressions and one-line clauses are written.

Owns the canonical spelling that the formatter, plans and messages share.
Never breaks a line, never looks at a source text.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.literals import decimal, quote
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms

Simple = (
    ast.Binding | ast.Traversal | ast.Filter | ast.NullTest | ast.Membership | ast.TextPredicate
)
"""A clause without clauses inside."""


def spell(expr: terms.Expr) -> str:
    """The canonical text of an expression."""
    match expr:
        case terms.Literal():
            return _spell_literal(expr)
        case terms.ListLiteral(items):
            return f"[{', '.join(map(_spell_literal, items))}]"
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


def spell_clause(clause: Simple) -> str:
    """A clause without nested clauses, on one line."""
    match clause:
        case ast.Binding(variable, type_name, matches):
            head = f"{spell(variable)}: {type_name.text}"
            return f"{head} {spell_braced(map(spell_entry, matches))}" if matches else head
        case ast.Traversal():
            return _spell_traversal(clause)
        case ast.Filter(left, op, right):
            return f"{spell(left)} {op} {spell(right)}"
        case ast.NullTest(operand, negated):
            return f"{spell(operand)} {_spell_null_test(negated=negated)}"
        case ast.Membership(operand, choices):
            return f"{spell(operand)} in {spell(choices)}"
        case ast.TextPredicate(call):
            return spell(call)


def spell_entry(entry: ast.PropertyMatch | ast.Assignment) -> str:
    """`property: value`."""
    return f"{entry.property.text}: {spell(entry.value)}"


def spell_projection(projection: ast.Projection) -> str:
    """`expr as alias`."""
    text = spell(projection.expr)
    return text if projection.alias is None else f"{text} as {projection.alias.text}"


def spell_ordering(ordering: ast.Ordering) -> str:
    """`expr` or `expr desc`; ascending is what no direction means."""
    text = spell(ordering.expr)
    return f"{text} desc" if ordering.descending else text


def spell_where(atoms: Iterable[ast.Atom]) -> str:
    """`where a = 1 and b is null`."""
    return f"where {' and '.join(map(_spell_atom, atoms))}"


def spell_param(param: ast.Param) -> str:
    """`$name: Type`."""
    type_ = param.type.text if isinstance(param.type, terms.Name) else str(param.type)
    return f"${param.name}: {type_}"


def spell_braced(items: Iterable[str]) -> str:
    """`{ a, b }`, or `{}` for nothing."""
    inside = ", ".join(items)
    return f"{{ {inside} }}" if inside else "{}"


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


def _spell_traversal(clause: ast.Traversal) -> str:
    edge = f"<{clause.edge.text}>" if clause.undirected else clause.edge.text
    if clause.edge_variable is not None:
        edge = f"{spell(clause.edge_variable)}:{edge}"
    return f"{spell(clause.left)} {edge}{_spell_hops(clause.hops)} {spell(clause.right)}"


def _spell_hops(hops: ast.HopRange | None) -> str:
    if hops is None:
        return ""
    return f"{{{hops.minimum},{'' if hops.maximum is None else hops.maximum}}}"


def _spell_null_test(*, negated: bool) -> str:
    return "is not null" if negated else "is null"


def _spell_atom(atom: ast.Atom) -> str:
    name = atom.property.text
    match atom:
        case ast.Compare(op=op, value=value):
            return f"{name} {op} {spell(value)}"
        case ast.IsNull(negated=negated):
            return f"{name} {_spell_null_test(negated=negated)}"
        case ast.IsIn(choices=choices):
            return f"{name} in {spell(choices)}"
