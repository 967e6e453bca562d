"""Reading a stored IR back, strictly.

Owns the refusal of documents that are not exactly version 2, or whose ids,
names and references do not fit together. Never repairs anything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn, cast

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import MAX_ID, Value, read_document
from omnigraph.lang.schema.ir.encoding import (
    PROPERTY_CONSTRAINTS,
    Bound,
    Note,
    PropertyConstraint,
    sorted_notes,
)
from omnigraph.lang.schema.ir.ir import (
    IR_VERSION,
    CheckConstraint,
    EmbedSource,
    Field,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    MemberConstraint,
    PropertyRef,
    RangeConstraint,
    Role,
    SchemaIR,
    SystemRef,
    TypeRef,
)
from omnigraph.lang.schema.syntax.pieces import MAX_CARDINALITY
from omnigraph.lang.types import BASE_NAMES, MAX_VECTOR_DIMENSION, Scalar, ValueType

_DOCUMENT = "schema IR"
_Columns = set[tuple[int, str, int, str]]
_DOMAIN_LETTERS = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


def ir_from_json(text: str | bytes) -> SchemaIR:
    """The IR a stored text holds; SchemaError says what is wrong with any other text."""
    version, domain, following, interfaces, nodes, edges = read_document(text, _DOCUMENT).fields(
        "ir_version",
        "schema_identity_domain",
        "next_identity_id",
        "interfaces",
        "nodes",
        "edges",
    )
    if version.raw != IR_VERSION or isinstance(version.raw, bool):
        version.fail(f"expected version {IR_VERSION}")
    ir = SchemaIR(
        domain.string(),
        following.identity(),
        tuple(map(_interface, interfaces.items())),
        tuple(map(_node, nodes.items())),
        tuple(map(_edge, edges.items())),
    )
    validate_ir(ir)
    return ir


def is_domain(text: str) -> bool:
    """Whether a text is a canonical upper-case ULID."""
    # 26 letters of 5 bits are two bits too many for a ULID, so the first is at most 7.
    return len(text) == 26 and text[0] <= "7" and _DOMAIN_LETTERS.issuperset(text)


# -- reading ------------------------------------------------------------------------


def _interface(value: Value) -> IRInterface:
    name, type_id, properties = value.fields("name", "type_id", "properties")
    return IRInterface(name.string(), type_id.identity(), tuple(map(_property, properties.items())))


def _node(value: Value) -> IRNode:
    name, type_id, incarnation, annotations, implements, properties, constraints = value.fields(
        "name",
        "type_id",
        "table_incarnation_id",
        "annotations",
        "implements",
        "properties",
        "constraints",
    )
    return IRNode(
        name.string(),
        type_id.identity(),
        incarnation.identity(),
        _notes(annotations),
        tuple(map(_type_ref, implements.items())),
        tuple(map(_property, properties.items())),
        tuple(map(_constraint, constraints.items())),
    )


def _edge(value: Value) -> IREdge:
    (name, type_id, incarnation, source, target, card, annotations, properties, constraints) = (
        value.fields(
            "name",
            "type_id",
            "table_incarnation_id",
            "from_type",
            "to_type",
            "cardinality",
            "annotations",
            "properties",
            "constraints",
        )
    )
    low, high = card.fields("min", "max")
    return IREdge(
        name.string(),
        type_id.identity(),
        incarnation.identity(),
        _type_ref(source),
        _type_ref(target),
        low.integer(0, MAX_CARDINALITY),
        None if high.is_null() else high.integer(0, MAX_CARDINALITY),
        _notes(annotations),
        tuple(map(_property, properties.items())),
        tuple(map(_constraint, constraints.items())),
    )


def _property(value: Value) -> IRProperty:
    name, property_id, type_, annotations, constraints, embed, direct, satisfies = value.fields(
        "name",
        "property_id",
        "prop_type",
        "annotations",
        "property_constraints",
        "embed_source",
        "declared_directly",
        "satisfies_interface_properties",
    )
    return IRProperty(
        name.string(),
        property_id.identity(),
        _type(type_),
        _notes(annotations),
        tuple(_property_constraint(item) for item in constraints.items()),
        None if embed.is_null() else _embed(embed),
        direct.boolean(),
        tuple(map(_property_ref, satisfies.items())),
    )


def _property_constraint(value: Value) -> PropertyConstraint:
    return cast("PropertyConstraint", value.one_of(*PROPERTY_CONSTRAINTS))


def _embed(value: Value) -> EmbedSource:
    source, model = value.fields("source", "model")
    return EmbedSource(_property_ref(source), model.optional_string())


def _type(value: Value) -> ValueType:
    scalar, nullable, is_list, enum_values = value.fields(
        "scalar", "nullable", "list", "enum_values"
    )
    dimension = None
    if scalar.has("Vector"):
        (size,) = scalar.fields("Vector")
        dimension = size.integer(1, MAX_VECTOR_DIMENSION)
        base = Scalar.VECTOR
    else:
        base = Scalar(scalar.one_of(*BASE_NAMES))
    values = None
    if not enum_values.is_null():
        values = tuple(item.string() for item in enum_values.items())
        if not values or list(values) != sorted(set(values)):
            enum_values.fail("enum values must be sorted, distinct and at least one")
        if base is not Scalar.STRING or is_list.boolean():
            enum_values.fail("only a String has enum values")
    found = ValueType(base, nullable.boolean(), is_list.boolean(), dimension, values)
    if found.is_list and (found.is_vector or found.is_blob):
        is_list.fail(f"there are no lists of {base.value}")
    return found


def _notes(value: Value) -> tuple[Note, ...]:
    notes = []
    for item in value.items():
        name, text, options = item.fields("name", "value", optional=("kwargs",))
        pairs: list[tuple[str, str]] = []
        if not options.is_null():
            keys = options.raw if isinstance(options.raw, dict) else options.fail("not an object")
            pairs = [(key, options.get(key).string()) for key in keys]
        notes.append(Note(name.string(), text.optional_string(), tuple(sorted(pairs))))
    if tuple(notes) != sorted_notes(notes):
        value.fail("annotations must be sorted and distinct")
    return tuple(notes)


def _type_ref(value: Value) -> TypeRef:
    type_id, name = value.fields("type_id", "type_name")
    return TypeRef(type_id.identity(), name.string())


_PROPERTY_REF = ("owner_type_id", "owner_type_name", "property_id", "property_name")


def _property_ref(value: Value) -> PropertyRef:
    return _property_ref_of(value.fields(*_PROPERTY_REF))


def _property_ref_of(fields: tuple[Value, ...]) -> PropertyRef:
    owner_id, owner, property_id, name = fields
    return PropertyRef(owner_id.identity(), owner.string(), property_id.identity(), name.string())


def _field(value: Value) -> Field:
    kind = value.get("kind").one_of("property", "system")
    if kind == "property":
        return _property_ref_of(value.fields("kind", *_PROPERTY_REF)[1:])
    _, table, name, incarnation, role = value.fields(
        "kind", "stable_table_id", "table_type_name", "table_incarnation_id", "role"
    )
    return SystemRef(
        table.identity(),
        name.string(),
        incarnation.identity(),
        cast("Role", role.one_of("id", "src", "dst")),
    )


def _constraint(value: Value) -> IRConstraint:
    kind = value.get("kind").one_of(*PROPERTY_CONSTRAINTS, "range", "check")
    if kind == "range":
        _, field, low, high = value.fields("kind", "field", "min", "max")
        return RangeConstraint(_field(field), _bound(low), _bound(high))
    if kind == "check":
        _, field, pattern = value.fields("kind", "field", "pattern")
        return CheckConstraint(_field(field), pattern.string())
    _, fields = value.fields("kind", "fields")
    members = tuple(map(_field, fields.items()))
    if not members:
        fields.fail("a constraint has at least one field")
    return MemberConstraint(cast("PropertyConstraint", kind), members)


def _bound(value: Value) -> Bound:
    if value.is_null():
        return None
    if value.has("Integer"):
        return value.fields("Integer")[0].integer(-(2**63), MAX_ID)
    (number,) = value.fields("Float")
    if isinstance(number.raw, bool) or not isinstance(number.raw, (int, float)):
        number.fail("expected a number")
    if not abs(number.raw) <= sys.float_info.max:
        number.fail("expected a finite number")
    return float(number.raw)


# -- validation ---------------------------------------------------------------------


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
            _check_type_ref(endpoint, nodes.get(endpoint.type_id), edge)
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
    if not 1 <= ir.next_identity_id <= MAX_ID or any(identity < 1 for identity in ids):
        _fail("an identity is never zero")
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
        for field in constraint.fields:
            if isinstance(field, PropertyRef):
                if field.owner_type_id != table.type_id:
                    _fail(f"{table.kind} {table.name} constrains a property of another type")
                _check_property_ref(field, table, columns)
            else:
                _check_system_ref(field, table)


def _check_system_ref(field: SystemRef, table: IRNode | IREdge) -> None:
    own = (table.type_id, table.name, table.table_incarnation_id)
    if (field.stable_table_id, field.table_type_name, field.table_incarnation_id) != own:
        _fail(f"{table.kind} {table.name} constrains a column of another table")
    if isinstance(table, IRNode) and field.role != "id":
        _fail(f"node {table.name} has no column {field.role}")
