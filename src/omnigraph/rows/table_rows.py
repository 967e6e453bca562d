"""Rows of a table in memory, as expressions look at them, and conditions that only memory decides.

Owns which column of the table a property is. Searches nothing and groups nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.expressions import (
    Aggregate,
    Computed,
    Constant,
    Expression,
    Fixed,
    NodeRef,
    Property,
    TextMatch,
    leaves_of,
)
from omnigraph.lang.structural import ID
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.rows.evaluation import Positions, passing

_TEXT = ValueType(Scalar.STRING, nullable=True)


def own_name(found: Property) -> str:
    """The column of a table that holds one type, under its own name."""
    return found.name


def _nothing(_: int) -> None:
    """Whoever is not asked needs nothing."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """The rows of a table; ``named`` tells what it calls a property."""

    table: pa.Table
    value_of: Callable[[Fixed], Constant]
    named: Callable[[Property], str] = own_name
    needing: Callable[[int], None] = _nothing

    @property
    def count(self) -> int:
        """How many there are."""
        rows: int = self.table.num_rows
        return rows

    def column(self, found: Property) -> pa.Array:
        """A property of each."""
        return self.table.column(self.named(found))

    def computed(self, value: Computed) -> pa.Array:
        """What was computed for each and has a name."""
        return self.table.column(value.name).combine_chunks()

    def aggregated(self, value: Aggregate) -> pa.Array:
        """Rows are no groups."""
        raise AssertionError(f"{value} is a value of groups")

    def nobody(self, node: NodeRef) -> pa.Array:
        """Where an optional node is missing."""
        return pc.is_null(self.column(Property(node.variable, ID, _TEXT)))

    def searched(self, match: TextMatch) -> pa.Array:
        """Nothing is searched in memory."""
        raise AssertionError(f"{match} is for a search")

    def fixed(self, value: Fixed) -> Constant:
        """What a literal, a parameter or the present moment stands for."""
        return self.value_of(value)

    def take(self, chosen: Positions) -> TableRows:
        """Some of them."""
        return replace(self, table=self.table.take(pa.array(chosen)))

    def need(self, size: int, /) -> None:
        """Say that so many bytes are needed for a while."""
        self.needing(size)

    def look(self) -> None:
        """End what nobody waits for."""
        self.needing(0)


@dataclass(frozen=True, slots=True)
class Membership:
    """Whether a list column holds a value; Arrow has no expression for it."""

    column: str
    value: pa.Scalar

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """For each row, whether its list holds the value."""
        lists = rows.column(self.column).combine_chunks()
        hits = pc.equal(pc.list_flatten(lists), self.value).fill_null(False)  # noqa: FBT003 - pyarrow
        found = np.zeros(len(lists), dtype=bool)
        found[pc.list_parent_indices(lists).filter(hits).to_numpy()] = True
        return pa.array(found)


@dataclass(frozen=True, slots=True)
class Tested:
    """A condition of any shape about the columns of a row."""

    condition: Expression
    value_of: Callable[[Fixed], Constant]

    @property
    def columns(self) -> tuple[str, ...]:
        """What it looks at; rows have to be read also where that is nothing."""
        leaves = leaves_of(self.condition)
        names = [leaf.name for leaf in leaves if isinstance(leaf, Property)]
        return tuple(dict.fromkeys(names)) or (ID,)

    def mask(self, rows: pa.Table) -> pa.BooleanArray:
        """For each row, whether it is true."""
        return pa.array(passing((self.condition,), TableRows(rows, self.value_of)))
