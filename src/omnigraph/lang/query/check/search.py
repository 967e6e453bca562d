"""Typing search and ranking calls.

Owns the rules of `search`, `match_text`, `fuzzy`, `nearest`, `bm25` and `rrf`:
node properties of the right type, queries of the right type. Knows nothing of
how they are executed.
"""

from __future__ import annotations

from omnigraph.lang.query import plan, terms
from omnigraph.lang.query.check.operands import report_unbound, resolve_access, resolve_operand
from omnigraph.lang.query.check.scope import Bound, EdgeBinding, NodeBinding, Scope, WayBinding
from omnigraph.lang.query.check.values import constant, describe, narrow_misfit
from omnigraph.lang.schema.type_sets import TypeSet
from omnigraph.lang.source import Span
from omnigraph.lang.types import INTEGERS, NUMERIC, Scalar, ValueType

DEFAULT_RRF_K = 60
DEFAULT_EDITS = 2
_INTEGER = ValueType(Scalar.I64)


def resolve_text_call(scope: Scope, call: terms.TextCall) -> plan.TextMatch | None:
    """`search`, `match_text` or `fuzzy` as a predicate."""
    code = "T20" if call.name == "match_text" else "T19"
    subject = _text_subject(scope, call.name, call.subject, code)
    query = _text_query(scope, call.name, call.query, code)
    edits = _edits(scope, call) if call.name == "fuzzy" else None
    if subject is None or query is None or (call.name == "fuzzy" and edits is None):
        return None
    field, node_type = subject
    return plan.TextMatch(call.name, field, node_type, query, edits)


def resolve_ranking(scope: Scope, call: terms.Ranking) -> plan.Ranking | None:
    """`nearest`, `bm25` or `rrf`."""
    match call:
        case terms.Nearest():
            return _nearest(scope, call)
        case terms.Bm25():
            return _bm25(scope, call)
        case terms.Rrf():
            return _fusion(scope, call)


def _edits(scope: Scope, call: terms.TextCall) -> plan.ParamRef | plan.Const | None:
    if call.edits is None:
        return plan.Const(DEFAULT_EDITS, _INTEGER)
    return _integer(scope, call.edits, "the number of edits is an integer, at least 0", "T19", 0)


def _text_subject(
    scope: Scope, call: str, expr: terms.Expr, code: str
) -> tuple[plan.Property, str] | None:
    """The searched property and its node type."""
    checker = scope.checker
    if not isinstance(expr, terms.Access):
        checker.error(expr.span, f"`{call}` searches a property: write `$v.property`", code)
        return None
    bound = scope.find(expr.variable.name)
    if isinstance(bound, EdgeBinding):
        checker.error(expr.span, f"`{call}` searches nodes, ${bound.name} is an edge", "T23")
        return None
    if isinstance(bound, WayBinding):
        checker.error(expr.span, f"`{call}` searches nodes, ${bound.name} is a way", "T27")
        return None
    field = resolve_access(scope, expr)
    if field is None or not isinstance(bound, NodeBinding) or bound.type is None:
        return None
    if field.name.startswith("@"):
        checker.error(expr.span, f"`{call}` searches a String property, not an id", code)
        return None
    if not field.type.is_text:
        checker.error(
            expr.span, f"`{call}` searches a String property, found {describe(field)}", code
        )
        return None
    return field, bound.type.name


def _text_query(
    scope: Scope, call: str, expr: terms.Expr, code: str
) -> plan.ParamRef | plan.Const | None:
    query = resolve_operand(scope, expr)
    if query is None:
        return None
    if not isinstance(query, plan.ParamRef | plan.Const) or not query.type.is_text:
        scope.checker.error(
            expr.span, f"the query of `{call}` is a String literal or parameter", code
        )
        return None
    return query


def _integer(
    scope: Scope, expr: terms.Expr, message: str, code: str, minimum: int
) -> plan.ParamRef | plan.Const | None:
    value = resolve_operand(scope, expr)
    if value is None:
        return None
    if (
        isinstance(value, plan.ParamRef | plan.Const)
        and value.type.scalar in INTEGERS
        and not value.type.is_list
    ):
        literal = value.value if isinstance(value, plan.Const) else None
        if not isinstance(literal, int) or literal >= minimum:
            return value
    scope.checker.error(expr.span, message, code)
    return None


def _bm25(scope: Scope, call: terms.Bm25) -> plan.Bm25 | None:
    subject = _text_subject(scope, "bm25", call.subject, "T20")
    query = _text_query(scope, "bm25", call.query, "T20")
    if subject is None or query is None:
        return None
    field, node_type = subject
    if not _is_one_type(scope, call.span, "bm25", scope.find(field.variable)):
        return None
    return plan.Bm25(field.variable, node_type, field.name, query)


def _nearest(scope: Scope, call: terms.Nearest) -> plan.Nearest | None:
    checker = scope.checker
    access = call.subject
    bound = scope.find(access.variable.name)
    if isinstance(bound, EdgeBinding):
        checker.error(access.span, f"`nearest` ranks nodes, ${bound.name} is an edge", "T23")
        return None
    if isinstance(bound, WayBinding):
        checker.error(access.span, f"`nearest` ranks nodes, ${bound.name} is a way", "T27")
        return None
    if bound is None:
        report_unbound(scope, access.variable, "T15")
        return None
    if bound.type is None or not _is_one_type(scope, access.span, "nearest", bound):
        return None
    definition = bound.type.properties.get(access.property.text)
    if definition is None or not definition.type.is_vector or definition.type.is_list:
        vectors = [name for name, other in bound.type.properties.items() if other.type.is_vector]
        known = f"it has {', '.join(vectors)}" if vectors else "it has none"
        checker.error(
            access.property.span,
            f"`{access.property.text}` is no vector property of {bound.type.name}",
            "T15",
            hint=known,
        )
        return None
    dimension = definition.type.dimension or 0
    query = _vector_query(scope, call.query, dimension)
    if query is None:
        return None
    model = definition.embedding.model if definition.embedding is not None else None
    return plan.Nearest(bound.name, bound.type.name, definition.name, dimension, query, model)


def _is_one_type(scope: Scope, span: Span, call: str, bound: Bound | None) -> bool:
    """Whether a variable stands for nodes of one type, whose scores can be compared."""
    if not isinstance(bound, NodeBinding) or not isinstance(bound.type, TypeSet):
        return True
    members = bound.type.members
    example = members[0] if members else "Type"
    scope.checker.error(
        span,
        f"`{call}` ranks the nodes of one type, ${bound.name} may be a {' or a '.join(members)}",
        "T28",
        hint=f"say which: `${bound.name}: {example}`",
    )
    return False


def _vector_query(
    scope: Scope, expr: terms.Expr, dimension: int
) -> plan.ParamRef | plan.Const | None:
    if isinstance(expr, terms.ListLiteral):
        return _vector_literal(scope, expr, dimension)
    query = resolve_operand(scope, expr)
    if query is None:
        return None
    if isinstance(query, plan.ParamRef | plan.Const):
        if query.type.is_text:
            return query
        if query.type.is_vector and query.type.dimension == dimension:
            return query
    scope.checker.error(
        expr.span,
        f"`nearest` takes a vector of {dimension} numbers or a text, found {describe(query)}",
        "T15",
    )
    return None


def _vector_literal(scope: Scope, literal: terms.ListLiteral, dimension: int) -> plan.Const | None:
    const = constant(scope.checker, literal)
    if const is None:
        return None
    values = const.value if isinstance(const.value, tuple) else ()
    if len(values) != dimension or const.type.scalar not in NUMERIC:
        scope.checker.error(
            literal.span,
            f"`nearest` takes a vector of {dimension} numbers, found {len(values)} "
            f"value{'' if len(values) == 1 else 's'} of {const.type.element()}",
            "T15",
        )
        return None
    complaint = narrow_misfit(values)
    if complaint is not None:
        scope.checker.error(literal.span, complaint, "T15")
        return None
    floats = tuple(float(value) for value in values if isinstance(value, int | float))
    return plan.Const(floats, ValueType(Scalar.VECTOR, dimension=dimension))


def _fusion(scope: Scope, call: terms.Rrf) -> plan.Fusion | None:
    arms = [_arm(scope, arm) for arm in (call.primary, call.secondary)]
    k = _fusion_k(scope, call.k)
    primary, secondary = arms
    if primary is None or secondary is None or k is None:
        return None
    return plan.Fusion(primary, secondary, k)


def _arm(scope: Scope, expr: terms.Expr) -> plan.Nearest | plan.Bm25 | None:
    if isinstance(expr, terms.Nearest):
        return _nearest(scope, expr)
    if isinstance(expr, terms.Bm25):
        return _bm25(scope, expr)
    scope.checker.error(expr.span, "`rrf` fuses `nearest` and `bm25` calls", "T21")
    return None


def _fusion_k(scope: Scope, expr: terms.Expr | None) -> plan.ParamRef | plan.Const | None:
    if expr is None:
        return plan.Const(DEFAULT_RRF_K, _INTEGER)
    return _integer(scope, expr, "the k of `rrf` is a positive integer", "T21", 1)
