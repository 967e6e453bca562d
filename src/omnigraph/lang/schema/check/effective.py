"""Effective properties: what a node has after its interfaces have given theirs.

Owns the injection rule and when two interfaces agree. Works on the syntax
tree; never reports, so that checks and the shape read the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Edge,
    Interface,
    Node,
    Property,
    Schema,
    properties_of,
)
from omnigraph.lang.types import ValueType


@dataclass(frozen=True, slots=True)
class Effective:
    """One property of a node and the interfaces that ask for it, by name."""

    property: Property
    direct: bool
    interfaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of a schema by name; of several with one name the first counts."""

    interfaces: Mapping[str, Interface]
    nodes: Mapping[str, Node]
    edges: Mapping[str, Edge]


def declared(schema: Schema) -> Declared:
    """The declarations of a schema by kind and name."""
    interfaces: dict[str, Interface] = {}
    nodes: dict[str, Node] = {}
    edges: dict[str, Edge] = {}
    for declaration in schema.declarations:
        match declaration:
            case Interface(name):
                interfaces.setdefault(name.text, declaration)
            case Node(name):
                nodes.setdefault(name.text, declaration)
            case Edge(name):
                edges.setdefault(name.text, declaration)
    return Declared(interfaces, nodes, edges)


def implemented(node: Node, interfaces: Mapping[str, Interface]) -> list[Interface]:
    """The known interfaces of a node by name, each once."""
    names = sorted({name.text for name in node.implements})
    return [interfaces[name] for name in names if name in interfaces]


def effective_properties(node: Node, interfaces: Mapping[str, Interface]) -> dict[str, Effective]:
    """Every property of a node by name: its own, then what its interfaces add."""
    found = {
        property_.name.text: Effective(property_, direct=True)
        for property_ in first_of_each(properties_of(node.members))
    }
    for interface in implemented(node, interfaces):
        for property_ in first_of_each(interface.properties):
            name = property_.name.text
            known = found.get(name) or Effective(property_, direct=False)
            found[name] = replace(known, interfaces=(*known.interfaces, interface.name.text))
    return found


def first_of_each(properties: Iterable[Property]) -> list[Property]:
    """The properties without later ones of the same name."""
    found: dict[str, Property] = {}
    for property_ in properties:
        found.setdefault(property_.name.text, property_)
    return list(found.values())


def canonical_type(value_type: ValueType) -> ValueType:
    """The type with its enum values sorted: their order has no meaning."""
    values = value_type.enum_values
    return value_type if values is None else replace(value_type, enum_values=tuple(sorted(values)))


def agree(left: Property, right: Property) -> bool:
    """Whether two interfaces say the same about a property, rename hints aside."""
    if canonical_type(left.type) != canonical_type(right.type):
        return False
    return _semantics(left.annotations) == _semantics(right.annotations)


def _semantics(annotations: tuple[Annotation, ...]) -> set[tuple[object, ...]]:
    return {
        (
            annotation.name,
            annotation.value.text if annotation.value is not None else None,
            tuple(sorted((name.text, value.text) for name, value in annotation.options)),
        )
        for annotation in annotations
        if annotation.name != "rename_from"
    }


def annotation_named(annotations: Iterable[Annotation], name: str) -> Annotation | None:
    """The first annotation of this name."""
    return next((found for found in annotations if found.name == name), None)
