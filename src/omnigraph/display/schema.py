"""Schemas as notebooks show them: types as boxes with their properties, edges as arrows.

Owns what a diagram tells of a catalog, of which it knows no more than it shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from omnigraph.display.diagram import Arrow, Box, svg_of
from omnigraph.display.markup import Html, counted, joined, paragraph

MOST_TYPES = 80
"""A picture of more of them is none; they are listed."""


class ShownProperty(Protocol):
    """A property of a type."""

    @property
    def type(self) -> object:
        """The type of its values."""


class ShownInterface(Protocol):
    """An interface."""

    @property
    def properties(self) -> Mapping[str, ShownProperty]:
        """What those that implement it have."""


class ShownNode(Protocol):
    """A node type."""

    @property
    def properties(self) -> Mapping[str, ShownProperty]:
        """Its properties by name."""

    @property
    def key(self) -> Collection[str]:
        """Those that are its key."""

    @property
    def implements(self) -> Collection[str]:
        """Its interfaces."""

    @property
    def description(self) -> str | None:
        """What it is."""


class ShownEdge(Protocol):
    """An edge type."""

    @property
    def properties(self) -> Mapping[str, ShownProperty]:
        """Its properties by name."""

    @property
    def key(self) -> Collection[str]:
        """Those that are its key."""

    @property
    def description(self) -> str | None:
        """What it is."""

    @property
    def source(self) -> str:
        """Where it begins."""

    @property
    def target(self) -> str:
        """Where it ends."""


class ShownCatalog(Protocol):
    """A schema."""

    @property
    def nodes(self) -> Mapping[str, ShownNode]:
        """Its node types."""

    @property
    def edges(self) -> Mapping[str, ShownEdge]:
        """Its edge types."""

    @property
    def interfaces(self) -> Mapping[str, ShownInterface]:
        """Its interfaces."""


def summary_of(catalog: ShownCatalog) -> str:
    """A schema in some words."""
    kinds = [(len(catalog.nodes), "node type"), (len(catalog.edges), "edge type")]
    if catalog.interfaces:
        kinds.append((len(catalog.interfaces), "interface"))
    return ", ".join(counted(count, noun) for count, noun in kinds)


def schema_html(catalog: ShownCatalog) -> Html:
    """A diagram, and how many types there are."""
    told = paragraph(summary_of(catalog))
    return joined([told, diagram_of(catalog)])


def diagram_of(catalog: ShownCatalog) -> Html:
    """The types of a schema and how they hang together; nothing for one without types."""
    boxes = [*_interfaces(catalog), *_nodes(catalog)]
    if not boxes:
        return Html()
    if len(boxes) > MOST_TYPES:
        return paragraph("too many types to be drawn: ", ", ".join(box.name for box in boxes))
    arrows = sorted((*_edges(catalog), *_implementing(catalog)), key=_place)
    return svg_of(boxes, arrows, f"schema: {summary_of(catalog)}")


def _place(arrow: Arrow) -> tuple[str, str, str]:
    return arrow.source, arrow.target, arrow.name


def _nodes(catalog: ShownCatalog) -> Iterator[Box]:
    for name, node in sorted(catalog.nodes.items()):
        yield Box(name, tuple(_lines(node)), node.description or "")


def _interfaces(catalog: ShownCatalog) -> Iterator[Box]:
    for name, interface in sorted(catalog.interfaces.items()):
        lines = tuple(_line(one, found) for one, found in interface.properties.items())
        yield Box(name, lines, f"interface {name}", is_dashed=True)


def _edges(catalog: ShownCatalog) -> Iterator[Arrow]:
    for name, edge in catalog.edges.items():
        about = "\n".join([edge.description or name, *_lines(edge)])
        shown = f"{name} ({', '.join(edge.properties)})" if edge.properties else name
        yield Arrow(edge.source, edge.target, shown, about)


def _implementing(catalog: ShownCatalog) -> Iterator[Arrow]:
    for name, node in catalog.nodes.items():
        for interface in node.implements:
            if interface in catalog.interfaces:
                about = f"{name} implements {interface}"
                yield Arrow(name, interface, "", about, is_dashed=True)


def _lines(owner: ShownNode | ShownEdge) -> Iterator[str]:
    """The properties, those of the key first."""
    for name in sorted(owner.properties, key=lambda one: one not in owner.key):
        yield _line(name, owner.properties[name]) + (" @key" if name in owner.key else "")


def _line(name: str, found: ShownProperty) -> str:
    return f"{name}: {found.type}"
