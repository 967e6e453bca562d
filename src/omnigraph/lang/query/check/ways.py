"""Checking walks of several hops: their bounds, what holds of each step, ways and their weights.

Owns the rules T15 and T22 about hops and T27 about ways. Which way an edge is walked is for
traversals.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.expressions import resolve
from omnigraph.lang.query.check.scope import Checker, EdgeBinding, NodeBinding, Scope, WayBinding
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.schema.type_sets import TypeSet, members_of
from omnigraph.lang.source import Span
from omnigraph.lang.types import NUMERIC

CheckBlock = Callable[[Scope, tuple[ast.Clause, ...]], resolved.ResolvedBlock]


def names_way(traversal: ast.Traversal) -> bool:
    """Whether the variable of a traversal stands for a way, rather than for one edge."""
    return traversal.hops is not None and traversal.edge_variable is not None


# -- the form of a traversal ---------------------------------------------------------


def check_hops(checker: Checker, traversal: ast.Traversal, apart: str) -> bool:
    """The rules about bounds, `each`, `every` and `by` that look at the clause alone.

    ``apart`` says what the edge connects, if one step along it can never follow another.
    """
    faults = [*_bounds(traversal, apart), *_words(traversal, apart)]
    for span, message, code, hint in faults:
        checker.error(span, message, code, hint=hint)
    return not faults


_Fault = tuple[Span, str, str, str | None]


def _bounds(traversal: ast.Traversal, apart: str) -> Iterator[_Fault]:
    hops = traversal.hops
    if hops is None:
        return
    least, most = hops.minimum, hops.maximum
    if most is not None and most < least:
        yield hops.span, "the largest number of hops is below the smallest", "T15", None
    elif most == 0:
        yield (
            hops.span,
            "no hop at all leads nowhere",
            "T15",
            "leave the clause out, or write `{0,n}`",
        )
    elif apart and (least, most) != (1, 1):
        yield (
            hops.span,
            f"one `{traversal.edge.text}` cannot follow another: {apart}",
            "T22",
            "leave the bounds out",
        )


def _words(traversal: ast.Traversal, apart: str) -> Iterator[_Fault]:
    way, hops, weight = traversal.edge_variable, traversal.hops, traversal.weight
    words = [
        (word, span)
        for word, span in (
            ("each", None if traversal.each is None else traversal.each.span),
            ("every", traversal.span if traversal.every else None),
            ("by", None if weight is None else weight.span),
        )
        if span is not None
    ]
    for word, span in words:
        if hops is None:
            hint = "write how many, such as `{1,3}` or `{1,}`"
            yield span, f"`{word}` is about walks of several hops", "T27", hint
        elif word != "each" and (way is None or way.name == terms.ANONYMOUS):
            hint = f"name it: `$way:{traversal.edge.text}`"
            yield span, f"`{word}` says which way is meant, and no way is named", "T27", hint
    if weight is not None and traversal.every:
        hint = "leave one of them out"
        yield weight.span, "`every` way is a shortest one, `by` asks for the least", "T27", hint
    if weight is not None and hops is not None and hops.minimum > 1:
        hint = "write `{1,…}`"
        yield hops.span, "the way of least weight begins with any number of hops", "T27", hint
    is_one_hop = hops is not None and (hops.minimum, hops.maximum) == (1, 1)
    if names_way(traversal) and apart and way is not None and is_one_hop:
        hint = "leave the bounds out, and it is the edge"
        yield way.span, f"a way goes on where a step ends: {apart}", "T27", hint


# -- what holds of each step -----------------------------------------------------------


def check_steps(
    scope: Scope,
    traversal: ast.Traversal,
    found: resolved.Traversal,
    check_block: CheckBlock,
    not_yet: frozenset[str],
) -> resolved.Traversal:
    """A traversal with what holds of each step, and with what a step weighs.

    ``not_yet`` are the variables of the block that are bound after it, or by it.
    """
    if traversal.each is None and traversal.weight is None:
        return found
    checker = scope.checker
    names = sorted((found.edge_type, *found.others))
    edge, node_type = checker.catalog.edges_called(names), found.right.node_type
    inner = Scope(checker, scope)
    step_edge = step_node = ""
    if traversal.each is not None:
        step_edge = _declare(scope, inner, traversal.each.edge)
        inner.declare(EdgeBinding(step_edge, edge))
        step_node = _declare(scope, inner, traversal.each.node)
        inner.declare(NodeBinding(step_node, checker.catalog.nodes_called(node_type)))
    if traversal.weight is not None and found.way is not None:
        weight = _weight(inner, traversal.weight)
        way = replace(found.way, weight=weight, edge=step_edge, node=step_node)
        found = replace(found, way=way)
    if traversal.each is None or traversal.each.clauses is None:
        return found
    block = check_block(inner, traversal.each.clauses)
    uses = frozenset(inner.used_outer)
    for name in sorted(uses & not_yet):
        message = f"${name} is known only when the steps have been walked"
        checker.error(traversal.each.span, message, "T27")
    return replace(found, each=resolved.Each(step_edge, step_node, node_type, block, uses))


def _declare(scope: Scope, inner: Scope, variable: terms.Variable) -> str:
    """The name by which a step's edge or node is known, which must be new."""
    checker, name = scope.checker, variable.name
    if name == terms.ANONYMOUS:
        return checker.fresh_name()
    if name in inner.own or name in scope.names():
        message = f"${name} is in use already; name what a step is made of otherwise"
        checker.error(variable.span, message, "T27")
    return name


def _weight(inner: Scope, expr: terms.Expr) -> plan.Expression | None:
    """What a step weighs: a number, told by its edge, the node it enters and parameters."""
    checker = inner.checker
    value = resolve(inner, expr)
    if inner.used_outer:
        hint = "a weight is told by the names of `each` and by parameters"
        checker.error(expr.span, "a step weighs the same wherever it is walked", "T27", hint=hint)
        return None
    if value is None:
        return None
    is_number = not isinstance(value, plan.NodeRef) and value.type.scalar in NUMERIC
    if isinstance(value, plan.NodeRef) or not is_number or not value.type.is_plain:
        said = "a node" if isinstance(value, plan.NodeRef) else str(value.type)
        checker.error(expr.span, f"a weight is a number, found {said}", "T27")
        return None
    return value


# -- the steps of a way -----------------------------------------------------------------


def check_way_step(scope: Scope, clause: ast.WayStep) -> resolved.WayStep | None:
    """`$x $w $y`: the way, and its nodes that a step leads from and to."""
    checker, way = scope.checker, scope.find(clause.way.name)
    sound = isinstance(way, WayBinding) and clause.way.name != terms.ANONYMOUS
    if not isinstance(way, WayBinding) or not sound:
        hint = "a way is bound by a traversal with bounds: `$a $way:edge{1,} $b`"
        said = f"${clause.way.name} is no way whose steps could be meant"
        checker.error(clause.way.span, said, "T27", hint=hint)
    node = way.node if isinstance(way, WayBinding) else None
    names: list[str] = []
    for variable in (clause.left, clause.right):
        names.append(variable.name)
        if variable.name == terms.ANONYMOUS:
            names[-1] = checker.fresh_name()
            scope.declare(NodeBinding(names[-1], node))
            continue
        bound = scope.find(variable.name)
        if bound is None and variable.name not in checker.params:
            scope.declare(NodeBinding(variable.name, node))
        elif not isinstance(bound, NodeBinding):
            checker.error(variable.span, f"${variable.name} is no node", "T27")
            sound = False
        elif bound.type is not None and node is not None and not _may_be(bound.type, node):
            said = f"${variable.name} is a {bound.type.name}, ${clause.way.name} leads through"
            checker.error(variable.span, f"{said} nodes of type {node.name}", "T5")
            sound = False
    if not sound or node is None:
        return None
    ends = [resolved.NodeVariable(name, node.name) for name in names]
    return resolved.WayStep(clause.way.name, ends[0], ends[1], clause.undirected)


def _may_be(found: NodeType | TypeSet, wanted: NodeType | TypeSet) -> bool:
    return not set(members_of(found)).isdisjoint(members_of(wanted))
