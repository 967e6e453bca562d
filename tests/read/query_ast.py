"""A small query AST for generated queries, and its text.

Shares nothing with the product: the generator makes these, the naive evaluator works on
them, and the engine only ever sees the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from tests.read.query_values import (
    COMPUTED,
    Arith,
    Choice,
    Deny,
    Let,
    Logic,
    Where,
    Worth,
    parts_of,
    value_text,
)

ANONYMOUS = "_"


@dataclass(frozen=True)
class Prop:
    """`$var.name`."""

    var: str
    name: str


@dataclass(frozen=True)
class Var:
    """`$var`, a whole node."""

    name: str


@dataclass(frozen=True)
class Param:
    """`$name`, a parameter."""

    name: str


@dataclass(frozen=True)
class Lit:
    """A literal; a tuple is a list."""

    value: Any


@dataclass(frozen=True)
class Agg:
    """`function(argument)`."""

    function: str
    argument: Expr
    distinct: bool = False


Expr = Prop | Var | Param | Lit | Arith | Choice | Logic | Deny | Worth


@dataclass(frozen=True)
class Bind:
    """`$var: Type { prop: value }`."""

    var: str
    type: str
    conditions: tuple[tuple[str, Lit | Param], ...] = ()


@dataclass(frozen=True)
class Walk:
    """`$left edge $right`, in any of its forms."""

    left: str
    edge: str
    right: str
    edge_var: str | None = None
    undirected: bool = False
    bounds: tuple[int, int] | None = None


@dataclass(frozen=True)
class Compare:
    """`left op right`, the text operators included."""

    left: Expr
    op: str
    right: Expr


@dataclass(frozen=True)
class IsNull:
    """`expr is [not] null`."""

    operand: Expr
    negated: bool


@dataclass(frozen=True)
class In:
    """`expr in choices`."""

    operand: Expr
    choices: Lit | Param


@dataclass(frozen=True)
class Block:
    """`not { … }`, `exists { … }` or `optional { … }`."""

    kind: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class AnyOf:
    """`any { … } or { … }`."""

    groups: tuple[tuple[Clause, ...], ...]


@dataclass(frozen=True)
class Counted:
    """`count { … } op value`, or another aggregate of a property."""

    function: str
    argument: Prop | None
    clauses: tuple[Clause, ...]
    op: str
    value: Lit | Param


Clause = Bind | Walk | Compare | IsNull | In | Block | AnyOf | Counted | Where | Let


@dataclass(frozen=True)
class Column:
    """A projection."""

    value: Expr | Agg
    alias: str | None = None

    @property
    def name(self) -> str:
        """What the result calls it."""
        if self.alias is not None:
            return self.alias
        value = self.value.argument if isinstance(self.value, Agg) else self.value
        if isinstance(value, Prop):
            return f"{value.var}.{value.name}"
        if isinstance(value, Lit):
            return "literal"
        return value.name if isinstance(value, Var | Param) else "computed"


@dataclass(frozen=True)
class Query:
    """A whole read; ``params`` are pairs of a declared type and a value."""

    clauses: tuple[Clause, ...]
    columns: tuple[Column, ...]
    params: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    distinct: bool = False
    order: tuple[tuple[Prop | str, bool], ...] = ()
    limit: int | Param | None = None
    offset: int | Param | None = None

    @property
    def is_aggregate(self) -> bool:
        """Whether rows are grouped."""
        return any(isinstance(column.value, Agg) for column in self.columns)

    def argument(self, count: int | Param | None) -> int | None:
        """The number behind a limit or an offset."""
        return self.params[count.name][1] if isinstance(count, Param) else count

    @property
    def arguments(self) -> dict[str, Any]:
        """The parameters as a caller passes them."""
        return {name: _json(value) for name, (_, value) in self.params.items()}


# -- which variables something mentions ----------------------------------------------------


def mentioned(clauses: tuple[Clause, ...]) -> Iterator[str]:
    """Every variable of some clauses, those inside blocks included."""
    for clause in clauses:
        match clause:
            case Bind(var):
                yield var
            case Walk(left, _, right, edge_var):
                yield from (left, right)
                if edge_var is not None:
                    yield edge_var
            case Compare(left_side, _, right_side):
                yield from _variables(left_side, right_side)
            case IsNull(operand) | In(operand):
                yield from _variables(operand)
            case Block(_, inner):
                yield from mentioned(inner)
            case Counted(_, argument, inner):
                yield from mentioned(inner)
                if argument is not None:
                    yield argument.var
            case AnyOf(groups):
                for group in groups:
                    yield from mentioned(group)
            case Where() | Let():
                yield from _variables(clause)


def _variables(*expressions: Any) -> Iterator[str]:
    for expression in expressions:
        if isinstance(expression, Compare):
            yield from _variables(expression.left, expression.right)
        elif isinstance(expression, IsNull | In):
            yield from _variables(expression.operand)
        elif isinstance(expression, (*COMPUTED, Where, Let)):
            yield from _variables(*parts_of(expression))
            if isinstance(expression, Worth):
                yield from mentioned(expression.clauses)
        elif isinstance(expression, Prop):
            yield expression.var
        elif isinstance(expression, Var):
            yield expression.name


# -- text ----------------------------------------------------------------------------------


def query_text(query: Query) -> str:
    """The query as somebody would write it."""
    declared = ", ".join(f"${name}: {type_}" for name, (type_, _) in query.params.items())
    columns = ", ".join(
        _expr(column.value) + ("" if column.alias is None else f" as {column.alias}")
        for column in query.columns
    )
    text = f"query q({declared}) {{\n  match {{\n{_clauses(query.clauses, 4)}\n  }}\n"
    text += f"  return {'distinct ' if query.distinct else ''}{{ {columns} }}\n"
    if query.order:
        keys = (
            (key if isinstance(key, str) else _expr(key)) + (" desc" if descending else "")
            for key, descending in query.order
        )
        text += f"  order {{ {', '.join(keys)} }}\n"
    if query.limit is not None:
        text += f"  limit {_count(query.limit)}"
        text += "\n" if query.offset is None else f" offset {_count(query.offset)}\n"
    return text + "}\n"


def _count(count: int | Param) -> str:
    return str(count) if isinstance(count, int) else f"${count.name}"


def _clauses(clauses: tuple[Clause, ...], depth: int) -> str:
    return "\n".join(" " * depth + _clause(clause, depth) for clause in clauses)


def _braced(clauses: tuple[Clause, ...], depth: int) -> str:
    return f"{{\n{_clauses(clauses, depth + 2)}\n{' ' * depth}}}"


def _clause(clause: Clause, depth: int) -> str:
    match clause:
        case Bind(var, type_, conditions):
            listed = ", ".join(f"{name}: {_expr(value)}" for name, value in conditions)
            return f"${var}: {type_}" + (f" {{ {listed} }}" if listed else "")
        case Walk():
            return _walk(clause)
        case Compare(left, op, right):
            text = f"{_expr(left)} {op} {_expr(right)}"
            # A minus would go on with the clause before.
            return f"({text})" if text.startswith("-") else text
        case IsNull(operand, negated):
            return f"{_expr(operand)} is {'not ' if negated else ''}null"
        case In(operand, choices):
            return f"{_expr(operand)} in {_expr(choices)}"
        case Block(kind, inner):
            return f"{kind} {_braced(inner, depth)}"
        case AnyOf(groups):
            return "any " + " or ".join(_braced(group, depth) for group in groups)
        case Where() | Let():
            return value_text(clause, _expr, lambda inner: _braced(inner, depth))
        case Counted(function, argument, inner, op, value):
            head = function if argument is None else f"{function}({_expr(argument)})"
            return f"{head} {_braced(inner, depth)} {op} {_expr(value)}"


def _walk(walk: Walk) -> str:
    edge = walk.edge[0].lower() + walk.edge[1:]
    if walk.undirected:
        edge = f"<{edge}>"
    if walk.edge_var is not None:
        edge = f"${walk.edge_var}:{edge}"
    if walk.bounds is not None:
        edge += f"{{{walk.bounds[0]},{walk.bounds[1]}}}"
    return f"${walk.left} {edge} ${walk.right}"


def _expr(value: Any) -> str:
    match value:
        case Agg(function, argument, distinct):
            return f"{function}({'distinct ' if distinct else ''}{_expr(argument)})"
        case Compare() | IsNull() | In():
            return f"({_clause(value, 0)})"
        case Arith() | Choice() | Logic() | Deny() | Worth():
            return value_text(value, _expr, lambda inner: _braced(inner, 4))
        case Prop(var, name):
            return f"${var}.{name}"
        case Var(name) | Param(name):
            return f"${name}"
        case Lit(literal):
            return literal_text(literal)
    raise AssertionError(f"no expression: {value}")


def literal_text(value: Any) -> str:
    """A literal; what has none (null, a number too large) is for parameters."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            text = format(Decimal(value), "f")
            return text if "." in text else f"{text}.0"
        case str():
            escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
            return '"' + "".join(escapes.get(letter, letter) for letter in value) + '"'
        case datetime():
            return f'datetime("{moment_text(value)}")'
        case date():
            return f'date("{value.isoformat()}")'
        case tuple():
            return f"[{', '.join(map(literal_text, value))}]"
    raise AssertionError(f"there is no literal for {value!r}")


def moment_text(value: datetime) -> str:
    """A moment as results spell it."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03}Z"


def _json(value: Any) -> Any:
    match value:
        case tuple():
            return [_json(item) for item in value]
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case _:
            return value
