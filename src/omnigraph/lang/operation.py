"""Operations: what a query returns, reads and writes, as a client sees it.

Owns the shape. Frozen data without behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Touched:
    """A type that an operation reads or writes; nodes sort before edges."""

    is_edge: bool
    type_name: str


@dataclass(frozen=True, slots=True)
class ResultField:
    """One result column as a client sees it."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Result columns, and the types read and written, sorted and without repetition."""

    result: tuple[ResultField, ...]
    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]
