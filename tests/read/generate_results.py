"""Generated results: what a query returns, groups by and orders by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.read.generate_constants import NUMBERS, Constants
from tests.read.model import Schema
from tests.read.query_ast import Agg, Column, Expr, Lit, Prop, Query, Var
from tests.read.scopes import Scope, properties


@dataclass(frozen=True)
class Results:
    """Completes queries whose pattern stands."""

    rng: Random
    schema: Schema
    scope: Scope
    constants: Constants
    computed: Callable[[], Expr] | None = None

    def projected(self, query: Query) -> Query:
        rng = self.rng
        columns = self.columns([self.output() for _ in range(rng.randint(1, 4))])
        query = replace(query, columns=columns, distinct=rng.random() < 0.25)
        if rng.random() < 0.5:
            return query
        keys: list[Prop | str] = self.column_keys(columns)
        if not query.distinct:
            props = properties(
                self.schema, self.scope, (*NUMBERS, "String", "Bool", "Date", "DateTime", "enum")
            )
            keys += [prop for prop, _ in rng.sample(props, min(len(props), 4))]
        return replace(query, order=self.order(keys))

    def grouped(self, query: Query) -> Query:
        rng = self.rng
        keys: list[Expr | Agg] = [self.group_key() for _ in range(rng.choice((0, 0, 1, 1, 2)))]
        aggregates: list[Expr | Agg] = [self.aggregate() for _ in range(rng.randint(1, 3))]
        outputs = keys + aggregates
        rng.shuffle(outputs)
        columns = self.columns(outputs)
        query = replace(query, columns=columns, distinct=rng.random() < 0.1)
        if rng.random() < 0.5:
            return query
        return replace(query, order=self.order(self.column_keys(columns)))

    def output(self) -> Expr:
        roll = self.rng.random()
        if roll < 0.08:
            return Lit(self.rng.choice((3, -2, 2.5, "x", True, (1, 2), ("a",))))
        if roll < 0.14:
            return self.rng.choice(
                (
                    self.constants.param("I64?", self.rng.choice((None, 5))),
                    self.constants.param("String", "é"),
                    self.constants.param("[F64]", (1.0, 2.5)),
                )
            )
        return self.group_key()

    def group_key(self) -> Expr:
        rng = self.rng
        if self.computed is not None and rng.random() < 0.3:
            return self.computed()
        nodes = [name for name, known in self.scope.items() if known.is_node]
        if nodes and rng.random() < 0.2:
            return Var(rng.choice(nodes))
        kinds = (*NUMBERS, "String", "Bool", "Date", "DateTime", "enum")
        props = properties(self.schema, self.scope, kinds, lists=rng.random() < 0.2)
        return rng.choice(props or properties(self.schema, self.scope, kinds))[0]

    def aggregate(self) -> Agg:
        rng = self.rng
        function = rng.choice(("count", "count", "sum", "avg", "min", "max"))
        nodes = [name for name, known in self.scope.items() if known.is_node]
        if function == "count" and nodes and rng.random() < 0.5:
            return Agg("count", Var(rng.choice(nodes)))
        kinds: tuple[str, ...] = NUMBERS
        if function not in ("sum", "avg"):
            kinds = (*NUMBERS, "String", "Bool", "Date", "DateTime", "enum")
        found = properties(self.schema, self.scope, kinds, summed=function in ("sum", "avg"))
        distinct = function in ("count", "sum", "avg") and rng.random() < 0.3
        if not found:
            return Agg("count", self.group_key(), distinct)
        return Agg(function, rng.choice(found)[0], distinct)

    def columns(self, values: list[Expr | Agg]) -> tuple[Column, ...]:
        """Columns with names of their own: aliased at times, and whenever a name would repeat."""
        columns: list[Column] = []
        for number, value in enumerate(values):
            column = Column(value)
            names = {known.name for known in columns}
            # What an aggregate over no rows at all is called is nobody's business.
            lonely = isinstance(value, Agg) and all(isinstance(other, Agg) for other in values)
            needs_name = lonely or column.name in names or column.name == "computed"
            if needs_name or self.rng.random() < 0.4:
                column = Column(value, f"{self.rng.choice(('n', 'total', 'asc', 'desc'))}_{number}")
            columns.append(column)
        return tuple(columns)

    def column_keys(self, columns: tuple[Column, ...]) -> list[Prop | str]:
        """The result columns that rows can be ordered by, as a query names them."""
        keys: list[Prop | str] = []
        for column in columns:
            if not self.is_sortable(column.value):
                continue
            if column.alias is not None:
                keys.append(column.alias)
            elif isinstance(column.value, Prop):
                keys.append(column.value)
        return keys

    def is_sortable(self, value: Expr | Agg) -> bool:
        if isinstance(value, Agg):
            return True
        if not isinstance(value, Prop):
            return False
        if value.name.startswith("@"):
            return True
        known = self.scope[value.var]
        types = self.schema.nodes if known.is_node else self.schema.edges
        return not types[known.type].props[value.name].is_list

    def order(self, keys: list[Prop | str]) -> tuple[tuple[Prop | str, bool], ...]:
        chosen = self.rng.sample(keys, min(len(keys), self.rng.randint(1, 3)))
        return tuple((key, self.rng.random() < 0.4) for key in chosen)
