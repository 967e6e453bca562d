"""From a shape and its ids to the IR.

Owns how names become references. A plain translation: every decision about
identity was made before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.lang.schema.ir.ir import (
    IR_VERSION,
    CheckConstraint,
    EmbedSource,
    Field,
    IndexConstraint,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    KeyConstraint,
    PropertyField,
    PropertyRef,
    RangeConstraint,
    Role,
    SchemaIR,
    SystemField,
    TypeKind,
    TypeRef,
    UniqueConstraint,
)
from omnigraph.lang.schema.ir.shape import (
    CheckRule,
    EdgeShape,
    IndexRule,
    InterfaceShape,
    KeyRule,
    NodeShape,
    PropertyShape,
    RangeRule,
    Rule,
    Shape,
    UniqueRule,
)

_ROLES: dict[str, Role] = {"src": "src", "dst": "dst", "@src": "src", "@dst": "dst"}


@dataclass(frozen=True, slots=True)
class Ids:
    """The identity of everything in a shape, by kind and name."""

    types: Mapping[tuple[TypeKind, str], int]
    properties: Mapping[tuple[TypeKind, str, str], int]
    incarnations: Mapping[tuple[TypeKind, str], int]

    def type_ref(self, kind: TypeKind, name: str) -> TypeRef:
        """A reference to a type."""
        return TypeRef(self.types[kind, name], name)

    def nodes_ref(self, name: str) -> TypeRef:
        """A reference to a node type, else to an interface."""
        return self.type_ref("node" if ("node", name) in self.types else "interface", name)

    def property_ref(self, kind: TypeKind, owner: str, name: str) -> PropertyRef:
        """A reference to a property."""
        return PropertyRef(self.types[kind, owner], owner, self.properties[kind, owner, name], name)


def identified(shape: Shape, ids: Ids, *, domain: str, following: int) -> SchemaIR:
    """The IR of a shape."""
    return SchemaIR(
        IR_VERSION,
        domain,
        following,
        tuple(_interface(found, ids) for found in shape.interfaces),
        tuple(_node(found, ids) for found in shape.nodes),
        tuple(_edge(found, ids) for found in shape.edges),
    )


def _interface(shape: InterfaceShape, ids: Ids) -> IRInterface:
    return IRInterface(
        shape.name,
        ids.types["interface", shape.name],
        tuple(_property(found, "interface", shape.name, ids) for found in shape.properties),
    )


def _node(shape: NodeShape, ids: Ids) -> IRNode:
    refs = (ids.type_ref("interface", name) for name in shape.implements)
    return IRNode(
        shape.name,
        ids.types["node", shape.name],
        ids.incarnations["node", shape.name],
        shape.annotations,
        tuple(sorted(refs, key=lambda ref: ref.type_id)),
        tuple(_property(found, "node", shape.name, ids) for found in shape.properties),
        tuple(_constraint(rule, "node", shape.name, ids) for rule in shape.constraints),
    )


def _edge(shape: EdgeShape, ids: Ids) -> IREdge:
    return IREdge(
        shape.name,
        ids.types["edge", shape.name],
        ids.incarnations["edge", shape.name],
        ids.nodes_ref(shape.from_type),
        ids.nodes_ref(shape.to_type),
        shape.cardinality,
        shape.annotations,
        tuple(_property(found, "edge", shape.name, ids) for found in shape.properties),
        tuple(_constraint(rule, "edge", shape.name, ids) for rule in shape.constraints),
    )


def _property(shape: PropertyShape, kind: TypeKind, owner: str, ids: Ids) -> IRProperty:
    satisfied = (ids.property_ref("interface", p.owner_name, shape.name) for p in shape.satisfies)
    embed, source = None, shape.embed_source
    # An interface may embed from a property that only its nodes have: then each node's
    # own copy carries the reference, and the interface has nothing to point at.
    if source is not None and (kind, owner, source.property_name) in ids.properties:
        embed = EmbedSource(ids.property_ref(kind, owner, source.property_name), source.model)
    return IRProperty(
        shape.name,
        ids.properties[kind, owner, shape.name],
        shape.prop_type,
        shape.annotations,
        shape.property_constraints,
        embed,
        shape.declared_directly,
        tuple(sorted(satisfied, key=lambda ref: ref.owner_type_id)),
    )


def _constraint(rule: Rule, kind: TypeKind, owner: str, ids: Ids) -> IRConstraint:
    def field(name: str) -> Field:
        return _field(name, kind, owner, ids)

    match rule:
        case KeyRule(members):
            return KeyConstraint(tuple(map(field, members)))
        case UniqueRule(members):
            return UniqueConstraint(tuple(map(field, members)))
        case IndexRule(members):
            return IndexConstraint(tuple(map(field, members)))
        case RangeRule(range_):
            return RangeConstraint(field(range_.property), range_.minimum, range_.maximum)
        case CheckRule(check):
            return CheckConstraint(field(check.property), check.pattern)


def _field(name: str, kind: TypeKind, owner: str, ids: Ids) -> Field:
    table = ids.types[kind, owner]
    known = ids.properties.get((kind, owner, name))
    if known is None:
        return SystemField(table, owner, ids.incarnations[kind, owner], _ROLES[name])
    return PropertyField(table, owner, known, name)
