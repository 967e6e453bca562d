"""Generated queries: everything the language can express without search.

Every query is one that type-checks, and one whose meaning the definition settles: names
are never ambiguous, and sums never depend on the order of their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tests.read.generate_constants import NUMBERS, Constants
from tests.read.generate_results import Results
from tests.read.model import EdgeType, PropType, Schema
from tests.read.query_ast import (
    ANONYMOUS,
    AnyOf,
    Bind,
    Block,
    Clause,
    Compare,
    Counted,
    Expr,
    In,
    IsNull,
    Lit,
    Param,
    Prop,
    Query,
    Var,
    Walk,
    mentioned,
)
from tests.read.query_values import Arith, Choice, Deny, Let, Logic, Where, Worth
from tests.read.scopes import TEXT, Known, Scope, properties

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
# Chosen so that the order of names and the order of their id columns differ.
NAMES = (("b", "a", "a1", "aB", "a_", "z", "c"), ("i", "i1", "iB", "k"), ("j", "j1", "j_", "l"))


@dataclass
class Generator:
    """One query in the making."""

    rng: Random
    schema: Schema
    scope: Scope = field(default_factory=dict)
    constants: Constants = field(init=False)

    def __post_init__(self) -> None:
        self.constants = Constants(self.rng)

    def query(self) -> Query:
        """A whole query."""
        rng = self.rng
        scope = self.scope
        clauses = self.pattern(scope, 0, rng.choice((1, 1, 2, 2, 3)))
        clauses = self.with_tests(clauses, scope, 0, rng.choice((0, 0, 1, 1, 2)))
        for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
            clauses.append(self.optional(scope, 0))
            later: list[Clause] = []
            if rng.random() < 0.3:
                later = self.steps(scope, 0, 1)
            clauses += self.with_tests(later, scope, 0, rng.choice((0, 0, 1)))
        query = Query(tuple(clauses), (), self.constants.params)
        lets: list[Clause] = [
            Let(f"x{number}", self.computed(scope)) for number in range(rng.choice((0, 0, 1, 2)))
        ]
        for let in lets:
            # Where a value is named makes no difference.
            clauses.insert(rng.randint(0, len(clauses)), let)
        query = Query(tuple(clauses), (), self.constants.params)
        named = [Var(let.name) for let in lets if isinstance(let, Let)]

        def computed() -> Expr:
            return rng.choice(named) if named and rng.random() < 0.5 else self.computed(scope)

        results = Results(rng, self.schema, scope, self.constants, computed)
        query = results.grouped(query) if rng.random() < 0.3 else results.projected(query)
        if rng.random() < 0.3:
            query = replace(query, limit=self.constants.row_count())
            if rng.random() < 0.3:
                query = replace(query, offset=self.constants.row_count())
        return replace(query, params=self.constants.params)

    # -- patterns --------------------------------------------------------------------------

    def fresh(self, scope: Scope, depth: int) -> str:
        """A name that is not in use; names of different depths never meet."""
        free = [name for name in NAMES[depth] if name not in scope]
        return self.rng.choice(free) if free else f"{NAMES[depth][0]}{len(scope)}"

    def pattern(self, scope: Scope, depth: int, steps: int) -> list[Clause]:
        """A first variable, and steps from it."""
        if self.rng.random() < 0.15:
            return [self.unanchored(scope, depth), *self.steps(scope, depth, steps - 1)]
        first = self.binding(scope, depth)
        clauses: list[Clause] = [*self.steps(scope, depth, steps - 1)]
        # What a variable is may be said after it is used.
        clauses.insert(self.rng.choice((0, 0, 0, len(clauses))), first)
        if self.rng.random() < 0.2:
            nodes = [name for name, known in scope.items() if known.is_node]
            var = self.rng.choice(nodes)
            clauses.append(self.conditions(Bind(var, scope[var].type)))
        return clauses

    def steps(self, scope: Scope, depth: int, count: int) -> list[Clause]:
        clauses: list[Clause] = []
        for _ in range(count):
            if self.rng.random() < 0.12:
                clauses.append(self.binding(scope, depth))
                continue
            walk = self.walk(scope, depth)
            if walk is not None:
                clauses.append(walk)
        return clauses

    def binding(self, scope: Scope, depth: int) -> Bind:
        var = self.fresh(scope, depth)
        type_ = self.rng.choice(list(self.schema.nodes))
        scope[var] = Known(is_node=True, type=type_)
        return self.conditions(Bind(var, type_))

    def conditions(self, bind: Bind) -> Bind:
        props = self.schema.nodes[bind.type].props
        chosen = self.rng.sample(
            list(props), min(len(props), self.rng.choice((0, 0, 0, 0, 0, 0, 1, 2)))
        )
        return replace(
            bind,
            conditions=tuple(
                (name, self.constants.constant(props[name], inline=True)) for name in chosen
            ),
        )

    def unanchored(self, scope: Scope, depth: int) -> Walk:
        """A traversal that itself says what its two ends are."""
        edge = self.rng.choice(list(self.schema.edges.values()))
        left = self.fresh(scope, depth)
        scope[left] = Known(is_node=True, type=edge.source)
        right = self.fresh(scope, depth)
        scope[right] = Known(is_node=True, type=edge.target)
        return self.dressed(Walk(left, edge.name, right), edge, scope, depth)

    def walk(self, scope: Scope, depth: int) -> Walk | None:
        """A traversal from a variable to another, a new one, or nobody in particular."""
        rng = self.rng
        nodes = [name for name, known in scope.items() if known.is_node]
        start = rng.choice(nodes)
        here = scope[start].type
        edges = [e for e in self.schema.edges.values() if here in (e.source, e.target)]
        if not edges:
            return None
        edge = rng.choice(edges)
        outward = edge.source == here and (edge.target != here or rng.random() < 0.6)
        there = edge.target if outward else edge.source
        bound = [name for name in nodes if scope[name].type == there]
        roll = rng.random()
        if roll < 0.25 and bound:
            end = rng.choice(bound)
        elif roll < 0.4:
            end = ANONYMOUS
        else:
            end = self.fresh(scope, depth)
        if end != ANONYMOUS:
            scope.setdefault(end, Known(is_node=True, type=there))
        if edge.source == edge.target:
            left, right = (start, end) if outward else (end, start)
        else:
            # The direction follows from the types, so either spelling is right.
            left, right = (start, end) if rng.random() < 0.5 else (end, start)
        return self.dressed(Walk(left, edge.name, right), edge, scope, depth)

    def dressed(self, walk: Walk, edge: EdgeType, scope: Scope, depth: int) -> Walk:
        rng = self.rng
        if edge.source == edge.target and rng.random() < 0.3:
            walk = replace(walk, undirected=True)
        roll = rng.random()
        if roll < 0.25 and edge.source != edge.target:
            return replace(walk, bounds=(1, 1))
        if roll < 0.25:
            low = rng.choice((0, 1, 1, 1, 1, 1, 2, 3))
            return replace(walk, bounds=(low, low + 1 + rng.choice((0, 1, 2, 9))))
        if roll < 0.55:
            if rng.random() < 0.9:
                var = self.fresh(scope, depth)
                scope[var] = Known(is_node=False, type=edge.name)
                return replace(walk, edge_var=var)
            return replace(walk, edge_var=ANONYMOUS)
        return walk

    # -- tests -----------------------------------------------------------------------------

    def with_tests(
        self, clauses: list[Clause], scope: Scope, depth: int, count: int
    ) -> list[Clause]:
        """Tests anywhere among the clauses: they hold together, whatever the order."""
        mixed = list(clauses)
        for _ in range(count):
            mixed.insert(self.rng.randint(0, len(mixed)), self.test(scope, depth))
        return mixed

    def test(self, scope: Scope, depth: int) -> Clause:
        rng = self.rng
        if depth < 2 and rng.random() < 0.4 / (depth + 1):
            roll = rng.random()
            if roll < 0.45:
                return Block(rng.choice(("not", "exists")), self.block(scope, depth + 1)[0])
            if roll < 0.65:
                groups = tuple(
                    self.block(scope, depth + 1)[0] for _ in range(rng.choice((2, 2, 3)))
                )
                return AnyOf(groups)
            return self.counted(scope, depth + 1)
        if depth < 2 and rng.random() < 0.1:
            groups = tuple((self.filter(scope),) for _ in range(rng.choice((2, 2, 3))))
            if all(set(mentioned(group)) for group in groups):
                return AnyOf(groups)
        return Where(self.condition(scope, 2)) if rng.random() < 0.2 else self.filter(scope)

    def block(self, outer: Scope, depth: int) -> tuple[tuple[Clause, ...], Scope]:
        """The clauses of a nested block, which mentions an outer variable."""
        rng = self.rng
        while True:
            scope = dict(outer)
            clauses = self.steps(scope, depth, rng.choice((0, 1, 1, 1, 2)))
            if rng.random() < 0.1:
                nodes = [
                    name for name, known in outer.items() if known.is_node and not known.is_optional
                ]
                if nodes:
                    var = rng.choice(nodes)
                    clauses.append(self.conditions(Bind(var, scope[var].type)))
            clauses = self.with_tests(clauses, scope, depth, rng.choice((0, 0, 1, 1, 2)))
            if rng.random() < 0.1:
                clauses.append(self.optional(scope, depth))
            if outer.keys() & set(mentioned(tuple(clauses))):
                return tuple(clauses), scope

    def counted(self, outer: Scope, depth: int) -> Clause:
        rng = self.rng
        clauses, scope = self.block(outer, depth)
        op = rng.choice(COMPARISONS)
        functions = [
            ("sum", NUMBERS),
            ("avg", NUMBERS),
            ("min", (*NUMBERS, "String", "Bool", "Date", "DateTime")),
            ("max", (*NUMBERS, "String", "Bool", "Date", "DateTime")),
        ]
        function, kinds = rng.choice(functions)
        found = properties(self.schema, scope, kinds, summed=function in ("sum", "avg"))
        if not found or rng.random() < 0.5:
            number = rng.choice((0, 1, 2, 3, 1.5))
            value: Lit | Param = Lit(number)
            if rng.random() < 0.3:
                value = (
                    self.constants.param("F64", number)
                    if number == 1.5
                    else self.constants.param("I32", number)
                )
            return Counted("count", None, clauses, op, value)
        prop, type_ = rng.choice(found)
        return Counted(function, prop, clauses, op, self.constants.constant(type_))

    def optional(self, scope: Scope, depth: int) -> Block:
        """A left join; what it binds may be nobody for whoever comes later."""
        while True:
            inner = dict(scope)
            clauses: list[Clause] = []
            if self.rng.random() < 0.1:
                clauses.append(self.binding(inner, depth))
            clauses += self.steps(inner, depth, self.rng.choice((0, 1, 1, 1, 2)))
            if not clauses or self.rng.random() < 0.3:
                clauses.append(self.filter(inner))
            if inner.keys() > scope.keys() and scope.keys() & set(mentioned(tuple(clauses))):
                break
        clauses = self.with_tests(clauses, inner, depth, self.rng.choice((0, 0, 1)))
        for name, known in inner.items():
            if name not in scope:
                scope[name] = replace(known, is_optional=True)
        return Block("optional", tuple(clauses))

    # -- computed values -------------------------------------------------------------------

    def computed(self, scope: Scope) -> Expr:
        """A value that somebody computes: of a block, a number or a truth."""
        rng = self.rng
        roll = rng.random()
        if roll < 0.25:
            clauses, inner = self.block(scope, 2)
            found = properties(self.schema, inner, NUMBERS, summed=True)
            if rng.random() < 0.5 or not found:
                return Worth(rng.choice(("count", "exists", "not")), None, clauses)
            return Worth(rng.choice(("sum", "min", "max")), rng.choice(found)[0], clauses)
        return self.condition(scope, 2) if roll < 0.55 else self.number(scope, 2)

    def number(self, scope: Scope, depth: int) -> Expr:
        rng = self.rng
        found = properties(self.schema, scope, NUMBERS, summed=True)
        if depth and rng.random() < 0.6:
            if rng.random() < 0.2:
                # Of two kinds of numbers a choice makes floats: these are floats already.
                first, other = (
                    Arith(self.number(scope, depth - 1), "*", Lit(1.0)) for _ in range(2)
                )
                return Choice(self.condition(scope, 0), first, other)
            left, right = self.number(scope, depth - 1), self.number(scope, depth - 1)
            return Arith(left, rng.choice("+-*/%"), right)
        if found and rng.random() < 0.7:
            return rng.choice(found)[0]
        return Lit(rng.choice((0, 1, 2, -3, 0.5, 4)))

    def condition(self, scope: Scope, depth: int) -> Any:
        rng = self.rng
        roll = rng.random()
        if depth and roll < 0.35:
            parts = tuple(self.condition(scope, depth - 1) for _ in range(rng.choice((2, 2, 3))))
            return Logic(rng.choice(("and", "or")), parts)
        if depth and roll < 0.5:
            return Deny(self.condition(scope, depth - 1))
        if roll < 0.7:
            sides = self.number(scope, 1), self.number(scope, 1)
            return Compare(sides[0], rng.choice(COMPARISONS), sides[1])
        return self.filter(scope)

    # -- filters ---------------------------------------------------------------------------

    def filter(self, scope: Scope) -> Clause:
        rng = self.rng
        everything = (*NUMBERS, "String", "Bool", "Date", "DateTime", "enum")
        optional = [name for name, known in scope.items() if known.is_node and known.is_optional]
        if optional and rng.random() < 0.3:
            return IsNull(Var(rng.choice(optional)), rng.random() < 0.5)
        lists = properties(self.schema, scope, everything, lists=True)
        if lists and rng.random() < 0.3:
            prop, type_ = rng.choice(lists)
            if rng.random() < 0.2:
                return IsNull(prop, rng.random() < 0.5)
            return Compare(prop, "contains", self.partner(replace(type_, is_list=False), scope))
        prop, type_ = rng.choice(properties(self.schema, scope, everything))
        roll = rng.random()
        if roll < 0.12:
            return IsNull(prop, rng.random() < 0.5)
        if roll < 0.27:
            return self.membership(prop, type_)
        if roll < 0.33:
            return Compare(self.constants.list_param(type_), "contains", prop)
        if type_.base in ("String", "enum") and roll < 0.6:
            op = rng.choice(("contains", "starts_with"))
            return Compare(prop, op, self.partner(TEXT, scope))
        left: Expr = prop
        right = self.partner(type_, scope)
        if rng.random() < 0.2:
            left, right = right, left
        return Compare(left, rng.choice((*COMPARISONS, "!=", "<=", ">=")), right)

    def membership(self, prop: Prop, type_: PropType) -> In:
        rng = self.rng
        if rng.random() < 0.5:
            return In(prop, self.constants.list_param(type_))
        values = tuple(self.constants.literal(type_) for _ in range(rng.randint(1, 3)))
        kinds = {type(value) for value in values}
        return In(prop, Lit(values if len(kinds) == 1 else values[:1]))

    def partner(self, type_: PropType, scope: Scope) -> Expr:
        """What a property may be compared with."""
        if self.rng.random() < 0.35:
            kinds: tuple[str, ...] = NUMBERS if type_.base in NUMBERS else (type_.base,)
            if type_.base in ("String", "enum"):
                kinds = ("String", "enum")
            found = properties(self.schema, scope, kinds)
            if found:
                return self.rng.choice(found)[0]
        return self.constants.constant(type_)
