"""The steps of a migration plan, the plan, and the codes of what is refused.

Owns their JSON, which is a contract with tools. Never decides which step a
change needs (migration.py) and never applies one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.schema.encoding import Json, Note, type_to_json
from omnigraph.lang.schema.ir import TypeKind
from omnigraph.lang.types import ValueType

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


@dataclass(frozen=True, slots=True)
class AddType:
    """A new type."""

    kind: ClassVar[str] = "add_type"
    type_kind: TypeKind
    name: str

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {"kind": self.kind, "type_kind": self.type_kind, "name": self.name}


@dataclass(frozen=True, slots=True)
class RenameType:
    """A type under a new name."""

    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    former: str
    name: str

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "from": self.former,
            "to": self.name,
        }


@dataclass(frozen=True, slots=True)
class AddProperty:
    """A new property, filled with its default or null."""

    kind: ClassVar[str] = "add_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: ValueType

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "property_type": type_to_json(self.property_type),
        }


@dataclass(frozen=True, slots=True)
class RenameProperty:
    """A property under a new name."""

    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    former: str
    name: str

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "from": self.former,
            "to": self.name,
        }


@dataclass(frozen=True, slots=True)
class AddIndex:
    """New index intent over some members."""

    kind: ClassVar[str] = "add_constraint"
    type_kind: TypeKind
    type_name: str
    members: tuple[str, ...]

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "constraint": {"Index": list(self.members)},
        }


@dataclass(frozen=True, slots=True)
class ExtendEnum:
    """More values for an enum."""

    kind: ClassVar[str] = "extend_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "added_values": list(self.added_values),
        }


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata:
    """Another description or instruction of a type."""

    kind: ClassVar[str] = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[Note, ...]

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "name": self.name,
            "annotations": [note.to_json() for note in self.annotations],
        }


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata:
    """Another description of a property."""

    kind: ClassVar[str] = "update_property_metadata"
    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Note, ...]

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "annotations": [note.to_json() for note in self.annotations],
        }


@dataclass(frozen=True, slots=True)
class DropType:
    """A type that goes; ``hard`` also gives up its history."""

    kind: ClassVar[str] = "drop_type"
    type_kind: TypeKind
    name: str
    mode: DropMode

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "name": self.name,
            "mode": self.mode,
        }


@dataclass(frozen=True, slots=True)
class DropProperty:
    """A property that goes; ``hard`` also gives up its history."""

    kind: ClassVar[str] = "drop_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode

    def to_json(self) -> Json:
        """The step as a tagged object."""
        return {
            "kind": self.kind,
            "type_kind": self.type_kind,
            "type_name": self.type_name,
            "property_name": self.property_name,
            "mode": self.mode,
        }


@dataclass(frozen=True, slots=True)
class UnsupportedChange:
    """A change nobody can apply; it refuses the whole plan."""

    kind: ClassVar[str] = "unsupported_change"
    entity: str
    reason: str
    code: str | None = None

    def to_json(self) -> Json:
        """The step as a tagged object; the code only where there is one."""
        document: Json = {"kind": self.kind, "entity": self.entity, "reason": self.reason}
        if self.code is not None:
            document["code"] = self.code
        return document

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
