"""The syntax tree of a merged schema: identities become names again.

Owns how merged elements are written, each as the side wrote it that it was taken from. Never
decides what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.lang.schema.ir.document import PROPERTY_CONSTRAINTS
from omnigraph.lang.schema.merge.merging import MergedType
from omnigraph.lang.schema.merge.model import (
    CARD,
    EMBED,
    ENDS,
    KEY,
    NAME,
    NULLABLE,
    TYPE,
    Aspect,
    Element,
    members_of,
)
from omnigraph.lang.schema.syntax.tree import (
    CONSTRAINT_NAMES,
    Annotation,
    Argument,
    Cardinality,
    Constraint,
    Declaration,
    Edge,
    Interface,
    Member,
    Node,
    Property,
)
from omnigraph.lang.source import Name
from omnigraph.lang.structural import spelling

_DEFAULT_CARD = (0, None)


@dataclass(frozen=True, slots=True)
class Written:
    """A merged type as syntax.

    ``members`` are what stands in its body, each with what it is: the identity of a property, or
    the aspects that a constraint says.
    """

    type_id: int
    declaration: Declaration
    members: tuple[tuple[int | Aspect, Member], ...]


def written(merged: MergedType, types: Mapping[int, MergedType]) -> Written:
    """The declaration of a merged type."""
    name = Name(merged.name)
    properties = [
        (property_id, _property(merged, property_id, elements))
        for property_id, elements in merged.properties.items()
    ]
    if merged.kind == "interface":
        found = Interface(name, tuple(property_ for _, property_ in properties))
        return Written(merged.id, found, tuple(properties))
    members: tuple[tuple[int | Aspect, Member], ...] = (*properties, *_constraints(merged))
    body = tuple(member for _, member in members)
    notes = _notes(merged.elements)
    if merged.kind == "node":
        implements = sorted(types[each].name for each in merged.implemented())
        node = Node(name, notes, tuple(map(Name, implements)), body)
        return Written(merged.id, node, members)
    start, end = _pair(merged.elements[ENDS])
    edge = Edge(
        name, Name(types[start].name), Name(types[end].name), _cardinality(merged), notes, body
    )
    return Written(merged.id, edge, members)


def _pair(element: Element) -> tuple[Any, Any]:
    match element.meaning:
        case (first, second):
            return first, second
    raise AssertionError("ends and cardinalities are pairs")


def _cardinality(merged: MergedType) -> Cardinality | None:
    limits = _pair(merged.elements[CARD])
    return None if limits == _DEFAULT_CARD else Cardinality(*limits)


def _property(merged: MergedType, property_id: int, elements: Mapping[Aspect, Element]) -> Property:
    type_ = replace(elements[TYPE].written, nullable=bool(elements[NULLABLE].meaning))
    flags = [
        Annotation(kind)
        for kind in PROPERTY_CONSTRAINTS
        if ("flag", kind) in elements or _is_flag(merged, kind, property_id)
    ]
    embed = [_embed(elements[EMBED], merged.property_name)] if EMBED in elements else []
    return Property(Name(str(elements[NAME].meaning)), type_, (*flags, *embed, *_notes(elements)))


def _is_flag(merged: MergedType, kind: str, property_id: int) -> bool:
    """Whether a constraint is written on its only member."""
    if ("spelled", kind, property_id) not in merged.elements:
        return False
    only = frozenset({property_id})
    if kind == "key":
        return merged.elements.get(KEY) == Element(only)
    return (kind, only) in merged.elements


def _notes(elements: Mapping[Aspect, Element]) -> tuple[Annotation, ...]:
    notes = (element.written for aspect, element in elements.items() if aspect[0] == "note")
    return tuple(annotation for each in notes for annotation in each)


def _embed(element: Element, name_of: Callable[[int], str]) -> Annotation:
    source, _ = _pair(element)
    name = name_of(source) if isinstance(source, int) else str(source)
    before: Annotation = element.written
    kind = "name" if before.value is None else before.value.kind
    return replace(before, value=Argument(kind, name))


def _constraints(merged: MergedType) -> Iterator[tuple[Aspect, Constraint]]:
    """The constraints of a body: those over members, then ranges and patterns."""
    names = {merged.property_name(each) for each in (*merged.properties, *merged.injected)}
    for aspect, element in merged.elements.items():
        kind = next((each for each in CONSTRAINT_NAMES if each == aspect[0]), None)
        if kind is None:
            continue
        members = members_of(aspect, element)
        if kind in ("range", "check"):
            (about,) = members
            first = Argument("name", merged.property_name(int(about)))
            for each in element.written:
                yield aspect, Constraint(kind, (first, *each.arguments[1:]))
            continue
        if len(members) == 1 and any(
            isinstance(each, int) and _is_flag(merged, kind, each) for each in members
        ):
            continue
        ends = [spelling(each, names) for each in ("@src", "@dst") if each in members]
        own = sorted(merged.property_name(each) for each in members if isinstance(each, int))
        arguments = tuple(Argument("name", each) for each in (*ends, *own))
        yield aspect, Constraint(kind, arguments)
