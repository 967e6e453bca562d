"""What a plan does to tables, and what it asks of their rows, by stable ids.

Owns plain data that can be executed without comparing the two schemas again: each effect and
each check names its step by its place in the plan. Never touches a table.

Checks are about the rows as the plan leaves them: columns added, widened and filled. Only
`ColumnIsEmpty` is about a column as it stands. A null is exempt from all but `NotNull`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.schema.catalog import EntityKind
from omnigraph.lang.schema.catalog import Scalar as Value
from omnigraph.lang.types import ValueType

DropMode = Literal["soft", "hard"]
End = Literal["@src", "@dst"]


@dataclass(frozen=True, slots=True)
class Column:
    """A property of a table, with the type it has in the desired schema."""

    property_id: int
    type: ValueType


@dataclass(frozen=True, slots=True)
class OfStep:
    """What belongs to a step of a plan, and to a table."""

    step: int
    type_id: int


# -- tables ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTable(OfStep):
    """A table with the columns that the desired schema gives it."""

    kind: EntityKind
    incarnation: int
    name: str


@dataclass(frozen=True, slots=True)
class RenameTable(OfStep):
    """Another name; the table itself stays as it is."""

    kind: EntityKind
    former: str
    name: str


@dataclass(frozen=True, slots=True)
class DropTable(OfStep):
    """The table goes."""

    kind: EntityKind
    incarnation: int
    mode: DropMode


# -- columns ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OfProperty(OfStep):
    """What is about the column of one property."""

    property_id: int


@dataclass(frozen=True, slots=True)
class AddColumn(OfProperty):
    """A column of nulls, or of ``fill`` in every row."""

    type: ValueType
    fill: Value | None


@dataclass(frozen=True, slots=True)
class ReplaceColumn(OfProperty):
    """A column without a value gives way to one of another type: nulls, or ``fill``."""

    former: ValueType
    type: ValueType
    fill: Value | None


@dataclass(frozen=True, slots=True)
class WidenColumn(OfProperty):
    """The same values in a wider type; nulls become ``fill`` where there is one."""

    former: ValueType
    type: ValueType
    fill: Value | None


@dataclass(frozen=True, slots=True)
class FillNulls(OfProperty):
    """The same column with ``fill`` where nulls were."""

    type: ValueType
    fill: Value


@dataclass(frozen=True, slots=True)
class SetNullable(OfProperty):
    """The same values in a column that may hold nulls from here on, or may not."""

    nullable: bool


@dataclass(frozen=True, slots=True)
class DropColumn(OfProperty):
    """The property goes; how many rows have a value of it is for its step to tell."""

    mode: DropMode


@dataclass(frozen=True, slots=True)
class KeyEdges(OfStep):
    """Ids made of source, destination and these members, in this order."""

    members: tuple[Column, ...]


Effect = (
    CreateTable
    | RenameTable
    | DropTable
    | AddColumn
    | ReplaceColumn
    | WidenColumn
    | FillNulls
    | SetNullable
    | DropColumn
    | KeyEdges
)
REWRITING = (ReplaceColumn, WidenColumn, FillNulls)
"""Effects after which a property that stays has another column."""


# -- checks ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NotNull(OfProperty):
    """Every row has a value."""


@dataclass(frozen=True, slots=True)
class ColumnIsEmpty(OfProperty):
    """No row has a value."""


@dataclass(frozen=True, slots=True)
class InEnum(OfProperty):
    """Every value is one of these."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InRange(OfProperty):
    """Every number lies between the bounds, ends included."""

    type: ValueType
    minimum: int | float | None
    maximum: int | float | None


@dataclass(frozen=True, slots=True)
class MatchesPattern(OfProperty):
    """The pattern is found in every text."""

    pattern: str


@dataclass(frozen=True, slots=True)
class UniqueMembers(OfStep):
    """No two rows have equal members; all rows of a group that do are violations."""

    members: tuple[Column | End, ...]


@dataclass(frozen=True, slots=True)
class UniqueEdges(OfStep):
    """No two edges have equal ends and equal members, so that a key tells them apart."""

    members: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class CardinalityWithin(OfStep):
    """Every source that has edges has as many as this; sources with more or fewer break it."""

    minimum: int
    maximum: int | None


DataCheck = (
    NotNull
    | ColumnIsEmpty
    | InEnum
    | InRange
    | MatchesPattern
    | UniqueMembers
    | UniqueEdges
    | CardinalityWithin
)
