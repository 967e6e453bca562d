"""The schema IR: the shape with identity, as it is stored and hashed.

Owns version 2 of the document and its exact JSON. Names in references are for
readers; the ids decide. Never resolves identity and never reads (ir_reader.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from omnigraph.lang.schema.ir.encoding import (
    Bound,
    Json,
    Note,
    PropertyConstraint,
    bound_to_json,
    digest,
    pretty,
    type_to_json,
)
from omnigraph.lang.types import ValueType

IR_VERSION = 2

Role = Literal["id", "src", "dst"]
TypeKind = Literal["interface", "node", "edge"]


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A reference to a type."""

    type_id: int
    type_name: str

    def to_json(self) -> Json:
        """Id and name."""
        return {"type_id": self.type_id, "type_name": self.type_name}


@dataclass(frozen=True, slots=True)
class PropertyRef:
    """A reference to a property of a type."""

    owner_type_id: int
    owner_type_name: str
    property_id: int
    property_name: str

    @property
    def name(self) -> str:
        """The column's name."""
        return self.property_name

    def to_json(self) -> Json:
        """Owner and property, each with id and name."""
        return {
            "owner_type_id": self.owner_type_id,
            "owner_type_name": self.owner_type_name,
            "property_id": self.property_id,
            "property_name": self.property_name,
        }


@dataclass(frozen=True, slots=True)
class SystemRef:
    """A reference to a structural column of a table."""

    stable_table_id: int
    table_type_name: str
    table_incarnation_id: int
    role: Role

    @property
    def name(self) -> str:
        """The column's name."""
        return self.role

    def to_json(self) -> Json:
        """The table and the role of the column in it."""
        return {
            "stable_table_id": self.stable_table_id,
            "table_type_name": self.table_type_name,
            "table_incarnation_id": self.table_incarnation_id,
            "role": self.role,
        }


Field = PropertyRef | SystemRef


def _field_to_json(field: Field) -> Json:
    kind = "property" if isinstance(field, PropertyRef) else "system"
    return {"kind": kind, **field.to_json()}


@dataclass(frozen=True, slots=True)
class MemberConstraint:
    """A key, a uniqueness or an index."""

    kind: PropertyConstraint
    fields: tuple[Field, ...]

    def to_json(self) -> Json:
        """Kind and fields."""
        return {"kind": self.kind, "fields": [_field_to_json(field) for field in self.fields]}


@dataclass(frozen=True, slots=True)
class RangeConstraint:
    """Bounds of a number."""

    field: Field
    minimum: Bound
    maximum: Bound

    @property
    def fields(self) -> tuple[Field, ...]:
        """What it is about."""
        return (self.field,)

    def to_json(self) -> Json:
        """Kind, field and bounds."""
        return {
            "kind": "range",
            "field": _field_to_json(self.field),
            "min": bound_to_json(self.minimum),
            "max": bound_to_json(self.maximum),
        }


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """A pattern a text must contain."""

    field: Field
    pattern: str

    @property
    def fields(self) -> tuple[Field, ...]:
        """What it is about."""
        return (self.field,)

    def to_json(self) -> Json:
        """Kind, field and pattern."""
        return {"kind": "check", "field": _field_to_json(self.field), "pattern": self.pattern}


IRConstraint = MemberConstraint | RangeConstraint | CheckConstraint


@dataclass(frozen=True, slots=True)
class EmbedSource:
    """What an `@embed` vector is computed from."""

    source: PropertyRef
    model: str | None

    def to_json(self) -> Json:
        """Source and model."""
        return {"source": self.source.to_json(), "model": self.model}


@dataclass(frozen=True, slots=True)
class IRProperty:
    """One property of a type."""

    name: str
    property_id: int
    type: ValueType
    annotations: tuple[Note, ...] = ()
    property_constraints: tuple[PropertyConstraint, ...] = ()
    embed_source: EmbedSource | None = None
    declared_directly: bool = True
    satisfies: tuple[PropertyRef, ...] = ()

    def to_json(self) -> Json:
        """The property."""
        return {
            "name": self.name,
            "property_id": self.property_id,
            "prop_type": type_to_json(self.type),
            "annotations": [note.to_json() for note in self.annotations],
            "property_constraints": list(self.property_constraints),
            "embed_source": None if self.embed_source is None else self.embed_source.to_json(),
            "declared_directly": self.declared_directly,
            "satisfies_interface_properties": [found.to_json() for found in self.satisfies],
        }


@dataclass(frozen=True, slots=True)
class IRInterface:
    """One interface."""

    name: str
    type_id: int
    properties: tuple[IRProperty, ...] = ()

    @property
    def kind(self) -> TypeKind:
        """Always "interface"."""
        return "interface"

    def to_json(self) -> Json:
        """The interface."""
        return {
            "name": self.name,
            "type_id": self.type_id,
            "properties": [p.to_json() for p in self.properties],
        }


@dataclass(frozen=True, slots=True)
class IRNode:
    """One node type."""

    name: str
    type_id: int
    table_incarnation_id: int
    annotations: tuple[Note, ...] = ()
    implements: tuple[TypeRef, ...] = ()
    properties: tuple[IRProperty, ...] = ()
    constraints: tuple[IRConstraint, ...] = ()

    @property
    def kind(self) -> TypeKind:
        """Always "node"."""
        return "node"

    def to_json(self) -> Json:
        """The node type."""
        return {
            "name": self.name,
            "type_id": self.type_id,
            "table_incarnation_id": self.table_incarnation_id,
            "annotations": [note.to_json() for note in self.annotations],
            "implements": [found.to_json() for found in self.implements],
            "properties": [p.to_json() for p in self.properties],
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }


@dataclass(frozen=True, slots=True)
class IREdge:
    """One edge type."""

    name: str
    type_id: int
    table_incarnation_id: int
    from_type: TypeRef
    to_type: TypeRef
    min_out: int = 0
    max_out: int | None = None
    annotations: tuple[Note, ...] = ()
    properties: tuple[IRProperty, ...] = ()
    constraints: tuple[IRConstraint, ...] = ()

    @property
    def kind(self) -> TypeKind:
        """Always "edge"."""
        return "edge"

    def to_json(self) -> Json:
        """The edge type."""
        return {
            "name": self.name,
            "type_id": self.type_id,
            "table_incarnation_id": self.table_incarnation_id,
            "from_type": self.from_type.to_json(),
            "to_type": self.to_type.to_json(),
            "cardinality": {"min": self.min_out, "max": self.max_out},
            "annotations": [note.to_json() for note in self.annotations],
            "properties": [p.to_json() for p in self.properties],
            "constraints": [constraint.to_json() for constraint in self.constraints],
        }


IRType = IRInterface | IRNode | IREdge


@dataclass(frozen=True)
class SchemaIR:
    """A whole schema with identity; everything sorted by name."""

    schema_identity_domain: str
    next_identity_id: int
    interfaces: tuple[IRInterface, ...] = ()
    nodes: tuple[IRNode, ...] = ()
    edges: tuple[IREdge, ...] = ()

    def types(self) -> Iterator[IRType]:
        """Every type: interfaces, then nodes, then edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges

    def to_json(self) -> Json:
        """The document that is stored and hashed."""
        return {
            "ir_version": IR_VERSION,
            "schema_identity_domain": self.schema_identity_domain,
            "next_identity_id": self.next_identity_id,
            "interfaces": [interface.to_json() for interface in self.interfaces],
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
        }

    @cached_property
    def schema_ir_hash(self) -> str:
        """The identity of this version of the schema."""
        return digest(self.to_json())

    def render(self) -> str:
        """The text of `_schema.ir.json`."""
        return pretty(self.to_json())
