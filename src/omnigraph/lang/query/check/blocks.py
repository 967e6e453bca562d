"""Checking match blocks: bindings, traversals and the blocks nested in them.

Owns how variables get their types: bindings first, then traversals in whatever
order their ends become known, optional blocks in between as written. Filters
and nested tests are checked last, when every variable of the block is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.lang.conditions import conjuncts
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.query import plan, resolved, terms
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.check.bindings import check_matches
from omnigraph.lang.query.check.expressions import resolve_condition
from omnigraph.lang.query.check.lets import check_values, declare_values
from omnigraph.lang.query.check.scope import Bound, EdgeBinding, NodeBinding, Scope
from omnigraph.lang.query.check.traversals import TraversalChecker
from omnigraph.lang.query.check.ways import check_steps, check_way_step
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.schema.type_sets import TypeSet, members_of
from omnigraph.lang.source import Span
from omnigraph.lang.structural import TYPE

TestClause = ast.Not | ast.Exists | ast.AnyOf


def check_block(scope: Scope, clauses: tuple[ast.Clause, ...]) -> resolved.ResolvedBlock:
    """Resolve one block in its own scope, which is filled with what the block binds."""
    parts: list[_Segment | resolved.OptionalBlock] = []
    predicates: list[plan.Predicate] = []
    pending: list[ast.Clause] = []
    declare_values(scope, clauses)
    for clause in clauses:
        if isinstance(clause, ast.Optional):
            parts.append(_check_segment(scope, pending, predicates))
            parts.append(_check_optional(scope, clause))
            pending = []
        else:
            pending.append(clause)
    parts.append(_check_segment(scope, pending, predicates))
    check_values(scope, clauses)
    tests: list[resolved.Test] = []
    for clause in clauses:
        if isinstance(clause, ast.Where):
            condition = resolve_condition(scope, clause.condition)
            if condition is not None:
                predicates.extend(conjuncts(condition))
        elif isinstance(clause, TestClause):
            test = _check_test(scope, clause)
            if test is not None:
                tests.append(test)
    whole = tuple(
        # What holds of each step of a walk may look at all that the block binds.
        part.completed(scope) if isinstance(part, _Segment) else part
        for part in parts
    )
    return resolved.ResolvedBlock(
        tuple(_as_narrowed(scope, part) for part in whole),
        tuple(predicates),
        tuple(tests),
        tuple(scope.made),
    )


@dataclass(frozen=True, slots=True)
class _Segment:
    """A segment whose traversals are known, but not yet what holds of their steps."""

    nodes: tuple[resolved.NodeVariable, ...]
    traversals: list[tuple[ast.Traversal, resolved.Traversal]]
    way_steps: tuple[resolved.WayStep, ...]
    known: frozenset[str]
    """The variables that the block has bound by its end."""

    def completed(self, scope: Scope) -> resolved.Segment:
        """The segment with what holds of each step."""
        later = scope.own.keys() - self.known
        # Those that walk under conditions may look at each other's ends, but not at each other.
        later |= {
            written.edge_variable.name
            for written, _ in self.traversals
            if written.edge_variable is not None and written.each is not None
        }
        whole = tuple(
            check_steps(scope, written, found, check_block, frozenset(later))
            for written, found in self.traversals
        )
        return resolved.Segment(self.nodes, whole, self.way_steps)


def _as_narrowed(
    scope: Scope, part: resolved.Segment | resolved.OptionalBlock
) -> resolved.Segment | resolved.OptionalBlock:
    """With the types that the variables of the block have in the end."""
    if isinstance(part, resolved.OptionalBlock):
        return part

    def known(node: resolved.NodeVariable) -> resolved.NodeVariable:
        bound = scope.own.get(node.name)
        if not isinstance(bound, NodeBinding) or bound.type is None:
            return node
        return replace(node, node_type=bound.type.name)

    return resolved.Segment(
        tuple(dict.fromkeys(map(known, part.nodes))),
        tuple(
            replace(one, left=known(one.left), right=known(one.right)) for one in part.traversals
        ),
        part.way_steps,
    )


# -- what binds variables ----------------------------------------------------------


def _check_segment(
    scope: Scope, clauses: list[ast.Clause], predicates: list[plan.Predicate]
) -> _Segment:
    bindings = [clause for clause in clauses if isinstance(clause, ast.Binding)]
    nodes = [_declare(scope, binding, predicates) for binding in bindings]
    traversals = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
    checked = TraversalChecker(scope).check_all(traversals)
    written = [clause for clause in clauses if isinstance(clause, ast.WayStep)]
    steps = [found for clause in written if (found := check_way_step(scope, clause)) is not None]
    for binding, node in zip(bindings, nodes, strict=True):
        if node is not None:
            predicates.extend(check_matches(scope, binding, node))
    known = tuple(dict.fromkeys(node for node in nodes if node))
    return _Segment(known, checked, tuple(steps), frozenset(scope.own))


def _declare(
    scope: Scope, binding: ast.Binding, predicates: list[plan.Predicate]
) -> resolved.NodeVariable | None:
    """Bind a variable to nodes, or narrow and add conditions to one that is bound already."""
    checker = scope.checker
    variable = binding.variable
    node_type = checker.catalog.find_nodes(binding.type_name.text)
    if node_type is None:
        _report_unknown_type(scope, binding.type_name)
    if variable.name == terms.ANONYMOUS:
        if node_type is None:
            return None
        name = checker.fresh_name()
        scope.declare(NodeBinding(name, node_type))
        return resolved.NodeVariable(name, node_type.name)
    bound = scope.find(variable.name)
    if bound is None:
        if variable.name in checker.params:
            checker.error(
                variable.span, f"${variable.name} is a parameter; name the node otherwise"
            )
        scope.declare(NodeBinding(variable.name, node_type))
    elif not _may_rebind(scope, bound, binding, node_type, predicates):
        return None
    if node_type is None:
        return None
    return resolved.NodeVariable(variable.name, node_type.name)


def _may_rebind(
    scope: Scope,
    bound: Bound,
    binding: ast.Binding,
    wanted: NodeType | TypeSet | None,
    predicates: list[plan.Predicate],
) -> bool:
    checker = scope.checker
    name = binding.variable.name
    if not isinstance(bound, NodeBinding):
        what, code = ("an edge", "T23") if isinstance(bound, EdgeBinding) else ("a way", "T27")
        checker.error(binding.span, f"${name} is {what} and cannot become a node", code)
        return False
    if bound.type is None or wanted is None:
        return False
    if bound.type == wanted:
        return True
    both = set(members_of(bound.type)).intersection(members_of(wanted))
    narrowed = checker.catalog.nodes_among(both, (bound.type, wanted))
    if narrowed is None:
        checker.error(
            binding.type_name.span,
            f"${name} is a {bound.type.name} already and cannot be a {wanted.name} too",
            "T28" if isinstance(bound.type, TypeSet) or isinstance(wanted, TypeSet) else None,
        )
        return False
    if set(members_of(bound.type)) - both and (name not in scope.own or bound.nullable):
        # What binds the variable finds others too.
        types = plan.Const(tuple(sorted(both)), plan.TEXTS)
        predicates.append(plan.InList(plan.Property(name, TYPE, plan.TEXT), types))
    scope.narrow(bound, narrowed)
    return True


def _report_unknown_type(scope: Scope, name: terms.Name) -> None:
    catalog = scope.checker.catalog
    if name.text in catalog.edges:
        message, hint = f"{name.text} is an edge type; only nodes can be bound", None
    else:
        message = f"unknown node type {name.text}"
        hint = name_hint(name.text, (*catalog.nodes, *catalog.interfaces))
    scope.checker.error(name.span, message, "T1", hint=hint)


def _check_optional(scope: Scope, clause: ast.Optional) -> resolved.OptionalBlock:
    inner = Scope(scope.checker, scope)
    inner.is_optional = True
    block = check_block(inner, clause.clauses)
    if not (inner.own or inner.waiting):
        scope.checker.error(
            clause.span,
            "`optional { … }` binds nothing new, so it neither adds nor drops anything",
            hint="to know whether it holds, write `let $found = exists { … }`",
        )
    for bound in inner.own.values():
        scope.declare(replace(bound, nullable=True))
    for name in inner.waiting:
        scope.waiting[name] = _Nullable(inner, name)
    return resolved.OptionalBlock(
        block, tuple(inner.own), tuple(inner.waiting), frozenset(inner.used_outer)
    )


@dataclass(frozen=True, slots=True)
class _Nullable:
    """A value of an optional block, as the block around it sees it."""

    inner: Scope
    name: str

    @property
    def is_open(self) -> bool:
        """Typed it is already, with its block."""
        return False

    @property
    def uses(self) -> Iterator[str]:
        """What it is made of is known in its block."""
        return iter(())

    def resolve(self) -> plan.Expression | None:
        """What the name stands for."""
        found = self.inner.find_value(self.name)
        return None if found is None else plan.Computed(self.name, found.type.or_null())


# -- what tests rows ---------------------------------------------------------------


def _check_test(scope: Scope, clause: TestClause) -> resolved.Test | None:
    match clause:
        case ast.Not(clauses):
            return _plain_test(scope, "not", clauses, clause.span)
        case ast.Exists(clauses):
            return _plain_test(scope, "exists", clauses, clause.span)
        case ast.AnyOf():
            return _any_test(scope, clause)


def _inner_block(
    scope: Scope, clauses: tuple[ast.Clause, ...], span: Span, what: str
) -> tuple[Scope, resolved.ResolvedBlock]:
    inner = Scope(scope.checker, scope)
    block = check_block(inner, clauses)
    if not inner.used_outer:
        scope.checker.error(
            span,
            f"{what} mentions no variable of the block around it",
            "T9",
            hint="connect it to a variable bound outside",
        )
    return inner, block


def _plain_test(
    scope: Scope, kind: str, clauses: tuple[ast.Clause, ...], span: Span
) -> resolved.NestedTest:
    inner, block = _inner_block(scope, clauses, span, f"`{kind} {{ … }}`")
    return resolved.NestedTest(
        "not" if kind == "not" else "exists", (block,), frozenset(inner.used_outer)
    )


def _any_test(scope: Scope, clause: ast.AnyOf) -> resolved.NestedTest:
    blocks: list[resolved.ResolvedBlock] = []
    uses: set[str] = set()
    for index, group in enumerate(clause.groups):
        span = clause.group_spans[index] if clause.group_spans else clause.span
        inner, block = _inner_block(scope, group, span, "a group of `any`")
        blocks.append(block)
        uses |= inner.used_outer
    return resolved.NestedTest("any", tuple(blocks), frozenset(uses))
