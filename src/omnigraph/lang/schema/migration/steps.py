"""The steps of a migration plan, the plan, and the codes of what is refused.

Owns their JSON, which is a contract with tools. Never decides which step a
change needs (migration.py) and never applies one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.schema.ir.document import Document, Json, Note, PropertyType
from omnigraph.lang.schema.ir.ir import TypeKind
from omnigraph.lang.schema.ir.shape import IndexRule

DropMode = Literal["soft", "hard"]
Tier = Literal["safe", "validated", "destructive"]
Severity = Literal["error", "warn", "info"]


@dataclass(frozen=True, slots=True)
class MigrationCode:
    """One entry of the code catalogue; ``emitted`` is false for reserved codes."""

    code: str
    tier: Tier
    severity: Severity
    text: str
    emitted: bool = False


MIGRATION_CODES: dict[str, MigrationCode] = {
    entry.code: entry
    for entry in (
        MigrationCode("OG-DS-101", "destructive", "error", "drop a graph type that has rows"),
        MigrationCode("OG-DS-102", "destructive", "warn", "drop a node type"),
        MigrationCode("OG-DS-103", "destructive", "warn", "drop an edge type"),
        MigrationCode("OG-DS-104", "destructive", "warn", "drop a property"),
        MigrationCode("OG-DS-105", "destructive", "error", "drop a vector property that has rows"),
        MigrationCode(
            "OG-MF-103",
            "validated",
            "error",
            "add a non-nullable property without a `@default` to fill it",
            emitted=True,
        ),
        MigrationCode("OG-MF-104", "validated", "error", "make a nullable property non-nullable"),
        MigrationCode(
            "OG-MF-106", "destructive", "error", "change the type of a property", emitted=True
        ),
    )
}


class AddType(Document, frozen=True, tag_field="kind", tag="add_type"):
    """A new type."""

    type_kind: TypeKind
    name: str


class RenameType(Document, frozen=True, tag_field="kind", tag="rename_type"):
    """A type under a new name."""

    type_kind: TypeKind
    former: str = msgspec.field(name="from")
    name: str = msgspec.field(name="to")


class AddProperty(Document, frozen=True, tag_field="kind", tag="add_property"):
    """A new property, filled with its default or null."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: PropertyType


class RenameProperty(Document, frozen=True, tag_field="kind", tag="rename_property"):
    """A property under a new name."""

    type_kind: TypeKind
    type_name: str
    former: str = msgspec.field(name="from")
    name: str = msgspec.field(name="to")


class AddIndex(Document, frozen=True, tag_field="kind", tag="add_constraint"):
    """New index intent over some members."""

    type_kind: TypeKind
    type_name: str
    constraint: IndexRule


class ExtendEnum(Document, frozen=True, tag_field="kind", tag="extend_enum"):
    """More values for an enum."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]


class UpdateTypeMetadata(Document, frozen=True, tag_field="kind", tag="update_type_metadata"):
    """Another description or instruction of a type."""

    type_kind: TypeKind
    name: str
    annotations: tuple[Note, ...]


class UpdatePropertyMetadata(
    Document, frozen=True, tag_field="kind", tag="update_property_metadata"
):
    """Another description of a property."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Note, ...]


class DropType(Document, frozen=True, tag_field="kind", tag="drop_type"):
    """A type that goes; ``hard`` also gives up its history."""

    type_kind: TypeKind
    name: str
    mode: DropMode


class DropProperty(Document, frozen=True, tag_field="kind", tag="drop_property"):
    """A property that goes; ``hard`` also gives up its history."""

    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode


class UnsupportedChange(
    Document, frozen=True, tag_field="kind", tag="unsupported_change", omit_defaults=True
):
    """A change nobody can apply; it refuses the whole plan."""

    entity: str
    reason: str
    code: str | None = None

    @property
    def message(self) -> str:
        """The reason, after its code if it has one."""
        return self.reason if self.code is None else f"[{self.code}] {self.reason}"


Step = (
    AddType
    | RenameType
    | AddProperty
    | RenameProperty
    | AddIndex
    | ExtendEnum
    | UpdateTypeMetadata
    | UpdatePropertyMetadata
    | DropType
    | DropProperty
    | UnsupportedChange
)


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What it takes to get from the accepted schema to the desired one."""

    steps: tuple[Step, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether every step can be applied."""
        return not any(isinstance(step, UnsupportedChange) for step in self.steps)

    def to_json(self) -> Json:
        """The plan as plain data."""
        return {"supported": self.supported, "steps": [step.to_json() for step in self.steps]}

    def require_supported(self) -> None:
        """Raise the first change that cannot be applied, if there is one."""
        for step in self.steps:
            if isinstance(step, UnsupportedChange):
                raise SchemaChangeRefused(
                    step.message, code=step.code, details={"entity": step.entity, **self.to_json()}
                )
