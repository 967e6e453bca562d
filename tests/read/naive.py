"""The naive evaluator: what a generated query means, by nested loops over plain dicts.

Written from the language's definition alone and shares no code with the engine. Slow on
purpose: every clause is tried on every candidate, and nothing is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any, TypeVar

from tests.read.model import Data, Row, Schema, aggregated, compare, freeze, spelled
from tests.read.query_ast import (
    ANONYMOUS,
    Agg,
    AnyOf,
    Bind,
    Block,
    Clause,
    Column,
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
from tests.read.query_values import (
    Arith,
    Choice,
    Deny,
    Let,
    Logic,
    Where,
    Worth,
    arithmetic,
    joined,
)

Item = TypeVar("Item")


@dataclass(frozen=True)
class Entity:
    """What a variable is bound to."""

    kind: str
    type: str
    id: str


Env = dict[str, Entity | None]


@dataclass(frozen=True)
class Expected:
    """The rows before they are cut; ``is_total`` says whether their order is determined."""

    columns: list[str]
    rows: list[Row]
    is_total: bool
    keys: list[str] = field(default_factory=list)
    """The result columns that rows are ordered by, when only they are determined."""


def evaluate(schema: Schema, data: Data, query: Query) -> Expected:
    """The result of a query, before limit and offset."""
    run = _Run(schema, data, query)
    solutions = run.solve(query.clauses, {}, {})
    columns = [column.name for column in query.columns]
    if query.is_aggregate:
        rows = run.grouped(solutions)
    else:
        if not query.distinct:
            solutions = run.ordered(solutions)
        rows = [
            {column.name: run.shown(column.value, env) for column in query.columns}
            for env in solutions
        ]
    if query.distinct:
        rows = list({freeze(row): row for row in reversed(rows)}.values())
    if not (query.is_aggregate or query.distinct):
        return Expected(columns, rows, is_total=bool(query.order))
    keys = []
    for key, descending in reversed(query.order):
        name = key if isinstance(key, str) else f"{key.var}.{key.name}"
        keys.append(name)
        rows = _sorted(rows, itemgetter(name), descending=descending)
    return Expected(columns, rows, is_total=False, keys=keys)


def _sorted(
    rows: list[Item], value_of: Callable[[Item], Any], *, descending: bool = False
) -> list[Item]:
    """Rows by a value, ties as they were; null is smaller than everything."""

    def key(row: Item) -> tuple[bool, Any]:
        value = value_of(row)
        return (value is not None, value)

    return sorted(rows, key=key, reverse=descending)


class _Run:
    """One query over one graph."""

    def __init__(self, schema: Schema, data: Data, query: Query) -> None:
        self.schema = schema
        self.data = data
        self.query = query
        self.known: dict[Any, list[Env]] = {}
        self.reached: dict[Any, set[str]] = {}
        self.types: dict[str, str] = {}

    # -- match -----------------------------------------------------------------------------

    def solve(self, clauses: tuple[Clause, ...], outer: Env, types: dict[str, str]) -> list[Env]:
        """Every assignment that satisfies the clauses with the outer variables as they are."""
        types = self.inferred(clauses, types)
        if not outer:
            self.types = types
        rows = [dict(outer)]
        for clause in clauses:
            match clause:
                case Bind():
                    rows = [found for env in rows for found in self.bound(clause, env)]
                case Walk():
                    rows = [found for env in rows for found in self.walked(clause, env, types)]
                case Block("optional", inner):
                    new = self.introduced(inner) - set(types_of(rows)) - {ANONYMOUS}
                    rows = [
                        found for env in rows for found in self.optional(inner, env, types, new)
                    ]
        for clause in clauses:
            if isinstance(clause, Let):
                rows = [{**env, clause.name: self.value(clause.value, env)} for env in rows]
        tests = [clause for clause in clauses if not isinstance(clause, Bind | Walk | Let)]
        return [env for env in rows if all(self.holds(test, env, types) for test in tests)]

    def bound(self, clause: Bind, env: Env) -> Iterator[Env]:
        """The nodes of a type that satisfy the inline conditions."""
        known = env.get(clause.var)
        ids = [known.id] if known is not None else list(self.data.nodes[clause.type])
        for id_ in ids:
            entity = Entity("node", clause.type, id_)
            if all(self.inline(entity, name, value, env) for name, value in clause.conditions):
                yield {**env, clause.var: entity}

    def inline(self, entity: Entity, name: str, value: Lit | Param, env: Env) -> bool:
        held = self.property(entity, name)
        wanted = self.value(value, env)
        if held is None or wanted is None:
            return False
        if self.schema.nodes[entity.type].props[name].is_list:
            return any(item == wanted for item in held)
        return bool(held == wanted)

    def walked(self, walk: Walk, env: Env, types: dict[str, str]) -> Iterator[Env]:
        """The pairs of nodes, or the edges between nodes, that a traversal allows."""
        way = self.way(walk, types)
        for left, right, edge in self.steps(walk, way):
            found = dict(env)
            for name, entity in ((walk.left, left), (walk.right, right)):
                if name == ANONYMOUS:
                    continue
                if name in found and found[name] != entity:
                    break
                found[name] = entity
            else:
                if walk.edge_var is not None and edge is not None and walk.edge_var != ANONYMOUS:
                    found[walk.edge_var] = edge
                yield found

    def way(self, walk: Walk, types: dict[str, str]) -> str:
        edge = self.schema.edges[walk.edge]
        if walk.undirected:
            return "both"
        if edge.source == edge.target:
            return "out"
        left, right = types.get(walk.left), types.get(walk.right)
        if left is not None:
            return "out" if left == edge.source else "in"
        return "in" if right == edge.source else "out"

    def steps(self, walk: Walk, way: str) -> Iterator[tuple[Entity, Entity, Entity | None]]:
        edge = self.schema.edges[walk.edge]
        left, right = (edge.target, edge.source) if way == "in" else (edge.source, edge.target)
        if walk.edge_var is not None and walk.edge_var != ANONYMOUS:
            for id_, row in self.data.edges[walk.edge].items():
                for start, end in _ends(row, way):
                    itself = Entity("edge", walk.edge, id_)
                    yield Entity("node", left, start), Entity("node", right, end), itself
            return
        for start in self.data.nodes[left]:
            for end in sorted(self.reach(walk, way, start)):
                yield Entity("node", left, start), Entity("node", right, end), None

    def reach(self, walk: Walk, way: str, start: str) -> set[str]:
        """The nodes whose distance from the start is within the bounds."""
        key = (walk, way, start)
        if key not in self.reached:
            self.reached[key] = self.search(walk, way, start)
        return self.reached[key]

    def search(self, walk: Walk, way: str, start: str) -> set[str]:
        low, high = walk.bounds or (1, 1)
        edge = self.schema.edges[walk.edge]
        near = self.neighbours(walk.edge, way, start)
        if edge.source != edge.target:
            return near
        distance = {start: 0}
        frontier = {start}
        for depth in range(1, high + 1):
            reached = {end for at in frontier for end in self.neighbours(walk.edge, way, at)}
            frontier = reached - distance.keys()
            distance |= dict.fromkeys(frontier, depth)
        found = {end for end, far in distance.items() if low <= far <= high}
        return found | {start} if low == 1 and start in near else found

    def neighbours(self, edge: str, way: str, start: str) -> set[str]:
        pairs = (pair for row in self.data.edges[edge].values() for pair in _ends(row, way))
        return {end for begin, end in pairs if begin == start}

    def optional(
        self, clauses: tuple[Clause, ...], env: Env, types: dict[str, str], new: set[str]
    ) -> list[Env]:
        return self.inner(clauses, env, types) or [{**env, **dict.fromkeys(new)}]

    def introduced(self, clauses: tuple[Clause, ...]) -> set[str]:
        """The variables a block makes visible: not those of blocks inside it, but optional ones."""
        names: set[str] = set()
        for clause in clauses:
            match clause:
                case Bind(var):
                    names.add(var)
                case Walk():
                    names |= set(mentioned((clause,)))
                case Block("optional", inner):
                    names |= self.introduced(inner)
        return names

    def inner(self, clauses: tuple[Clause, ...], env: Env, types: dict[str, str]) -> list[Env]:
        """The solutions of a block inside a block; the same for the same variables it mentions."""
        names = {name for name in mentioned(clauses) if name in env}
        # The aggregate of a block may look at outer variables too: keep all of the row.
        key = (id(clauses), tuple(sorted((name, env[name]) for name in names if env[name])))
        if key not in self.known:
            outer = {name: env[name] for name in names}
            self.known[key] = self.solve(clauses, outer, types)
        return [{**env, **found} for found in self.known[key]]

    def inferred(self, clauses: tuple[Clause, ...], outer: dict[str, str]) -> dict[str, str]:
        """The node types of variables: by bindings first, then by the edges they touch."""
        types = dict(outer)
        types |= {clause.var: clause.type for clause in clauses if isinstance(clause, Bind)}
        walks: list[Walk] = []
        for clause in clauses:
            if isinstance(clause, Walk):
                walks.append(clause)
            elif isinstance(clause, Block) and clause.kind == "optional":
                self.infer(walks, types)
                types = self.inferred(clause.clauses, types)
        self.infer(walks, types)
        return types

    def infer(self, walks: list[Walk], types: dict[str, str]) -> None:
        while walks:
            known = [walk for walk in walks if types.keys() & {walk.left, walk.right}]
            walk = (known or walks)[0]
            walks.remove(walk)
            edge = self.schema.edges[walk.edge]
            ends = (edge.source, edge.target)
            if self.way(walk, types) == "in":
                ends = (edge.target, edge.source)
            types |= dict(zip((walk.left, walk.right), ends, strict=True))
            types.pop(ANONYMOUS, None)

    # -- tests -----------------------------------------------------------------------------

    def holds(self, clause: Clause, env: Env, types: dict[str, str]) -> bool:
        match clause:
            case Compare(left, op, right):
                return compare(self.value(left, env), op, self.value(right, env)) is True
            case IsNull(operand, negated):
                return (self.value(operand, env) is None) is not negated
            case In(operand, choices):
                found, listed = self.value(operand, env), self.value(choices, env)
                return found is not None and listed is not None and found in listed
            case Where(condition):
                return self.value(condition, env) is True
            case Block("not", inner):
                return not self.inner(inner, env, types)
            case Block("exists", inner):
                return bool(self.inner(inner, env, types))
            case AnyOf(groups):
                return any(self.inner(group, env, types) for group in groups)
            case Counted(function, argument, inner, op, value):
                solutions = self.inner(inner, env, types)
                found = [
                    None if argument is None else self.value(argument, row) for row in solutions
                ]
                if argument is None:
                    return compare(len(found), op, self.value(value, env)) is True
                return compare(aggregated(function, found), op, self.value(value, env)) is True
        return True

    # -- values ----------------------------------------------------------------------------

    def property(self, entity: Entity, name: str) -> Any:
        if name == "@id":
            return entity.id
        rows = self.data.nodes if entity.kind == "node" else self.data.edges
        return rows[entity.type][entity.id][name]

    def value(self, expression: Expr, env: Env) -> Any:
        match expression:
            case Prop(var, name):
                entity = env[var]
                return None if entity is None else self.property(entity, name)
            case Var(name):
                return env[name]
            case Param(name):
                return self.query.params[name][1]
            case Lit(value):
                return value
            case _:
                return self.computed(expression, env)

    def computed(self, expression: Any, env: Env) -> Any:
        match expression:
            case Arith(left, op, right):
                return arithmetic(self.value(left, env), op, self.value(right, env))
            case Choice(test, chosen, otherwise):
                is_true = self.value(test, env) is True
                return self.value(chosen if is_true else otherwise, env)
            case Logic(op, parts):
                return joined(op, [self.value(part, env) for part in parts])
            case Deny(part):
                known = self.value(part, env)
                return None if known is None else not known
            case Compare(left, op, right):
                return compare(self.value(left, env), op, self.value(right, env))
            case IsNull(operand, negated):
                return (self.value(operand, env) is None) is not negated
            case In(operand, choices):
                found, listed = self.value(operand, env), self.value(choices, env)
                return None if found is None or listed is None else found in listed
            case Worth(function, argument, inner):
                solutions = self.inner(inner, env, self.types)
                if function in ("exists", "not"):
                    return bool(solutions) is (function == "exists")
                if argument is None:
                    return len(solutions)
                return aggregated(function, [self.value(argument, row) for row in solutions])
        raise AssertionError(f"no expression: {expression}")

    def shown(self, expression: Expr | Agg, env: Env) -> Any:
        """A value of a result row as JSON."""
        if isinstance(expression, Agg):
            raise AssertionError("an aggregate has no value in one row")
        found = self.value(expression, env)
        narrow = isinstance(expression, Prop) and self.is_narrow(expression, env)
        if not isinstance(found, Entity):
            return spelled(found, narrow=narrow)
        props = self.schema.nodes[found.type].props
        row = self.data.nodes[found.type][found.id]
        values = {
            name: spelled(row[name], narrow=prop.base == "F32") for name, prop in props.items()
        }
        return {"@id": found.id, **values}

    def is_narrow(self, prop: Prop, env: Env) -> bool:
        entity = env[prop.var]
        if entity is None or prop.name.startswith("@"):
            return False
        types = self.schema.nodes if entity.kind == "node" else self.schema.edges
        return types[entity.type].props[prop.name].base == "F32"

    # -- after the match -------------------------------------------------------------------

    def ordered(self, rows: list[Env]) -> list[Env]:
        """By the keys, then by the ids of all variables in the order of their columns' names."""
        if not self.query.order:
            return rows
        named = {column.name: column.value for column in self.query.columns}
        lets = {clause.name for clause in self.query.clauses if isinstance(clause, Let)}
        bound = {name for env in rows for name in env} - lets
        names = sorted(bound, key=lambda name: f"{name}.id")
        for name in reversed(names):
            rows = _sorted(rows, partial(_id, name))
        for key, descending in reversed(self.query.order):
            value = named[key] if isinstance(key, str) else key
            assert not isinstance(value, Agg)
            rows = _sorted(rows, partial(self.value, value), descending=descending)
        return rows

    def grouped(self, rows: list[Env]) -> list[Row]:
        keys = [column for column in self.query.columns if not isinstance(column.value, Agg)]
        groups: dict[Any, list[Env]] = {} if keys else {(): []}
        for env in rows:
            group = tuple(freeze(self.shown(column.value, env)) for column in keys)
            groups.setdefault(group, []).append(env)
        return [
            {column.name: self.of_group(column, members) for column in self.query.columns}
            for members in groups.values()
        ]

    def of_group(self, column: Column, members: Sequence[Env]) -> Any:
        if not isinstance(column.value, Agg):
            return self.shown(column.value, members[0])
        argument = column.value.argument
        narrow = isinstance(argument, Prop) and any(
            self.is_narrow(argument, env) for env in members
        )
        found = [self.value(argument, env) for env in members]
        if column.value.function not in ("min", "max"):
            narrow = False
        if column.value.distinct:
            found = list({freeze(value): value for value in found}.values())
        return spelled(aggregated(column.value.function, found), narrow=narrow)


def types_of(rows: list[Env]) -> set[str]:
    """The variables that rows bind."""
    return {name for env in rows for name in env}


def _id(name: str, env: Env) -> str | None:
    entity = env[name]
    return None if entity is None else entity.id


def _ends(row: Row, way: str) -> list[tuple[str, str]]:
    """From where to where an edge leads; both ways it is two steps, but a loop is one."""
    forth, back = (row["@src"], row["@dst"]), (row["@dst"], row["@src"])
    if way == "out":
        return [forth]
    if way == "in":
        return [back]
    return [forth] if forth == back else [forth, back]
