"""What a schema text declares, each with its place, as far as the text can be read.

Owns the types and properties that completion, hover and definitions speak of. Works on texts with
mistakes: what parses is there. Never says what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Declaration,
    Edge,
    Interface,
    Node,
    Property,
    properties_of,
)
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import Comment, tokenize


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """A property of a type, or one that an interface gives it."""

    owner: str
    name: str
    type: str
    place: Span
    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A node type, an edge type or an interface; ``ends`` are an edge's."""

    kind: str
    name: str
    place: Span
    text: str
    notes: tuple[str, ...]
    own: tuple[DeclaredProperty, ...]
    implements: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredSchema:
    """Everything that a schema text declares."""

    source: Source
    nodes: dict[str, DeclaredType] = field(default_factory=dict)
    """Node types and interfaces: they share their names."""
    edges: dict[str, DeclaredType] = field(default_factory=dict)

    def edge(self, name: str) -> DeclaredType | None:
        """An edge type by its name, in any case."""
        folded = name.casefold()
        return next((one for one in self.edges.values() if one.name.casefold() == folded), None)

    def types(self, name: str) -> tuple[DeclaredType, ...]:
        """What a name may mean: a node type, an edge type, or both."""
        return tuple(one for one in (self.nodes.get(name), self.edge(name)) if one is not None)

    def implementers(self, interface: str) -> Iterator[DeclaredType]:
        """The node types that implement an interface."""
        return (one for one in self.nodes.values() if interface in one.implements)

    def properties(self, names: Iterable[str]) -> dict[str, tuple[DeclaredProperty, ...]]:
        """The properties of types by name: their own, and those of interfaces on either side."""
        found: dict[str, tuple[DeclaredProperty, ...]] = {}
        for declared in (one for name in names for one in self.types(name)):
            around = [self.nodes[name] for name in declared.implements if name in self.nodes]
            if declared.kind == "interface":
                around += self.implementers(declared.name)
            for one in (declared, *around):
                for property_ in one.own:
                    known = found.get(property_.name, ())
                    if property_ not in known:
                        found[property_.name] = (*known, property_)
        return found


def declared_in(source: Source) -> DeclaredSchema:
    """What a schema text declares."""
    found = DeclaredSchema(source)
    comments = tokenize(source).comments
    for declaration in parse_schema(source, Reporter(source)).declarations:
        one = _declared(source, declaration, comments)
        (found.edges if one.kind == "edge" else found.nodes).setdefault(one.name, one)
    return found


def _declared(
    source: Source, declaration: Declaration, comments: Sequence[Comment]
) -> DeclaredType:
    annotations = () if isinstance(declaration, Interface) else declaration.annotations
    name = declaration.name.text
    properties = (
        declaration.properties
        if isinstance(declaration, Interface)
        else properties_of(declaration.members)
    )
    own = tuple(_property(source, name, one, comments) for one in properties)
    return DeclaredType(
        type(declaration).__name__.lower(),
        name,
        declaration.name.span,
        source.text[declaration.span.start : declaration.span.end],
        (*_comment_above(source, declaration.span, comments), *_descriptions(annotations)),
        own,
        tuple(one.text for one in declaration.implements) if isinstance(declaration, Node) else (),
        (declaration.source.text, declaration.target.text) if isinstance(declaration, Edge) else (),
    )


def _property(
    source: Source, owner: str, property_: Property, comments: Sequence[Comment]
) -> DeclaredProperty:
    return DeclaredProperty(
        owner,
        property_.name.text,
        str(property_.type),
        property_.name.span,
        source.text[property_.span.start : property_.span.end],
        (
            *_comment_above(source, property_.span, comments),
            *_descriptions(property_.annotations),
        ),
    )


def _descriptions(annotations: Iterable[Annotation]) -> Iterator[str]:
    for one in annotations:
        if one.name == "description" and one.value is not None:
            yield one.value.text


def _comment_above(source: Source, span: Span, comments: Sequence[Comment]) -> tuple[str, ...]:
    """The comment that stands on the lines right above, as one text."""
    lines: list[str] = []
    start = span.start
    for comment in reversed(comments):
        if comment.end > start:
            continue
        between = source.text[comment.end : start]
        before = source.text[: comment.start].rpartition("\n")[2]
        # What follows other text in its line speaks of that.
        if between.strip() or between.count("\n") != 1 or before.strip():
            break
        lines.insert(0, comment.text.strip("/*").strip())
        start = comment.start
    return ("\n".join(lines),) if lines else ()
