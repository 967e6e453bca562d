"""What a whole query with searches in it means: the naive evaluator, with rankings.

The text of a query is taken apart by the product's parser and turned into the naive
evaluator's own tree; nothing that plans or runs queries is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query import terms
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.source import Source
from tests.read import search_model as model
from tests.read.model import Data, Row, Schema
from tests.read.naive import Env, _id, _Run, _sorted
from tests.read.query_ast import (
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
)

CLOSE = 1e-6
"""Scores may differ by so much."""


@dataclass(frozen=True)
class Arm:
    """`nearest($var.name, query)` or `bm25($var.name, query)`."""

    kind: str
    var: str
    name: str
    query: Any


@dataclass(frozen=True)
class Fusion:
    """`rrf(primary, secondary, k)`."""

    primary: Arm
    secondary: Arm
    k: int


Ranking = Arm | Fusion


@dataclass(frozen=True)
class Reading:
    """A query: what the naive evaluator knows, and what it does not."""

    query: Query
    scores: Mapping[str, Ranking]
    """The result columns that are scores; what the query has in their place is null."""
    ranking: Ranking | None


def expected_rows(
    schema: Schema, data: Data, text: str, params: Mapping[str, Any] | None = None
) -> list[Row]:
    """The rows of a query; those without any order come in some order."""
    reading = _reading(text, params or {}, schema)
    return _Ranked(schema, data, reading).rows()


def same_rows(found: Sequence[Row], wanted: Sequence[Row]) -> bool:
    """Whether two results are the same, scores up to a rounding error."""
    return len(found) == len(wanted) and all(
        row.keys() == other.keys() and all(_same(row[name], other[name]) for name in row)
        for row, other in zip(found, wanted, strict=True)
    )


def _same(value: Any, other: Any) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(value) is type(other) and bool(value == other)


# -- evaluation ----------------------------------------------------------------------------


class _Ranked(_Run):
    def __init__(self, schema: Schema, data: Data, reading: Reading) -> None:
        super().__init__(schema, data, reading.query)
        self.reading = reading
        self.told: dict[Ranking, dict[Any, float]] = {}

    def rows(self) -> list[Row]:
        """Everything, from the match to the cut."""
        query = self.query
        limit, offset = query.argument(query.limit), query.argument(query.offset) or 0
        stop = None if limit is None else limit + offset
        solutions = self.solve(query.clauses, {}, {})
        ranking = self.reading.ranking
        if ranking is None:
            for column in self.reading.scores.values():
                if isinstance(column, Fusion):
                    self.fuse(column, self.arms(column, solutions))
            solutions = self.by(solutions, [])
        elif isinstance(ranking, Arm):
            solutions = self.arm(ranking, solutions)
        else:
            solutions = self.fused(ranking, solutions)
        rows = [
            {column.name: self.column(column, env) for column in query.columns} for env in solutions
        ]
        if query.distinct:
            rows = [row for at, row in enumerate(rows) if row not in rows[:at]]
        return rows[offset:stop]

    def column(self, column: Column, env: Env) -> Any:
        ranking = self.reading.scores.get(column.name)
        return (
            self.shown(column.value, env) if ranking is None else _rounded(self.score(ranking, env))
        )

    def holds(self, clause: Clause, env: Env, types: dict[str, str]) -> bool:
        if not isinstance(clause, Compare) or "(" not in clause.op:
            return super().holds(clause, env, types)
        text, query = self.value(clause.left, env), self.value(clause.right, env)
        if query is None:
            return False
        kind, edits = clause.op.split("(")
        if kind == "search":
            return model.has_any(text, query)
        if kind == "match_text":
            return model.has_phrase(text, query)
        return model.has_near(text, query, int(edits))

    # -- rankings --------------------------------------------------------------------------

    def score(self, ranking: Ranking, env: Env) -> float | None:
        """What a ranking says about a row."""
        var = ranking.var if isinstance(ranking, Arm) else ranking.primary.var
        entity = env[var]
        if entity is None:
            return None
        if isinstance(ranking, Fusion):
            return self.told[ranking].get(entity)
        if ranking.kind == "nearest":
            return model.cosine(self.property(entity, ranking.name), ranking.query)
        if ranking not in self.told:
            nodes = self.data.nodes[entity.type]
            texts = {id_: row[ranking.name] for id_, row in nodes.items()}
            self.told[ranking] = model.bm25(texts, ranking.query)
        return self.told[ranking].get(entity.id)

    def arm(self, arm: Arm, rows: list[Env]) -> list[Env]:
        """The rows that have a score, the best first."""
        sign = 1 if arm.kind == "nearest" else -1
        scored = [(self.score(arm, env), env) for env in rows]
        known = [
            (sign * round(score, model.DECIMALS), env) for score, env in scored if score is not None
        ]
        return self.by([env for _, env in known], [number for number, _ in known])

    def by(self, rows: list[Env], numbers: list[float]) -> list[Env]:
        """By numbers, then by the order of the query, then by ids."""
        places = list(range(len(rows)))
        names = sorted({name for env in rows for name in env}, key=lambda name: f"{name}.id")
        for name in reversed(names):
            places = _sorted(places, partial(_id_at, rows, name))
        places = self.further(places, rows)
        if numbers:
            places.sort(key=numbers.__getitem__)
        return [rows[at] for at in places]

    def further(self, places: list[int], rows: list[Env]) -> list[int]:
        """By the order of the query; a fused score that is not known yet orders nothing."""
        named = {column.name: column for column in self.query.columns}
        for key, descending in reversed(self.query.order):
            told = self.reading.scores.get(key) if isinstance(key, str) else None
            if isinstance(told, Fusion) and told not in self.told:
                continue
            value = (
                partial(self.column, named[key])
                if isinstance(key, str)
                else partial(self.value, key)
            )
            values = [_rounded(value(env)) for env in rows]
            places = _sorted(places, values.__getitem__, descending=descending)
        return places

    def arms(self, fusion: Fusion, rows: list[Env]) -> list[list[Env]]:
        known = [env for env in rows if env[fusion.primary.var] is not None]
        return [self.arm(arm, known) for arm in (fusion.primary, fusion.secondary)]

    def fuse(self, fusion: Fusion, arms: list[list[Env]]) -> None:
        listed = [[env[fusion.primary.var] for env in arm] for arm in arms]
        self.told[fusion] = dict(model.fused(listed, fusion.k))

    def fused(self, fusion: Fusion, rows: list[Env]) -> list[Env]:
        var = fusion.primary.var
        primary, secondary = arms = self.arms(fusion, rows)
        self.fuse(fusion, arms)
        listed = [env[var] for env in primary]
        every = primary + [env for env in secondary if env[var] not in listed]
        entities = [env[var] for env in every]
        places = sorted(range(len(every)), key=lambda at: (entities.index(entities[at]), at))
        places = self.further(places, every)
        places.sort(key=lambda at: -round(self.told[fusion][entities[at]], model.DECIMALS))
        return [every[at] for at in places]


def _id_at(rows: list[Env], name: str, at: int) -> str | None:
    return _id(name, rows[at])


def _rounded(value: Any) -> Any:
    return round(value, model.DECIMALS) if isinstance(value, float) else value


# -- from syntax ---------------------------------------------------------------------------


def _reading(text: str, params: Mapping[str, Any], schema: Schema) -> Reading:
    source = Source(text)
    (query,) = parse_queries(source, Reporter(source)).queries
    assert isinstance(query.body, ast.Read)
    read = query.body
    made = _Conversion(schema, {param.name: params.get(param.name) for param in query.params})
    scores = {}
    columns = []
    for shown in read.projections:
        alias = None if shown.alias is None else shown.alias.text
        if isinstance(shown.expr, terms.Nearest | terms.Bm25 | terms.Rrf):
            assert alias is not None
            scores[alias] = made.ranking(shown.expr)
            columns.append(Column(Lit(None), alias))
        else:
            columns.append(Column(made.shown(shown.expr), alias))
    ranking = None
    ordering = read.ordering
    if ordering and isinstance(ordering[0].expr, terms.Nearest | terms.Bm25 | terms.Rrf):
        ranking, ordering = made.ranking(ordering[0].expr), ordering[1:]
    order = tuple((made.key(found.expr), found.descending) for found in ordering)
    return Reading(
        Query(
            tuple(map(made.clause, read.clauses)),
            tuple(columns),
            {name: ("", made.constant(value)) for name, value in made.params.items()},
            read.distinct,
            order,
            made.count(read.limit),
            made.count(read.offset),
        ),
        scores,
        ranking,
    )


@dataclass(frozen=True)
class _Conversion:
    schema: Schema
    params: Mapping[str, Any]

    def clause(self, clause: ast.Clause) -> Clause:
        match clause:
            case ast.Binding(variable, type_name, matches):
                pairs = tuple((pm.property.text, self.value(pm.value)) for pm in matches)
                return Bind(variable.name, type_name.text, pairs)
            case ast.Traversal(left, edge, right, edge_variable, undirected, hops):
                name = next(name for name in self.schema.edges if name.lower() == edge.text.lower())
                bounds = None if hops is None else (hops.minimum, hops.maximum or 0)
                bound = None if edge_variable is None else edge_variable.name
                return Walk(left.name, name, right.name, bound, undirected, bounds)
            case ast.WayStep() | ast.Let() | ast.For():
                raise AssertionError("searches are compared without ways and names of values")
            case ast.Where(condition):
                return self.condition(condition)
            case ast.Not(inner):
                return Block("not", self.clauses(inner))
            case ast.Exists(inner):
                return Block("exists", self.clauses(inner))
            case ast.Optional(inner):
                return Block("optional", self.clauses(inner))
            case ast.AnyOf(groups):
                return AnyOf(tuple(map(self.clauses, groups)))

    def condition(self, condition: terms.Expr) -> Clause:
        match condition:
            case terms.Comparison(terms.BlockValue(terms.Aggregate() as made, inner), op, wanted):
                prop = None if made.argument is None else self.prop(made.argument)
                value = self.value(wanted)
                return Counted(made.name, prop, self.clauses(inner), op, value)
            case terms.Comparison(left_side, op, right_side):
                return Compare(self.expr(left_side), op, self.expr(right_side))
            case terms.NullTest(operand, negated):
                return IsNull(self.expr(operand), negated)
            case terms.Membership(operand, choices):
                return In(self.expr(operand), self.value(choices))
            case terms.TextCall():
                edits = 2 if condition.edits is None else self.constant_of(condition.edits)
                query = Lit(self.constant_of(condition.query))
                return Compare(self.expr(condition.subject), f"{condition.name}({edits}", query)
        raise AssertionError(f"not in these tests: {condition}")

    def clauses(self, clauses: Iterable[ast.Clause]) -> tuple[Clause, ...]:
        return tuple(map(self.clause, clauses))

    def ranking(self, call: terms.Expr) -> Ranking:
        match call:
            case terms.Rrf(primary, secondary, k):
                smoothing = 60 if k is None else self.constant_of(k)
                return Fusion(self.arm(primary), self.arm(secondary), smoothing)
        return self.arm(call)

    def arm(self, call: terms.Expr) -> Arm:
        assert isinstance(call, terms.Nearest | terms.Bm25)
        prop = self.prop(call.subject)
        kind = "nearest" if isinstance(call, terms.Nearest) else "bm25"
        return Arm(kind, prop.var, prop.name, self.constant_of(call.query))

    def key(self, expr: terms.Expr) -> Prop | str:
        return expr.name if isinstance(expr, terms.Alias) else self.prop(expr)

    def prop(self, expr: terms.Expr) -> Prop:
        assert isinstance(expr, terms.Access)
        return Prop(expr.variable.name, expr.property.text)

    def shown(self, expr: terms.Expr) -> Expr | Agg:
        assert not isinstance(expr, terms.Aggregate)
        return self.expr(expr)

    def expr(self, expr: terms.Expr) -> Expr:
        match expr:
            case terms.Access():
                return self.prop(expr)
            case terms.Variable(name) if name not in self.params:
                return Var(name)
            case terms.Literal() | terms.ListLiteral() | terms.Variable():
                return self.value(expr)
        raise AssertionError(f"not in these tests: {expr}")

    def value(self, value: terms.Expr) -> Lit | Param:
        return (
            Param(value.name) if isinstance(value, terms.Variable) else Lit(self.constant_of(value))
        )

    def constant_of(self, expr: terms.Expr) -> Any:
        match expr:
            case terms.Literal(_, value):
                return value
            case terms.ListLiteral(items):
                return tuple(map(self.constant_of, items))
            case terms.Variable(name):
                return self.constant(self.params[name])
        raise AssertionError(f"no constant: {expr}")

    @staticmethod
    def constant(value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    def count(self, count: terms.Count | None) -> int | None:
        return None if count is None else int(self.constant_of(count))
