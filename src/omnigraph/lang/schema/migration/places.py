"""Where a schema declares what a plan speaks of.

Owns the step from an entity to its place in the source, so that a refusal can be shown with line
and caret. Never parses.
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.schema.check.effective import declared, effective_properties
from omnigraph.lang.schema.syntax.tree import (
    Declaration,
    Interface,
    Node,
    Property,
    Schema,
    properties_of,
)
from omnigraph.lang.source import Span


def locate(entity: str, syntax: Schema) -> Span | None:
    """The name of a type or property where it is declared; None if the type is not there.

    A property that a node has from an interface is found there. One that is not there at all,
    such as one that is dropped, stands for its type.
    """
    kind, _, path = entity.partition(":")
    type_name, _, property_name = path.partition(".")
    known = declared(syntax)
    kinds: dict[str, Mapping[str, Declaration]] = {
        "interface": known.interfaces,
        "node": known.nodes,
        "edge": known.edges,
    }
    declaration = kinds.get(kind, {}).get(type_name)
    if declaration is None:
        return None
    property_ = _properties(declaration, known.interfaces).get(property_name)
    return declaration.name.span if property_ is None else property_.name.span


def _properties(
    declaration: Declaration, interfaces: Mapping[str, Interface]
) -> dict[str, Property]:
    if isinstance(declaration, Node):
        effective = effective_properties(declaration, interfaces)
        return {name: found.property for name, found in effective.items()}
    own = (
        declaration.properties
        if isinstance(declaration, Interface)
        else properties_of(declaration.members)
    )
    return {property_.name.text: property_ for property_ in own}
