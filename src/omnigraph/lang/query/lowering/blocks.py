"""Lowering blocks: where scans start, which way an edge is walked, and when a condition is asked.

Owns that every predicate stands as early as its variables allow. Never reports errors: what reaches
it has been checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.lang.query import plan, resolved
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.types import NUMERIC, ValueType

_FLIPPED: dict[plan.Direction, plan.Direction] = {"out": "in", "in": "out", "both": "both"}


def _lower_block(
    catalog: Catalog, block: resolved.ResolvedBlock, bound: frozenset[str]
) -> tuple[plan.Step, ...]:
    lowering = BlockLowering(catalog, block, bound)
    steps = lowering.run()
    return (*steps, *lowering.remaining(None))


class BlockLowering:
    """Puts the steps of one block in order."""

    def __init__(
        self, catalog: Catalog, block: resolved.ResolvedBlock, bound: frozenset[str]
    ) -> None:
        self.catalog = catalog
        self.block = block
        self.bound = set(bound)
        self.steps: list[plan.Step] = []
        self.predicates = [_Pending(p, plan.variables_of(p)) for p in block.predicates]
        self.tests = list(block.tests)
        self.values = {value.name: value for value in block.values}
        self.compared = _compared(self.predicates)

    def run(self) -> tuple[plan.Step, ...]:
        """The steps of the whole block."""
        self._flush()
        for part in self.block.parts:
            if isinstance(part, resolved.Segment):
                self._segment(part)
            else:
                self._place(part.uses)
                self._optional(part)
                self._flush()
        # Rows are many as soon as lists are gone through, but no condition may be left behind.
        self._place(name for p in self.predicates for name in p.variables)
        self._place(name for test in self.tests for name in test.uses)
        each = [name for name, one in self.values.items() if isinstance(one, resolved.ForEach)]
        self._place(each)
        self._flush()
        return tuple(self.steps)

    def remaining(self, names: Iterable[str] | None) -> tuple[plan.Step, ...]:
        """The steps of values that no condition asked for: of these names, or of all."""
        before = len(self.steps)
        self._place(tuple(self.values) if names is None else names)
        return tuple(self.steps[before:])

    def _optional(self, part: resolved.OptionalBlock) -> None:
        steps = _lower_block(self.catalog, part.block, frozenset(self.bound))
        types = _computed_types(part.block)
        values = tuple((name, types[name]) for name in part.values if name in types)
        self.steps.append(plan.Optional(steps, part.introduces, values))
        self.bound.update(part.introduces, types)

    # -- values ------------------------------------------------------------------------

    def _place(self, names: Iterable[str]) -> None:
        """Compute values, after those that they look at; only what is bound is looked at."""
        wanted = set[str]()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.values and name not in wanted:
                wanted.add(name)
                waiting.extend(self.values[name].uses)
        # They were named one after the other, each after those that it is made of.
        for name in [name for name in self.values if name in wanted]:
            value = self.values[name]
            if value.uses <= self.bound:
                del self.values[name]
                self.steps.append(self._value(value))
                self.bound.add(name)

    def _value(self, value: resolved.Value) -> plan.Step:
        match value:
            case resolved.Let(name, expression):
                return plan.Let(name, expression)
            case resolved.ForEach(name, items):
                return plan.ForEach(name, items)
            case resolved.Fold(name, made, block, uses):
                bound = frozenset(self.bound) if uses else frozenset()
                steps = _lower_block(self.catalog, block, bound)
                return plan.Fold(name, made, steps, bool(uses))

    # -- predicates ------------------------------------------------------------------

    def _take(self, variable: str) -> tuple[plan.Predicate, ...]:
        """The predicates on one variable alone, which its own step can apply."""
        taken = tuple(p.predicate for p in self.predicates if p.variables == {variable})
        self.predicates = [p for p in self.predicates if p.variables != {variable}]
        return taken

    def _flush(self) -> None:
        """Place every predicate and nested test whose variables are all bound by now."""
        while True:
            ready = [p for p in self.predicates if p.variables <= self.bound]
            if ready:
                self.predicates = [p for p in self.predicates if not p.variables <= self.bound]
                self.steps.append(plan.Filter(tuple(p.predicate for p in ready)))
            placed = [test for test in self.tests if test.uses <= self.bound]
            if placed:
                self.tests = [test for test in self.tests if not test.uses <= self.bound]
                self.steps.extend(self._test(test) for test in placed)
            before = len(self.bound)
            self._place_asked()
            if len(self.bound) == before:
                return

    def _place_asked(self) -> None:
        """Compute the values that conditions ask for, as soon as nothing else keeps these back."""
        asked = [p.variables for p in self.predicates] + [test.uses for test in self.tests]
        for names in asked:
            missing = names - self.bound
            if missing and all(self._is_computable(name) for name in missing):
                self._place(missing)
                return

    def _is_computable(self, name: str) -> bool:
        waiting, seen = [name], {name}
        while waiting:
            value = self.values.get(waiting.pop())
            if value is None:
                return False
            new = value.uses - self.bound - seen
            seen |= new
            waiting.extend(new)
        return True

    def _test(self, test: resolved.Test) -> plan.Step:
        bound = frozenset(self.bound)
        groups = tuple(_lower_block(self.catalog, group, bound) for group in test.groups)
        if test.kind == "not":
            return plan.AntiJoin(groups[0])
        if test.kind == "exists":
            return plan.SemiJoin(groups[0])
        return plan.Union(groups)

    # -- scans and expansions ----------------------------------------------------------

    def _segment(self, segment: resolved.Segment) -> None:
        nodes = list(segment.nodes)
        traversals = list(segment.traversals)
        way_steps = list(segment.way_steps)
        while True:
            for step in [step for step in way_steps if step.way in self.bound]:
                way_steps.remove(step)
                self._walk(step)
            if not traversals and all(node.name in self.bound for node in nodes):
                break
            self._place(name for t in traversals if t.each is not None for name in t.each.uses)
            traversal = self._reachable(traversals)
            pinned = None if traversal is None else self._pinned_end(traversal, nodes)
            if pinned is not None:
                self._scan(pinned)
            elif traversal is not None:
                traversals.remove(traversal)
                self._expand(traversal)
            else:
                self._scan(self._anchor(nodes, traversals))
        self._flush()

    def _walk(self, step: resolved.WayStep) -> None:
        self.steps.append(plan.WalkWay(step.way, step.left.name, step.right.name, step.undirected))
        self.bound.update((step.left.name, step.right.name))
        self._flush()

    def _reachable(self, traversals: list[resolved.Traversal]) -> resolved.Traversal | None:
        """A traversal from a bound variable; joins between two bound ones come first."""
        touching = [
            t
            for t in traversals
            if t.left.name in self.bound or t.right.name in self.bound
            if t.each is None or t.each.uses <= self.bound
        ]
        for traversal in touching:
            if traversal.left.name in self.bound and traversal.right.name in self.bound:
                return traversal
        return touching[0] if touching else None

    def _pinned_end(
        self, traversal: resolved.Traversal, nodes: list[resolved.NodeVariable]
    ) -> resolved.NodeVariable | None:
        """The other end of a walk of several hops, if a key names it: both are walked from then."""
        if traversal.max_hops == 1 and traversal.way is None:
            return None
        for node in nodes:
            is_end = node.name in (traversal.left.name, traversal.right.name)
            if is_end and node.name not in self.bound and self._selectivity(node) == 0:
                return node
        return None

    def _anchor(
        self, nodes: list[resolved.NodeVariable], traversals: list[resolved.Traversal]
    ) -> resolved.NodeVariable:
        """The variable to scan next: the one its predicates narrow down best."""
        free = [node for node in nodes if node.name not in self.bound]
        ends = [end for found in traversals for end in (found.left, found.right)]
        for node in (*sorted(free, key=self._selectivity), *ends):
            if any(self._join(pending, node.name) for pending in self.predicates):
                return node
        if free:
            return min(free, key=self._selectivity)
        first = traversals[0]
        if first.left.name in self.bound or first.right.name in self.bound:
            # What holds of its steps looks at a node that nothing else has found yet.
            return self._missing(first, traversals)
        return first.right if first.direction == "in" else first.left

    def _missing(
        self, waiting: resolved.Traversal, traversals: list[resolved.Traversal]
    ) -> resolved.NodeVariable:
        """A node that a traversal waits for, at an end of itself or of another one."""
        ends = [end for found in traversals for end in (found.left, found.right)]
        uses = waiting.each.uses if waiting.each is not None else frozenset()
        free = [end for end in ends if end.name not in self.bound]
        return next((end for end in free if end.name in uses), free[0])

    def _selectivity(self, node: resolved.NodeVariable) -> int:
        """0 for a full key, 1 for another equality, 2 for any predicate, 3 for none."""
        if node.name not in self.compared:
            return 3
        equal = self.compared[node.name]
        key = self.catalog.nodes_called(node.node_type).key
        if "@id" in equal or (key and equal.issuperset(key)):
            return 0
        return 1 if equal else 2

    def _scan(self, node: resolved.NodeVariable) -> None:
        joins = {id(p): joined for p in self.predicates if (joined := self._join(p, node.name))}
        self.predicates = [p for p in self.predicates if id(p) not in joins]
        where = self._take(node.name)
        self.steps.append(plan.Scan(node.name, node.node_type, where, tuple(joins.values())))
        self.bound.add(node.name)
        self._flush()

    def _join(self, pending: _Pending, variable: str) -> plan.Comparison | None:
        """A predicate as a join of bound rows with a variable, if it is one: an equality."""
        if variable not in pending.variables or not pending.variables <= {*self.bound, variable}:
            return None
        match pending.predicate:
            case plan.Comparison(left, "=", right) if _hashable(left.type, right.type):
                sides = plan.variables_of(left), plan.variables_of(right)
                if sides[1] == {variable} and sides[0] and variable not in sides[0]:
                    return plan.Comparison(left, "=", right)
                if sides[0] == {variable} and sides[1] and variable not in sides[1]:
                    return plan.Comparison(right, "=", left)
        return None

    def _expand(self, traversal: resolved.Traversal) -> None:
        forward = traversal.left.name in self.bound
        source, target = (
            (traversal.left, traversal.right) if forward else (traversal.right, traversal.left)
        )
        closes = target.name in self.bound
        edge = traversal.edge_variable
        each = None if traversal.each is None else self._each(traversal.each)
        self.steps.append(
            plan.Expand(
                source.name,
                traversal.edge_type,
                traversal.direction if forward else _FLIPPED[traversal.direction],
                target.name,
                target.node_type,
                traversal.min_hops,
                traversal.max_hops,
                edge,
                closes,
                () if closes else self._take(target.name),
                self._take(edge) if edge is not None else (),
                traversal.others,
                traversal.way,
                each,
                not forward,
            )
        )
        self.bound.add(target.name)
        if edge is not None:
            self.bound.add(edge)
        if traversal.way is not None:
            self.bound.add(traversal.way.variable)
        self._flush()

    def _each(self, each: resolved.Each) -> plan.Each:
        bound = frozenset({*self.bound, each.edge, each.node})
        steps = _lower_block(self.catalog, each.block, bound)
        return plan.Each(each.edge, each.node, each.node_type, steps, tuple(sorted(each.uses)))


def _computed_types(block: resolved.ResolvedBlock) -> dict[str, ValueType]:
    """The types of the values that a block computes."""
    found: dict[str, ValueType] = {}
    for value in block.values:
        match value:
            case resolved.Let(name, expression):
                found[name] = expression.type
            case resolved.ForEach(name, items):
                found[name] = items.type.element()
            case resolved.Fold(name, plan.Aggregate() as aggregate):
                found[name] = aggregate.type
            case resolved.Fold(name):
                found[name] = plan.CONDITION
    for part in block.parts:
        if isinstance(part, resolved.OptionalBlock):
            found |= _computed_types(part.block)
    return found


@dataclass(frozen=True, slots=True)
class _Pending:
    """A predicate that waits for its variables."""

    predicate: plan.Predicate
    variables: frozenset[str]


def _hashable(left: ValueType, right: ValueType) -> bool:
    """Whether values of two types can be found by their hashes."""
    if not (left.is_plain and right.is_plain):
        return False
    return left.scalar is right.scalar or {left.scalar, right.scalar} <= NUMERIC


def _compared(predicates: Iterable[_Pending]) -> dict[str, set[str]]:
    """The properties that have to equal a value, for each variable with predicates of its own."""
    found: dict[str, set[str]] = {}
    for pending in predicates:
        if len(pending.variables) != 1:
            continue
        (variable,) = pending.variables
        equal = found.setdefault(variable, set())
        match pending.predicate:
            case plan.Comparison(plan.Property(_, name), "=", plan.Const() | plan.ParamRef()):
                equal.add(name)
    return found
