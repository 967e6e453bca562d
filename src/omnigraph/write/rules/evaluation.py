"""A change set on trial: with the base it is checked against and what came of it.

Owns the bundle that the rules pass around. Every question about stored rows is
asked through it, so that the read set misses none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.write.change.change_set import ChangeSet, TypeChange
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import BaseQuery, ReadSet
from omnigraph.write.rules.violations import Violations


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One change set, its base, its read set, and the violations found so far."""

    changes: ChangeSet
    base: Base
    reads: ReadSet
    violations: Violations = field(default_factory=Violations)

    def change(self, type_key: str) -> TypeChange | None:
        """What happens to a type."""
        return self.changes.get(type_key)

    def ask(self, type_key: str, question: BaseQuery) -> pa.Table:
        """Ask the base."""
        return self.reads.ask(self.base, type_key, question)

    def hold(self, type_key: str, column: str, texts: pa.Array, *wanted: str) -> pa.Table:
        """The stored rows that hold one of these texts in a column."""
        return self.reads.hold(self.base, type_key, column, texts, *wanted)

    def scan(self, type_key: str, column: str) -> pa.Table:
        """One column of all stored rows; from now on, any change of them matters."""
        self.reads.depend_on(type_key)
        return self.base.table(type_key).table.scan([column])
