"""From a shape and its ids to the IR.

Owns how names become references. A plain translation: every decision about
identity was made before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    EmbedSource,
    Field,
    IRConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    MemberConstraint,
    PropertyRef,
    RangeConstraint,
    Role,
    SchemaIR,
    SystemRef,
    TypeKind,
    TypeRef,
)
from omnigraph.lang.schema.ir.shape import (
    EdgeShape,
    InterfaceShape,
    MemberRule,
    NodeShape,
    PropertyShape,
    RangeRule,
    Rule,
    Shape,
)

_ROLES: dict[str, Role] = {"src": "src", "dst": "dst"}


@dataclass(frozen=True, slots=True)
class Ids:
    """The identity of everything in a shape, by kind and name."""

    types: Mapping[tuple[TypeKind, str], int]
    properties: Mapping[tuple[TypeKind, str, str], int]
    incarnations: Mapping[tuple[TypeKind, str], int]

    def type_ref(self, kind: TypeKind, name: str) -> TypeRef:
        """A reference to a type."""
        return TypeRef(self.types[kind, name], name)

    def property_ref(self, kind: TypeKind, owner: str, name: str) -> PropertyRef:
        """A reference to a property."""
        return PropertyRef(self.types[kind, owner], owner, self.properties[kind, owner, name], name)


def identified(shape: Shape, ids: Ids, *, domain: str, following: int) -> SchemaIR:
    """The IR of a shape."""
    return SchemaIR(
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
        shape.notes,
        tuple(sorted(refs, key=lambda ref: ref.type_id)),
        tuple(_property(found, "node", shape.name, ids) for found in shape.properties),
        tuple(_constraint(rule, "node", shape.name, ids) for rule in shape.rules),
    )


def _edge(shape: EdgeShape, ids: Ids) -> IREdge:
    return IREdge(
        shape.name,
        ids.types["edge", shape.name],
        ids.incarnations["edge", shape.name],
        ids.type_ref("node", shape.source),
        ids.type_ref("node", shape.target),
        shape.minimum,
        shape.maximum,
        shape.notes,
        tuple(_property(found, "edge", shape.name, ids) for found in shape.properties),
        tuple(_constraint(rule, "edge", shape.name, ids) for rule in shape.rules),
    )


def _property(shape: PropertyShape, kind: TypeKind, owner: str, ids: Ids) -> IRProperty:
    satisfied = (ids.property_ref("interface", name, shape.name) for name in shape.satisfies)
    embed = None
    # An interface may embed from a property that only its nodes have: then each node's
    # own copy carries the reference, and the interface has nothing to point at.
    if shape.embed is not None and (kind, owner, shape.embed.source) in ids.properties:
        embed = EmbedSource(ids.property_ref(kind, owner, shape.embed.source), shape.embed.model)
    return IRProperty(
        shape.name,
        ids.properties[kind, owner, shape.name],
        shape.type,
        shape.notes,
        shape.constraints,
        embed,
        shape.direct,
        tuple(sorted(satisfied, key=lambda ref: ref.owner_type_id)),
    )


def _constraint(rule: Rule, kind: TypeKind, owner: str, ids: Ids) -> IRConstraint:
    if isinstance(rule, MemberRule):
        fields = tuple(_field(name, kind, owner, ids) for name in rule.members)
        return MemberConstraint(rule.kind, fields)
    field = _field(rule.member, kind, owner, ids)
    if isinstance(rule, RangeRule):
        return RangeConstraint(field, rule.minimum, rule.maximum)
    return CheckConstraint(field, rule.pattern)


def _field(name: str, kind: TypeKind, owner: str, ids: Ids) -> Field:
    if kind == "edge" and name in _ROLES:
        table = ids.types[kind, owner]
        return SystemRef(table, owner, ids.incarnations[kind, owner], _ROLES[name])
    return ids.property_ref(kind, owner, name)
