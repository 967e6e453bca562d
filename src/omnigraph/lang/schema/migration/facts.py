"""What planning may ask about the data.

Owns the questions, and answers that were gathered before. Never reads anything itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


class DataFacts(Protocol):
    """What is known of the rows under the accepted schema."""

    def row_count(self, type_id: int) -> int | None:
        """How many rows a type has; None is not known, so it may have some."""
        ...

    def is_empty_column(self, type_id: int, property_id: int) -> bool | None:
        """Whether no row has a value of a property; None when nobody has looked."""
        ...


@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Facts that were gathered before: rows by type, emptiness by type and property."""

    rows: Mapping[int, int] = field(default_factory=dict)
    empty_columns: Mapping[tuple[int, int], bool] = field(default_factory=dict)

    def row_count(self, type_id: int) -> int | None:
        """How many rows a type has, if somebody has looked."""
        return self.rows.get(type_id)

    def is_empty_column(self, type_id: int, property_id: int) -> bool | None:
        """Whether no row has a value of a property, if somebody has looked."""
        return self.empty_columns.get((type_id, property_id))


UNKNOWN: DataFacts = KnownFacts()
"""Nothing is known: whatever depends on data is planned as if there were rows."""
