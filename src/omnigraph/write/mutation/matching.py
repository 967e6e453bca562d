"""The match of a mutation: who reads it, and that what was read must still be so.

Owns the seam to those who read: a write knows that rows are found, and not how. Never reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.lang.query import plan
from omnigraph.lang.query.values import Values
from omnigraph.storage.budget import Budget
from omnigraph.write.publish.base import Base


class Matching(Protocol):
    """Who finds the rows of a match, as the actor of the mutation sees them."""

    def rows(self, match: plan.ReadPlan, values: Values, base: Base, budget: Budget) -> pa.Table:
        """The rows that a match binds on a base."""

    def shown(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Rows as JSON would have them."""


@dataclass(frozen=True, slots=True)
class MatchedRows:
    """The rows that a match has bound: part of a read set.

    ``tables`` are those that it looks at. While they stay, so do the rows; else it is run again.
    """

    tables: tuple[str, ...]
    found: pa.Table
    again: Callable[[Base], pa.Table]
    type_key: str = "match"

    def holds(self, before: Base, after: Base) -> bool:
        """Whether the newer base has the same rows."""
        if before.snapshot.schema.ir_hash != after.snapshot.schema.ir_hash:
            return False
        if all(_pin(before, key) == _pin(after, key) for key in self.tables):
            return True
        try:
            return bool(_in_order(self.again(after)).equals(_in_order(self.found)))
        except StorageError:
            raise
        except OmniGraphError:
            return False


def _in_order(rows: pa.Table) -> pa.Table:
    """Rows in an order that does not depend on where they lie."""
    keys = [(one.name, "ascending") for one in rows.schema if not pa.types.is_nested(one.type)]
    return rows.sort_by(keys).combine_chunks()


def _pin(base: Base, key: str) -> object:
    table = base.snapshot.tables.get(key)
    return None if table is None else (table.identity, table.pinned.pin.version)
