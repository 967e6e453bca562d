"""The schema IR: the shape with identity, as it is stored and hashed.

Owns version 2 of the document and its exact JSON. Names in references are for
readers; the ids decide. A stored IR whose parts do not fit together is refused and never
repaired. Never resolves identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import ClassVar, Literal, NoReturn

import msgspec

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import (
    EXPECTED_SCALAR,
    MAX_ID,
    Bound,
    Cardinality,
    Document,
    Identity,
    Note,
    PropertyConstraint,
    PropertyType,
    Text,
    check_notes,
    misfit,
    read_document,
)
from omnigraph.lang.types import ValueType

IR_VERSION: Literal[2] = 2

Role = Literal["id", "src", "dst"]
TypeKind = Literal["interface", "node", "edge"]

_DOCUMENT = "schema IR"
_CHOICES = {
    "ir_version": f"expected version {IR_VERSION}",
    "scalar": EXPECTED_SCALAR,
    "role": "expected one of id, src, dst",
}
_Columns = set[tuple[int, str, int, str]]
_DOMAIN_LETTERS = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


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
        """The column's name, which no property can have."""
        return f"@{self.role}"


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
        yield from self.tables()

    def tables(self) -> Iterator[IRNode | IREdge]:
        """Every type that has rows: nodes, then edges."""
        yield from self.nodes
        yield from self.edges

    @cached_property
    def schema_ir_hash(self) -> str:
        """The identity of this version of the schema."""
        return self.digest()


def ir_from_json(text: str | bytes) -> SchemaIR:
    """The IR a stored text holds; SchemaError says what is wrong with any other text."""
    ir = read_document(text, SchemaIR, _DOCUMENT, _CHOICES)
    validate_ir(ir)
    return ir


def is_domain(text: str) -> bool:
    """Whether a text is a canonical upper-case ULID."""
    # 26 letters of 5 bits are two bits too many for a ULID, so the first is at most 7.
    return len(text) == 26 and text[0] <= "7" and _DOMAIN_LETTERS.issuperset(text)


def validate_ir(ir: SchemaIR) -> None:
    """Refuse an IR whose ids, names or references contradict each other."""
    if not is_domain(ir.schema_identity_domain):
        _fail(f"`{ir.schema_identity_domain[:40]}` is no canonical upper-case ULID")
    _check_ids(ir)
    for kind in (ir.interfaces, ir.nodes, ir.edges):
        _check_sorted([found.name for found in kind], "types")
    interfaces = {found.type_id: found for found in ir.interfaces}
    nodes = {found.type_id: found for found in ir.nodes}
    columns = {
        (found.type_id, found.name, p.property_id, p.name)
        for found in ir.types()
        for p in found.properties
    }
    for found in ir.types():
        _check_sorted([p.name for p in found.properties], f"properties of {found.name}")
        for property_ in found.properties:
            _check_property(property_, found, interfaces, columns)
    for node in ir.nodes:
        for implemented in node.implements:
            _check_type_ref(implemented, interfaces.get(implemented.type_id), node)
        _check_fields(node, columns)
    for edge in ir.edges:
        for endpoint in (edge.from_type, edge.to_type):
            end = nodes.get(endpoint.type_id) or interfaces.get(endpoint.type_id)
            _check_type_ref(endpoint, end, edge)
        _check_fields(edge, columns)


def _fail(problem: str) -> NoReturn:
    raise SchemaError(f"invalid {_DOCUMENT}: {problem}")


def _check_ids(ir: SchemaIR) -> None:
    ids: list[int] = []
    for found in ir.types():
        ids.append(found.type_id)
        ids += [property_.property_id for property_ in found.properties]
        if not isinstance(found, IRInterface):
            ids.append(found.table_incarnation_id)
    if len(set(ids)) < len(ids):
        _fail("one identity is used twice")
    if ids and max(ids) >= ir.next_identity_id:
        _fail(f"next_identity_id {ir.next_identity_id} is already in use")


def _check_sorted(names: list[str], what: str) -> None:
    if names != sorted(set(names)):
        _fail(f"the {what} must be sorted by name and distinct")


def _check_type_ref(ref: TypeRef, found: IRType | None, owner: IRType) -> None:
    if found is None or found.name != ref.type_name:
        _fail(f"{owner.kind} {owner.name} refers to {ref.type_name}, which is not there")


def _check_property(
    property_: IRProperty, owner: IRType, interfaces: Mapping[int, IRInterface], columns: _Columns
) -> None:
    for ref in property_.satisfies:
        if ref.owner_type_id not in interfaces:
            _fail(f"{owner.name}.{property_.name} satisfies no interface {ref.owner_type_name}")
        _check_property_ref(ref, owner, columns)
    if property_.embed_source is not None:
        source = property_.embed_source.source
        if source.owner_type_id != owner.type_id:
            _fail(f"{owner.name}.{property_.name} is embedded from another type")
        _check_property_ref(source, owner, columns)


def _check_property_ref(ref: PropertyRef, owner: IRType, columns: _Columns) -> None:
    if (ref.owner_type_id, ref.owner_type_name, ref.property_id, ref.property_name) not in columns:
        target = f"{ref.owner_type_name}.{ref.property_name}"
        _fail(f"{owner.kind} {owner.name} refers to {target}, which is not there")


def _check_fields(table: IRNode | IREdge, columns: _Columns) -> None:
    for constraint in table.constraints:
        roles = {field.role for field in constraint.fields if isinstance(field, SystemField)}
        if constraint.kind == "key" and roles != (
            {"src", "dst"} if table.kind == "edge" else set()
        ):
            _fail(f"the key of {table.kind} {table.name} does not name the right columns")
        for field in constraint.fields:
            if isinstance(field, PropertyRef):
                if field.owner_type_id != table.type_id:
                    _fail(f"{table.kind} {table.name} constrains a property of another type")
                _check_property_ref(field, table, columns)
            else:
                _check_system_ref(field, table)


def _check_system_ref(field: SystemField, table: IRNode | IREdge) -> None:
    own = (table.type_id, table.name, table.table_incarnation_id)
    if (field.stable_table_id, field.table_type_name, field.table_incarnation_id) != own:
        _fail(f"{table.kind} {table.name} constrains a column of another table")
    if isinstance(table, IRNode) and field.role != "id":
        _fail(f"node {table.name} has no column {field.role}")
