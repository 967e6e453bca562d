"""The steps of a migration plan.

Owns their JSON, which is a contract with tools: the fields of a step, then its tier and cost,
then what is known of the data. Never decides which step a change needs (planner.py) and never
applies one.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from omnigraph.lang.schema.catalog import Scalar as Value
from omnigraph.lang.schema.ir.document import Cardinality, Document, Note, PropertyType
from omnigraph.lang.schema.ir.ir import TypeKind
from omnigraph.lang.schema.ir.shape import (
    MEMBER_RULES,
    Check,
    CheckRule,
    EmbedShape,
    Range,
    RangeRule,
    Rule,
)
from omnigraph.lang.schema.migration.codes import Tier
from omnigraph.lang.schema.migration.effects import DropMode

Cost = Literal["metadata", "columns", "scan"]
"""What a step takes: the manifest alone, whole columns written, or rows looked at."""

MAX_SHOWN_IDS = 10
"""How many ids of rows that break a step are kept."""


class Violations(Document, frozen=True):
    """Rows that a step forbids: how many, and the first ids in order."""

    count: int
    ids: tuple[str, ...]


class Change(Document, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind"):
    """A step that can be applied, if the data allows it.

    ``violations`` are there once the data was looked at, ``rows_losing_value`` where a
    destructive step knows them.
    """

    tier: Tier
    cost: Cost
    code: str | None = None
    rows_losing_value: int | None = None
    violations: Violations | None = None

    @property
    def entity(self) -> str:
        """What it is about: `node:T` or `node:T.p`, as the desired schema calls it."""
        raise NotImplementedError


class TypeChange(Change, frozen=True):
    """A step about a whole type."""

    type_kind: TypeKind
    name: str

    @property
    def entity(self) -> str:
        """The type."""
        return entity_of(self.type_kind, self.name)


class PartChange(Change, frozen=True):
    """A step about what a type says of all its rows."""

    type_kind: TypeKind
    type_name: str

    @property
    def entity(self) -> str:
        """The type."""
        return entity_of(self.type_kind, self.type_name)


class PropertyChange(Change, frozen=True):
    """A step about a property, under the name that it has afterwards."""

    type_kind: TypeKind
    type_name: str
    property_name: str

    @property
    def entity(self) -> str:
        """The property."""
        return entity_of(self.type_kind, self.type_name, self.property_name)


# -- whole types -----------------------------------------------------------------------


class AddType(TypeChange, frozen=True, tag="add_type"):
    """A new type."""


class RenameType(Change, frozen=True, tag="rename_type"):
    """A type under a new name."""

    type_kind: TypeKind
    former: str = msgspec.field(name="from")
    name: str = msgspec.field(name="to")

    @property
    def entity(self) -> str:
        """The type."""
        return entity_of(self.type_kind, self.name)


class UpdateTypeMetadata(TypeChange, frozen=True, tag="update_type_metadata"):
    """Another description or instruction of a type."""

    annotations: tuple[Note, ...]


class DropType(TypeChange, frozen=True, tag="drop_type"):
    """A type that goes; ``hard`` also gives up its history."""

    mode: DropMode


# -- parts of types --------------------------------------------------------------------


class ChangeImplements(PartChange, frozen=True, tag="change_implements"):
    """Other interfaces; ``properties`` are those that stay and come from elsewhere now."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    properties: tuple[str, ...]


class Ends(Document, frozen=True):
    """The types an edge connects."""

    from_type: str
    to_type: str


class ChangeEndpoints(PartChange, frozen=True, tag="change_endpoints"):
    """Other ends of an edge type."""

    former: Ends = msgspec.field(name="from")
    ends: Ends = msgspec.field(name="to")


class ChangeCardinality(PartChange, frozen=True, tag="change_cardinality"):
    """Another number of edges per source."""

    former: Cardinality = msgspec.field(name="from")
    cardinality: Cardinality = msgspec.field(name="to")


class ConstraintForm(Document, frozen=True, omit_defaults=True):
    """A constraint in the form that the shape gives it: one of these and no more.

    A rule of the shape knows its form by its class, which JSON does not have.
    """

    key: tuple[str, ...] | None = msgspec.field(default=None, name="Key")
    unique: tuple[str, ...] | None = msgspec.field(default=None, name="Unique")
    index: tuple[str, ...] | None = msgspec.field(default=None, name="Index")
    range: Range | None = msgspec.field(default=None, name="Range")
    check: Check | None = msgspec.field(default=None, name="Check")

    @classmethod
    def of(cls, rule: Rule) -> ConstraintForm:
        """The form of a rule."""
        return msgspec.convert(rule.to_json(), cls)

    @property
    def rule(self) -> Rule:
        """The rule again."""
        if self.range is not None:
            return RangeRule(self.range)
        if self.check is not None:
            return CheckRule(self.check)
        members = {"key": self.key, "unique": self.unique, "index": self.index}
        return next(
            MEMBER_RULES[kind](found) for kind, found in members.items() if found is not None
        )


class ConstraintChange(PartChange, frozen=True):
    """A step about a constraint."""

    constraint: ConstraintForm

    @property
    def entity(self) -> str:
        """The property it is about, or the type if it is about several."""
        members = _members(self.constraint.rule)
        only = members[0] if len(members) == 1 else None
        return entity_of(self.type_kind, self.type_name, only)


class AddConstraint(ConstraintChange, frozen=True, tag="add_constraint"):
    """A new constraint, or new index intent."""


class RemoveConstraint(ConstraintChange, frozen=True, tag="remove_constraint"):
    """A constraint or an index that is no longer asked for."""


class ChangeAnnotation(PartChange, frozen=True, tag="change_annotation"):
    """Another annotation of a type, or of a property if one is named."""

    annotation: str
    property_name: str | None = None
    former: tuple[Note, ...] = msgspec.field(default=(), name="from")
    notes: tuple[Note, ...] = msgspec.field(default=(), name="to")

    @property
    def entity(self) -> str:
        """What the annotation stands on."""
        return entity_of(self.type_kind, self.type_name, self.property_name)


# -- properties ------------------------------------------------------------------------


class AddProperty(PropertyChange, frozen=True, tag="add_property"):
    """A new property, filled with its default or null."""

    property_type: PropertyType


class RenameProperty(PartChange, frozen=True, tag="rename_property"):
    """A property under a new name."""

    former: str = msgspec.field(name="from")
    name: str = msgspec.field(name="to")

    @property
    def entity(self) -> str:
        """The property."""
        return entity_of(self.type_kind, self.type_name, self.name)


class ExtendEnum(PropertyChange, frozen=True, tag="extend_enum"):
    """More values for an enum."""

    added_values: tuple[str, ...]


class ChangePropertyType(PropertyChange, frozen=True, tag="change_property_type"):
    """Another type; whether it may be null is a step of its own."""

    former: PropertyType = msgspec.field(name="from")
    property_type: PropertyType = msgspec.field(name="to")


class ChangeNullability(PropertyChange, frozen=True, tag="change_nullability"):
    """Nullable from here on, or no longer; then nulls become ``fill`` if there is one."""

    nullable: bool
    fill: Value | None = None


class ChangeEmbed(PropertyChange, frozen=True, tag="change_embed"):
    """Another source or model of an `@embed` vector; ``note`` says what becomes of vectors."""

    former: EmbedShape | None = msgspec.field(name="from")
    embed: EmbedShape | None = msgspec.field(name="to")
    note: str | None = None


class UpdatePropertyMetadata(PropertyChange, frozen=True, tag="update_property_metadata"):
    """Another description of a property."""

    annotations: tuple[Note, ...]


class DropProperty(PropertyChange, frozen=True, tag="drop_property"):
    """A property that goes; ``hard`` also gives up its history."""

    mode: DropMode


# -- what cannot be done ---------------------------------------------------------------


class UnsupportedChange(
    Document, frozen=True, tag_field="kind", tag="unsupported_change", omit_defaults=True
):
    """A change nobody can apply; it refuses the whole plan."""

    entity: str
    reason: str
    code: str | None = None


AppliedStep = (
    AddType
    | RenameType
    | UpdateTypeMetadata
    | DropType
    | ChangeImplements
    | ChangeEndpoints
    | ChangeCardinality
    | AddConstraint
    | RemoveConstraint
    | ChangeAnnotation
    | AddProperty
    | RenameProperty
    | ExtendEnum
    | ChangePropertyType
    | ChangeNullability
    | ChangeEmbed
    | UpdatePropertyMetadata
    | DropProperty
)
Step = AppliedStep | UnsupportedChange


def steps_from_json(plain: Any) -> tuple[Step, ...]:
    """The steps that somebody has noted as plain data."""
    found: tuple[Step, ...] = msgspec.convert(plain, tuple[Step, ...])
    return found


def entity_of(kind: TypeKind, type_name: str, property_name: str | None = None) -> str:
    """How a type or a property is named in a plan."""
    name = f"{kind}:{type_name}"
    return name if property_name is None else f"{name}.{property_name}"


def _members(rule: Rule) -> tuple[str, ...]:
    if isinstance(rule, RangeRule):
        return (rule.range.property,)
    return (rule.check.property,) if isinstance(rule, CheckRule) else rule.members
