"""The shape: what a schema means, before anything in it has an identity.

Owns the canonical order, the injection of interface properties and the shape
hash. Two sources that differ in comments, order or rename hints have one shape.
Never sees an id.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar

import msgspec

from omnigraph.lang.schema.check.constraints import bound_value
from omnigraph.lang.schema.check.effective import (
    Effective,
    annotation_named,
    declared,
    effective_properties,
)
from omnigraph.lang.schema.ir.document import (
    PROPERTY_CONSTRAINTS,
    Bound,
    Cardinality,
    Document,
    Note,
    PropertyConstraint,
    PropertyType,
    bound,
    property_type,
    sorted_notes,
)
from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Argument,
    Bounds,
    Constraint,
    Edge,
    Interface,
    Node,
    Property,
    Schema,
    constraints_of,
    properties_of,
)
from omnigraph.lang.structural import spelling

_NOT_KEPT = frozenset({"rename_from", "embed", *PROPERTY_CONSTRAINTS})
"""Annotations that have a place of their own in the shape, or none at all."""


class MemberRule(Document, frozen=True):
    """A key, a uniqueness or an index over members, sorted by name."""

    kind: ClassVar[PropertyConstraint]
    members: tuple[str, ...]

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        return f"{self.kind}:{','.join(self.members)}"


class KeyRule(MemberRule, frozen=True):
    """The members that identify a row."""

    kind = "key"
    members: tuple[str, ...] = msgspec.field(name="Key")


class UniqueRule(MemberRule, frozen=True):
    """Members whose values no two rows share."""

    kind = "unique"
    members: tuple[str, ...] = msgspec.field(name="Unique")


class IndexRule(MemberRule, frozen=True):
    """Members that are indexed."""

    kind = "index"
    members: tuple[str, ...] = msgspec.field(name="Index")


class Range(Document, frozen=True):
    """A property and its bounds."""

    property: str
    minimum: Bound | None = msgspec.field(name="min")
    maximum: Bound | None = msgspec.field(name="max")


class RangeRule(Document, frozen=True):
    """Bounds of a number."""

    range: Range = msgspec.field(name="Range")

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        ends = (self.range.minimum, self.range.maximum)
        low, high = ("" if end is None else repr(end.value) for end in ends)
        return f"range:{self.range.property}:{low}..{high}"


class Check(Document, frozen=True):
    """A property and its pattern."""

    property: str
    pattern: str


class CheckRule(Document, frozen=True):
    """A pattern a text must contain."""

    check: Check = msgspec.field(name="Check")

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        return f"check:{self.check.property}:{self.check.pattern}"


Rule = KeyRule | UniqueRule | IndexRule | RangeRule | CheckRule
MEMBER_RULES: dict[str, type[KeyRule | UniqueRule | IndexRule]] = {
    "key": KeyRule,
    "unique": UniqueRule,
    "index": IndexRule,
}
"""The rules over members, by kind."""


class EmbedShape(Document, frozen=True):
    """What an `@embed` vector is computed from."""

    property_name: str
    model: str | None


class InterfaceProperty(Document, frozen=True):
    """A property an interface asks for."""

    owner_name: str
    property_name: str


class PropertyShape(Document, frozen=True):
    """One property of a type."""

    name: str
    prop_type: PropertyType
    annotations: tuple[Note, ...]
    property_constraints: tuple[PropertyConstraint, ...]
    embed_source: EmbedShape | None
    declared_directly: bool
    satisfies: tuple[InterfaceProperty, ...] = msgspec.field(name="satisfies_interface_properties")


class InterfaceShape(Document, frozen=True):
    """One interface."""

    name: str
    properties: tuple[PropertyShape, ...]


class NodeShape(Document, frozen=True):
    """One node type with its effective properties."""

    name: str
    annotations: tuple[Note, ...]
    implements: tuple[str, ...]
    properties: tuple[PropertyShape, ...]
    constraints: tuple[Rule, ...]


class EdgeShape(Document, frozen=True):
    """One edge type."""

    name: str
    from_type: str
    to_type: str
    cardinality: Cardinality
    annotations: tuple[Note, ...]
    properties: tuple[PropertyShape, ...]
    constraints: tuple[Rule, ...]


class Shape(Document, frozen=True, dict=True):
    """A whole schema, everything in it sorted."""

    interfaces: tuple[InterfaceShape, ...]
    nodes: tuple[NodeShape, ...]
    edges: tuple[EdgeShape, ...]

    @cached_property
    def schema_shape_hash(self) -> str:
        """What two sources share when they mean the same."""
        return self.digest()


# -- building -----------------------------------------------------------------------


def build_shape(schema: Schema) -> Shape:
    """The shape of a schema that passed every check."""
    known = declared(schema)
    return Shape(
        tuple(_interface(found) for _, found in sorted(known.interfaces.items())),
        tuple(_node(found, known.interfaces) for _, found in sorted(known.nodes.items())),
        tuple(_edge(found) for _, found in sorted(known.edges.items())),
    )


def _interface(interface: Interface) -> InterfaceShape:
    properties = (Effective(found, direct=True) for found in interface.properties)
    return InterfaceShape(interface.name.text, _properties(properties))


def _node(node: Node, interfaces: Mapping[str, Interface]) -> NodeShape:
    effective = effective_properties(node, interfaces).values()
    return NodeShape(
        node.name.text,
        _notes(node.annotations),
        tuple(sorted({name.text for name in node.implements})),
        _properties(effective),
        _rules([found.property for found in effective], constraints_of(node.members)),
    )


def _edge(edge: Edge) -> EdgeShape:
    properties = properties_of(edge.members)
    card = edge.cardinality
    return EdgeShape(
        edge.name.text,
        edge.source.text,
        edge.target.text,
        Cardinality(0, None) if card is None else Cardinality(card.minimum, card.maximum),
        _notes(edge.annotations),
        _properties(Effective(found, direct=True) for found in properties),
        _rules(properties, constraints_of(edge.members)),
    )


def _properties(effective: Iterable[Effective]) -> tuple[PropertyShape, ...]:
    return tuple(sorted(map(_property, effective), key=lambda shape: shape.name))


def _property(effective: Effective) -> PropertyShape:
    property_ = effective.property
    embed = annotation_named(property_.annotations, "embed")
    return PropertyShape(
        property_.name.text,
        property_type(property_.type),
        _notes(property_.annotations),
        tuple(
            kind for kind in PROPERTY_CONSTRAINTS if annotation_named(property_.annotations, kind)
        ),
        None if embed is None or embed.value is None else _embed(embed, embed.value),
        effective.direct,
        tuple(InterfaceProperty(name, property_.name.text) for name in effective.interfaces),
    )


def _embed(annotation: Annotation, source: Argument) -> EmbedShape:
    model = next((value.text for name, value in annotation.options if name.text == "model"), None)
    return EmbedShape(source.text, model)


def _notes(annotations: tuple[Annotation, ...]) -> tuple[Note, ...]:
    return sorted_notes(
        [
            Note(
                annotation.name,
                None if annotation.value is None else annotation.value.text,
                dict(sorted((name.text, value.text) for name, value in annotation.options)),
            )
            for annotation in annotations
            if annotation.name not in _NOT_KEPT
        ]
    )


def _rules(properties: Sequence[Property], constraints: tuple[Constraint, ...]) -> tuple[Rule, ...]:
    rules: list[Rule] = [
        MEMBER_RULES[kind]((property_.name.text,))
        for property_ in properties
        for kind in PROPERTY_CONSTRAINTS
        if annotation_named(property_.annotations, kind)
    ]
    names = {property_.name.text for property_ in properties}
    rules += [_rule(constraint, names) for constraint in constraints]
    by_text = {rule.sort_key: rule for rule in rules}
    return tuple(by_text[text] for text in sorted(by_text))


def _rule(constraint: Constraint, properties: Container[str]) -> Rule:
    names = [a.text for a in constraint.arguments if isinstance(a, Argument)]
    if constraint.name == "range":
        bounds = next(a for a in constraint.arguments if isinstance(a, Bounds))
        low, high = (
            bound(None if end is None else bound_value(end)) for end in (bounds.low, bounds.high)
        )
        return RangeRule(Range(names[0], low, high))
    if constraint.name == "check":
        return CheckRule(Check(names[0], names[1]))
    return MEMBER_RULES[constraint.name](
        tuple(sorted({spelling(name, properties) for name in names}))
    )
