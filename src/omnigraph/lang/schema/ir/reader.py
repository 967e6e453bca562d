"""Reading a stored IR back, strictly.

Owns the refusal of documents that are not exactly version 2, or whose ids,
names and references do not fit together. Never repairs anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import read_document
from omnigraph.lang.schema.ir.encoding import EXPECTED_SCALAR
from omnigraph.lang.schema.ir.ir import (
    IR_VERSION,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    PropertyRef,
    SchemaIR,
    SystemField,
    TypeRef,
)

_DOCUMENT = "schema IR"
_CHOICES = {
    "ir_version": f"expected version {IR_VERSION}",
    "scalar": EXPECTED_SCALAR,
    "role": "expected one of id, src, dst",
}
_Columns = set[tuple[int, str, int, str]]
_DOMAIN_LETTERS = frozenset("0123456789ABCDEFGHJKMNPQRSTVWXYZ")


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


def _check_system_ref(field: SystemField, table: IRNode | IREdge) -> None:
    own = (table.type_id, table.name, table.table_incarnation_id)
    if (field.stable_table_id, field.table_type_name, field.table_incarnation_id) != own:
        _fail(f"{table.kind} {table.name} constrains a column of another table")
    if isinstance(table, IRNode) and field.role != "id":
        _fail(f"node {table.name} has no column {field.role}")
