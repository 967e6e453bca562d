"""The shape: what a schema means, before anything in it has an identity.

Owns the canonical order, the injection of interface properties and the shape
hash. Two sources that differ in comments, order or rename hints have one shape.
Never sees an id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.lang.schema.check.constraints import bound_value
from omnigraph.lang.schema.check.effective import (
    Effective,
    annotation_named,
    canonical_type,
    declared,
    effective_properties,
)
from omnigraph.lang.schema.ir.encoding import (
    PROPERTY_CONSTRAINTS,
    Bound,
    Json,
    Note,
    PropertyConstraint,
    bound_to_json,
    digest,
    sorted_notes,
    type_to_json,
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
from omnigraph.lang.source import NOWHERE, Span
from omnigraph.lang.types import ValueType

_NOT_KEPT = frozenset({"rename_from", "embed", *PROPERTY_CONSTRAINTS})
"""Annotations that have a place of their own in the shape, or none at all."""


@dataclass(frozen=True, slots=True)
class RenameHint:
    """`@rename_from`; ``inherited`` when an interface wrote it for its nodes."""

    former: str
    span: Span = field(default=NOWHERE, compare=False)
    inherited: bool = False


@dataclass(frozen=True, slots=True)
class MemberRule:
    """A key, a uniqueness or an index over members, sorted by name."""

    kind: PropertyConstraint
    members: tuple[str, ...]

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        return f"{self.kind}:{','.join(self.members)}"

    def to_json(self) -> Json:
        """Tagged with its kind."""
        return {self.kind.capitalize(): list(self.members)}


@dataclass(frozen=True, slots=True)
class RangeRule:
    """Bounds of a number."""

    member: str
    minimum: Bound
    maximum: Bound

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        low, high = ("" if b is None else repr(b) for b in (self.minimum, self.maximum))
        return f"range:{self.member}:{low}..{high}"

    def to_json(self) -> Json:
        """Tagged with its kind."""
        low, high = bound_to_json(self.minimum), bound_to_json(self.maximum)
        return {"Range": {"property": self.member, "min": low, "max": high}}


@dataclass(frozen=True, slots=True)
class CheckRule:
    """A pattern a text must contain."""

    member: str
    pattern: str

    @property
    def sort_key(self) -> str:
        """Where it stands among the constraints of its type."""
        return f"check:{self.member}:{self.pattern}"

    def to_json(self) -> Json:
        """Tagged with its kind."""
        return {"Check": {"property": self.member, "pattern": self.pattern}}


Rule = MemberRule | RangeRule | CheckRule


@dataclass(frozen=True, slots=True)
class EmbedShape:
    """What an `@embed` vector is computed from."""

    source: str
    model: str | None

    def to_json(self) -> Json:
        """The name of the source, and the model."""
        return {"property_name": self.source, "model": self.model}


@dataclass(frozen=True, slots=True)
class PropertyShape:
    """One property; ``satisfies`` names the interfaces that ask for it."""

    name: str
    type: ValueType
    notes: tuple[Note, ...] = ()
    constraints: tuple[PropertyConstraint, ...] = ()
    embed: EmbedShape | None = None
    direct: bool = True
    satisfies: tuple[str, ...] = ()
    hint: RenameHint | None = field(default=None, compare=False)

    def to_json(self) -> Json:
        """The property without its rename hint."""
        return {
            "name": self.name,
            "prop_type": type_to_json(self.type),
            "annotations": [note.to_json() for note in self.notes],
            "property_constraints": list(self.constraints),
            "embed_source": None if self.embed is None else self.embed.to_json(),
            "declared_directly": self.direct,
            "satisfies_interface_properties": [
                {"owner_name": owner, "property_name": self.name} for owner in self.satisfies
            ],
        }


@dataclass(frozen=True, slots=True)
class InterfaceShape:
    """One interface."""

    name: str
    properties: tuple[PropertyShape, ...] = ()

    def to_json(self) -> Json:
        """The interface and its properties."""
        return {"name": self.name, "properties": [p.to_json() for p in self.properties]}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node type with its effective properties."""

    name: str
    notes: tuple[Note, ...] = ()
    implements: tuple[str, ...] = ()
    properties: tuple[PropertyShape, ...] = ()
    rules: tuple[Rule, ...] = ()
    hint: RenameHint | None = field(default=None, compare=False)

    def to_json(self) -> Json:
        """The node type without its rename hint."""
        return {
            "name": self.name,
            "annotations": [note.to_json() for note in self.notes],
            "implements": list(self.implements),
            "properties": [p.to_json() for p in self.properties],
            "constraints": [rule.to_json() for rule in self.rules],
        }


@dataclass(frozen=True, slots=True)
class EdgeShape:
    """One edge type."""

    name: str
    source: str
    target: str
    minimum: int = 0
    maximum: int | None = None
    notes: tuple[Note, ...] = ()
    properties: tuple[PropertyShape, ...] = ()
    rules: tuple[Rule, ...] = ()
    hint: RenameHint | None = field(default=None, compare=False)

    def to_json(self) -> Json:
        """The edge type without its rename hint."""
        return {
            "name": self.name,
            "from_type": self.source,
            "to_type": self.target,
            "cardinality": {"min": self.minimum, "max": self.maximum},
            "annotations": [note.to_json() for note in self.notes],
            "properties": [p.to_json() for p in self.properties],
            "constraints": [rule.to_json() for rule in self.rules],
        }


@dataclass(frozen=True)
class Shape:
    """A whole schema, everything in it sorted."""

    interfaces: tuple[InterfaceShape, ...] = ()
    nodes: tuple[NodeShape, ...] = ()
    edges: tuple[EdgeShape, ...] = ()

    def to_json(self) -> Json:
        """The document that is hashed."""
        return {
            "interfaces": [interface.to_json() for interface in self.interfaces],
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
        }

    @cached_property
    def schema_shape_hash(self) -> str:
        """What two sources share when they mean the same."""
        return digest(self.to_json())


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
        _rules((found.property for found in effective), constraints_of(node.members)),
        _hint(node.annotations),
    )


def _edge(edge: Edge) -> EdgeShape:
    properties = properties_of(edge.members)
    card = edge.cardinality
    return EdgeShape(
        edge.name.text,
        edge.source.text,
        edge.target.text,
        0 if card is None else card.minimum,
        None if card is None else card.maximum,
        _notes(edge.annotations),
        _properties(Effective(found, direct=True) for found in properties),
        _rules(properties, constraints_of(edge.members)),
        _hint(edge.annotations),
    )


def _properties(effective: Iterable[Effective]) -> tuple[PropertyShape, ...]:
    return tuple(sorted(map(_property, effective), key=lambda shape: shape.name))


def _property(effective: Effective) -> PropertyShape:
    property_ = effective.property
    embed = annotation_named(property_.annotations, "embed")
    return PropertyShape(
        property_.name.text,
        canonical_type(property_.type),
        _notes(property_.annotations),
        tuple(
            kind for kind in PROPERTY_CONSTRAINTS if annotation_named(property_.annotations, kind)
        ),
        None if embed is None or embed.value is None else _embed(embed, embed.value),
        effective.direct,
        effective.interfaces,
        _hint(property_.annotations, inherited=not effective.direct),
    )


def _embed(annotation: Annotation, source: Argument) -> EmbedShape:
    model = next((value.text for name, value in annotation.options if name.text == "model"), None)
    return EmbedShape(source.text, model)


def _hint(annotations: tuple[Annotation, ...], *, inherited: bool = False) -> RenameHint | None:
    found = annotation_named(annotations, "rename_from")
    if found is None or found.value is None:
        return None
    return RenameHint(found.value.text, found.span, inherited)


def _notes(annotations: tuple[Annotation, ...]) -> tuple[Note, ...]:
    return sorted_notes(
        [
            Note(
                annotation.name,
                None if annotation.value is None else annotation.value.text,
                tuple(sorted((name.text, value.text) for name, value in annotation.options)),
            )
            for annotation in annotations
            if annotation.name not in _NOT_KEPT
        ]
    )


def _rules(properties: Iterable[Property], constraints: tuple[Constraint, ...]) -> tuple[Rule, ...]:
    rules: list[Rule] = [
        MemberRule(kind, (property_.name.text,))
        for property_ in properties
        for kind in PROPERTY_CONSTRAINTS
        if annotation_named(property_.annotations, kind)
    ]
    rules += map(_rule, constraints)
    # Equality would take `0..1` and `0.0..1.0` for one and let the written order decide.
    by_text = {rule.sort_key: rule for rule in rules}
    return tuple(by_text[text] for text in sorted(by_text))


def _rule(constraint: Constraint) -> Rule:
    names = [a.text for a in constraint.arguments if isinstance(a, Argument)]
    if constraint.name == "range":
        bounds = next(a for a in constraint.arguments if isinstance(a, Bounds))
        low, high = (None if b is None else bound_value(b) for b in (bounds.low, bounds.high))
        return RangeRule(names[0], low, high)
    if constraint.name == "check":
        return CheckRule(names[0], names[1])
    return MemberRule(constraint.name, tuple(sorted(set(names))))
