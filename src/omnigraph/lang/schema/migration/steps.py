"""The steps of a migration plan, the plan, and the codes of what is refused.

Owns their JSON, which is a contract with tools. Never decides which step a
change needs (migration.py) and never applies one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.schema.ir.encoding import Json, Note, type_to_json
from omnigraph.lang.schema.ir.ir import TypeKind
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
class _Tagged:
    """A step as a JSON object: its kind, then its fields in order.

    A field whose JSON name is no Python name, or whose value is no JSON, says so in
    its metadata.
    """

    kind: ClassVar[str]

    def to_json(self) -> Json:
        """The step as a tagged object; fields that are None are left out."""
        document: Json = {"kind": self.kind}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None:
                encode = entry.metadata.get("encode", _plain)
                document[entry.metadata.get("name", entry.name)] = encode(value)
        return document


def _plain(value: str | tuple[str, ...]) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _notes_to_json(notes: tuple[Note, ...]) -> list[Json]:
    return [note.to_json() for note in notes]


def _index_to_json(members: tuple[str, ...]) -> Json:
    return {"Index": list(members)}


@dataclass(frozen=True, slots=True)
class AddType(_Tagged):
    """A new type."""

    kind: ClassVar[str] = "add_type"
    type_kind: TypeKind
    name: str


@dataclass(frozen=True, slots=True)
class RenameType(_Tagged):
    """A type under a new name."""

    kind: ClassVar[str] = "rename_type"
    type_kind: TypeKind
    former: str = field(metadata={"name": "from"})
    name: str = field(metadata={"name": "to"})


@dataclass(frozen=True, slots=True)
class AddProperty(_Tagged):
    """A new property, filled with its default or null."""

    kind: ClassVar[str] = "add_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    property_type: ValueType = field(metadata={"encode": type_to_json})


@dataclass(frozen=True, slots=True)
class RenameProperty(_Tagged):
    """A property under a new name."""

    kind: ClassVar[str] = "rename_property"
    type_kind: TypeKind
    type_name: str
    former: str = field(metadata={"name": "from"})
    name: str = field(metadata={"name": "to"})


@dataclass(frozen=True, slots=True)
class AddIndex(_Tagged):
    """New index intent over some members."""

    kind: ClassVar[str] = "add_constraint"
    type_kind: TypeKind
    type_name: str
    members: tuple[str, ...] = field(metadata={"name": "constraint", "encode": _index_to_json})


@dataclass(frozen=True, slots=True)
class ExtendEnum(_Tagged):
    """More values for an enum."""

    kind: ClassVar[str] = "extend_enum"
    type_kind: TypeKind
    type_name: str
    property_name: str
    added_values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UpdateTypeMetadata(_Tagged):
    """Another description or instruction of a type."""

    kind: ClassVar[str] = "update_type_metadata"
    type_kind: TypeKind
    name: str
    annotations: tuple[Note, ...] = field(metadata={"encode": _notes_to_json})


@dataclass(frozen=True, slots=True)
class UpdatePropertyMetadata(_Tagged):
    """Another description of a property."""

    kind: ClassVar[str] = "update_property_metadata"
    type_kind: TypeKind
    type_name: str
    property_name: str
    annotations: tuple[Note, ...] = field(metadata={"encode": _notes_to_json})


@dataclass(frozen=True, slots=True)
class DropType(_Tagged):
    """A type that goes; ``hard`` also gives up its history."""

    kind: ClassVar[str] = "drop_type"
    type_kind: TypeKind
    name: str
    mode: DropMode


@dataclass(frozen=True, slots=True)
class DropProperty(_Tagged):
    """A property that goes; ``hard`` also gives up its history."""

    kind: ClassVar[str] = "drop_property"
    type_kind: TypeKind
    type_name: str
    property_name: str
    mode: DropMode


@dataclass(frozen=True, slots=True)
class UnsupportedChange(_Tagged):
    """A change nobody can apply; it refuses the whole plan."""

    kind: ClassVar[str] = "unsupported_change"
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
