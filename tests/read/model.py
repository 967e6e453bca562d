"""The plain model of a graph: its types, its rows in dicts, and what their values mean.

Shares nothing with the product; the generators and the naive evaluator stand on it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tests.read.query_ast import moment_text

Row = dict[str, Any]


@dataclass(frozen=True)
class PropType:
    """The type of a property: a base type's name, or the members of an enum."""

    base: str
    nullable: bool = True
    is_list: bool = False
    members: tuple[str, ...] = ()
    wide: bool = False
    """Holds numbers so large that the order of a sum would show."""


@dataclass(frozen=True)
class NodeType:
    """A node type; without a key, ids are given."""

    name: str
    key: str | None
    props: dict[str, PropType]


@dataclass(frozen=True)
class EdgeType:
    """An edge type."""

    name: str
    source: str
    target: str
    props: dict[str, PropType]


@dataclass(frozen=True)
class Schema:
    """Types by name."""

    nodes: dict[str, NodeType]
    edges: dict[str, EdgeType]


@dataclass
class Data:
    """A graph: rows by type and id; an edge has `@src` and `@dst`."""

    nodes: dict[str, dict[str, Row]]
    edges: dict[str, dict[str, Row]]

    def copy(self) -> Data:
        """Another graph with the same rows."""
        return Data(
            {
                name: {id_: dict(row) for id_, row in rows.items()}
                for name, rows in self.nodes.items()
            },
            {
                name: {id_: dict(row) for id_, row in rows.items()}
                for name, rows in self.edges.items()
            },
        )


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "contains": lambda left, right: right in left,
    "starts_with": lambda left, right: left.startswith(right),
}


def compare(left: Any, op: str, right: Any) -> bool | None:
    """`left op right`; unknown when a side is null. Python compares numbers by value."""
    if left is None or right is None:
        return None
    return bool(_OPERATORS[op](left, right))


def aggregated(function: str, values: Sequence[Any]) -> Any:
    """An aggregate; nulls do not count."""
    found = [value for value in values if value is not None]
    if function == "count":
        return len(found)
    if not found:
        return None
    match function:
        case "sum":
            total = sum(found)
            return total if isinstance(total, int) else float(total)
        case "avg":
            return float(sum(found)) / len(found)
        case "min":
            return min(found)
        case "max":
            return max(found)
    raise AssertionError(f"there is no aggregate {function}")


def spelled(value: Any, *, narrow: bool = False) -> Any:
    """A value as JSON has it; ``narrow`` is a float of 32 bits."""
    match value:
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case tuple():
            return [spelled(item, narrow=narrow) for item in value]
        case float() if narrow:
            return next(
                short
                for digits in range(1, 18)
                if as_f32(short := float(f"{value:.{digits}g}")) == value
            )
        case _:
            return value


def as_f32(value: float) -> float:
    """The nearest float of 32 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def freeze(value: Any) -> Any:
    """Something hashable that is equal for equal JSON values only: 1, 1.0 and true differ."""
    match value:
        case dict():
            return ("{}", frozenset((name, freeze(item)) for name, item in value.items()))
        case list():
            return ("[]", tuple(map(freeze, value)))
        case _:
            return (type(value).__name__, value)
