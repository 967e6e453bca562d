"""The schema IR: the shape with identity, as it is stored and hashed.

Owns version 2 of the document and its exact JSON. Names in references are for
readers; the ids decide. Never resolves identity; whether the parts of a stored IR
fit together is ir_reader.py's question.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, Literal

import msgspec

from omnigraph.lang.schema.ir.document import MAX_ID, Document, Identity, Text, misfit
from omnigraph.lang.schema.ir.encoding import (
    Bound,
    Cardinality,
    Note,
    PropertyConstraint,
    PropertyType,
    check_notes,
)
from omnigraph.lang.types import ValueType

IR_VERSION: Literal[2] = 2

Role = Literal["id", "src", "dst"]
TypeKind = Literal["interface", "node", "edge"]


class TypeRef(Document, frozen=True):
    """A reference to a type."""

    type_id: Identity
    type_name: Text


class PropertyRef(Document, frozen=True):
    """A reference to a property of a type."""

    owner_type_id: Identity
    owner_type_name: Text
    property_id: Identity
    property_name: Text

    @property
    def name(self) -> str:
        """The column's name."""
        return self.property_name


class PropertyField(PropertyRef, frozen=True, tag_field="kind", tag="property"):
    """A property as a member of a constraint."""


class SystemField(Document, frozen=True, tag_field="kind", tag="system"):
    """A structural column of a table as a member of a constraint."""

    stable_table_id: Identity
    table_type_name: Text
    table_incarnation_id: Identity
    role: Role

    @property
    def name(self) -> str:
        """The column's name."""
        return self.role


Field = PropertyField | SystemField


class MemberConstraint(Document, frozen=True, tag_field="kind", tag="members"):
    """A key, a uniqueness or an index."""

    kind: ClassVar[PropertyConstraint]
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if not self.fields:
            raise misfit("fields", "a constraint has at least one field")


class KeyConstraint(MemberConstraint, frozen=True, tag="key"):
    """The members that identify a row."""

    kind = "key"


class UniqueConstraint(MemberConstraint, frozen=True, tag="unique"):
    """Members whose values no two rows share."""

    kind = "unique"


class IndexConstraint(MemberConstraint, frozen=True, tag="index"):
    """Members that are indexed."""

    kind = "index"


class RangeConstraint(Document, frozen=True, tag_field="kind", tag="range"):
    """Bounds of a number."""

    kind: ClassVar = "range"
    field: Field
    minimum: Bound | None = msgspec.field(name="min")
    maximum: Bound | None = msgspec.field(name="max")

    @property
    def fields(self) -> tuple[Field, ...]:
        """What it is about."""
        return (self.field,)


class CheckConstraint(Document, frozen=True, tag_field="kind", tag="check"):
    """A pattern a text must contain."""

    kind: ClassVar = "check"
    field: Field
    pattern: Text

    @property
    def fields(self) -> tuple[Field, ...]:
        """What it is about."""
        return (self.field,)


IRConstraint = (
    KeyConstraint | UniqueConstraint | IndexConstraint | RangeConstraint | CheckConstraint
)


class EmbedSource(Document, frozen=True):
    """What an `@embed` vector is computed from."""

    source: PropertyRef
    model: Text | None


class IRProperty(Document, frozen=True):
    """One property of a type."""

    name: Text
    property_id: Identity
    prop_type: PropertyType
    annotations: tuple[Note, ...]
    property_constraints: tuple[PropertyConstraint, ...]
    embed_source: EmbedSource | None
    declared_directly: bool
    satisfies: tuple[PropertyRef, ...] = msgspec.field(name="satisfies_interface_properties")

    def __post_init__(self) -> None:
        check_notes(self.annotations)

    @property
    def type(self) -> ValueType:
        """Its type."""
        return self.prop_type.value_type


class IRInterface(Document, frozen=True):
    """One interface."""

    kind: ClassVar[TypeKind] = "interface"
    name: Text
    type_id: Identity
    properties: tuple[IRProperty, ...]


class IRNode(Document, frozen=True):
    """One node type."""

    kind: ClassVar[TypeKind] = "node"
    name: Text
    type_id: Identity
    table_incarnation_id: Identity
    annotations: tuple[Note, ...]
    implements: tuple[TypeRef, ...]
    properties: tuple[IRProperty, ...]
    constraints: tuple[IRConstraint, ...]

    def __post_init__(self) -> None:
        check_notes(self.annotations)


class IREdge(Document, frozen=True):
    """One edge type."""

    kind: ClassVar[TypeKind] = "edge"
    name: Text
    type_id: Identity
    table_incarnation_id: Identity
    from_type: TypeRef
    to_type: TypeRef
    cardinality: Cardinality
    annotations: tuple[Note, ...]
    properties: tuple[IRProperty, ...]
    constraints: tuple[IRConstraint, ...]

    def __post_init__(self) -> None:
        check_notes(self.annotations)


IRType = IRInterface | IRNode | IREdge


class SchemaIR(Document, frozen=True, dict=True):
    """A whole schema with identity; everything sorted by name."""

    ir_version: Literal[2]
    schema_identity_domain: Text
    next_identity_id: Identity
    interfaces: tuple[IRInterface, ...]
    nodes: tuple[IRNode, ...]
    edges: tuple[IREdge, ...]

    def __post_init__(self) -> None:
        if self.next_identity_id > MAX_ID:
            raise misfit("next_identity_id", f"{self.next_identity_id} is out of range")

    def types(self) -> Iterator[IRType]:
        """Every type: interfaces, then nodes, then edges."""
        yield from self.interfaces
        yield from self.nodes
        yield from self.edges

    @cached_property
    def schema_ir_hash(self) -> str:
        """The identity of this version of the schema."""
        return self.digest()
