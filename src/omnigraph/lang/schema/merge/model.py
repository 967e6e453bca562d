"""A schema as a merge sees it: declarations by identity, each made of comparable elements.

Owns what the elements of a declaration are. References are identities, so that a rename is one
element and touches no other; what interfaces inject is told apart from what a node declares.
Never compares two schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import SchemaError
from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.schema.check.constraints import bound_value
from omnigraph.lang.schema.check.effective import (
    Declared,
    Effective,
    declared,
    effective_properties,
)
from omnigraph.lang.schema.ir.document import PROPERTY_CONSTRAINTS
from omnigraph.lang.schema.ir.ir import (
    IRInterface,
    IRType,
    PropertyField,
    SchemaIR,
    TypeKind,
)
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.schema.syntax.tree import (
    Annotation,
    Argument,
    Bounds,
    Constraint,
    Declaration,
    Interface,
    Node,
    Property,
    Schema,
    constraints_of,
    properties_of,
)
from omnigraph.lang.source import Source
from omnigraph.lang.types import ValueType

Aspect = tuple[Hashable, ...]
"""Which element of a declaration: `("name",)`, `("note", "default")`, `("unique", members)`."""
Member = int | str
"""What a constraint is about: the identity of a property, or `@src` and `@dst`."""
Find = Callable[[int], int]
"""From an identity to the one that stands for all that are the same thing."""

NAME: Aspect = ("name",)
TYPE: Aspect = ("type",)
NULLABLE: Aspect = ("nullable",)
EMBED: Aspect = ("embed",)
ENDS: Aspect = ("ends",)
CARD: Aspect = ("card",)
KEY: Aspect = ("key",)

_NOT_NOTES = frozenset({"rename_from", "embed", *PROPERTY_CONSTRAINTS})


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """An accepted schema as it is stored: its source text and its IR."""

    text: str
    ir: SchemaIR


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a declaration: what it means, and how it was written."""

    meaning: Hashable
    written: Any = field(default=None, compare=False)


Elements = Mapping[Aspect, Element]


@dataclass(frozen=True, slots=True)
class DeclaredProperty:
    """A property of a type; ``direct`` is false for what interfaces inject.

    ``satisfies`` are the properties of interfaces that ask for it, ``flags`` the constraints
    over it alone, however they are written. ``own_id`` is its identity on this side.
    """

    id: int
    own_id: int
    elements: Elements
    direct: bool
    satisfies: frozenset[int]
    flags: frozenset[str]
    syntax: Property

    @property
    def name(self) -> str:
        """What it is called."""
        return self.syntax.name.text


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type; ``key_order`` are the members of its key as the ids of rows are made of them."""

    kind: TypeKind
    id: int
    own_id: int
    incarnation: int | None
    elements: Elements
    properties: Mapping[int, DeclaredProperty]
    key_order: tuple[int, ...]
    syntax: Declaration

    @property
    def name(self) -> str:
        """What it is called."""
        return self.syntax.name.text

    def own_ids(self) -> Iterator[int]:
        """Its identities on this side: its own, its table's and its properties'."""
        yield self.own_id
        if self.incarnation is not None:
            yield self.incarnation
        yield from (found.own_id for found in self.properties.values())

    def named(self, name: str) -> DeclaredProperty | None:
        """Its property of this name."""
        return next((found for found in self.properties.values() if found.name == name), None)


@dataclass(frozen=True, slots=True)
class Model:
    """All types of one side, in the order they are written in."""

    source: Source
    types: Mapping[int, DeclaredType]

    def property(self, type_id: int, property_id: int) -> DeclaredProperty | None:
        """A property, if this side has it."""
        owner = self.types.get(type_id)
        return None if owner is None else owner.properties.get(property_id)


def members_of(aspect: Aspect, element: Element) -> frozenset[Member]:
    """What a constraint among the elements of a type is about."""
    match aspect:
        case ("key",):
            found: Any = element.meaning
        case ("unique" | "index", found):
            pass
        case ("range" | "check" | "spelled", *_, found):
            found = frozenset({found})
        case _:
            found = frozenset()
    return frozenset(found)


def read_tree(source: Source) -> Schema:
    """The syntax of an accepted schema."""
    reporter = Reporter(source)
    tree = parse_schema(source, reporter)
    reporter.raise_if_any()
    return tree


def read_model(source: Source, tree: Schema, ir: SchemaIR, find: Find) -> Model:
    """The declarations of an accepted schema by identity."""
    reader = _Reader(declared(tree), ir, find)
    found: dict[int, DeclaredType] = {}
    for each in ir.types():
        read = reader.type(each)
        if read.id in found:
            raise SchemaError(f"one identity is used twice: {each.name} is another type already")
        found[read.id] = read
    order = {id(declaration): place for place, declaration in enumerate(tree.declarations)}
    ordered = sorted(found.values(), key=lambda each: order[id(each.syntax)])
    return Model(source, {each.id: each for each in ordered})


class _Reader:
    def __init__(self, known: Declared, ir: SchemaIR, find: Find) -> None:
        self.known = known
        self.find = find
        self.ids = {(each.kind, each.name): find(each.type_id) for each in ir.types()}
        self.asked = {
            (each.name, property_.name): find(property_.property_id)
            for each in ir.interfaces
            for property_ in each.properties
        }

    def type(self, each: IRType) -> DeclaredType:
        by_kind: Mapping[TypeKind, Mapping[str, Declaration]] = {
            "interface": self.known.interfaces,
            "node": self.known.nodes,
            "edge": self.known.edges,
        }
        syntax = by_kind[each.kind].get(each.name)
        if syntax is None:
            raise SchemaError(f"the schema source has no {each.kind} {each.name} as its IR has")
        own = {found.name: found.property_id for found in each.properties}
        effective = self.effective(syntax)
        if own.keys() != effective.keys():
            raise SchemaError(f"the schema source and its IR disagree about {each.name}")
        ids = {name: self.find(own_id) for name, own_id in own.items()}
        properties = {
            ids[name]: self.property(syntax, found, ids, own[name])
            for name, found in effective.items()
        }
        if len(properties) < len(own):
            raise SchemaError(f"one identity is used twice: by properties of {each.name}")
        return DeclaredType(
            each.kind,
            self.find(each.type_id),
            each.type_id,
            None if isinstance(each, IRInterface) else each.table_incarnation_id,
            self.elements(syntax, ids),
            properties,
            tuple(self.find(own_id) for own_id in _key_order(each)),
            syntax,
        )

    def effective(self, syntax: Declaration) -> dict[str, Effective]:
        if isinstance(syntax, Node):
            return effective_properties(syntax, self.known.interfaces)
        found = (
            syntax.properties if isinstance(syntax, Interface) else properties_of(syntax.members)
        )
        return {each.name.text: Effective(each, direct=True) for each in found}

    # -- elements ------------------------------------------------------------------

    def property(
        self, owner: Declaration, found: Effective, ids: Mapping[str, int], own_id: int
    ) -> DeclaredProperty:
        syntax = found.property
        name = syntax.name.text
        elements = property_elements(syntax, ids)
        flags = {kind for kind in PROPERTY_CONSTRAINTS if _noted(syntax, kind)}
        if isinstance(owner, Interface):
            elements |= {("flag", kind): Element(meaning=True) for kind in flags}
        else:
            flags |= {
                each.name
                for each in constraints_of(owner.members)
                if each.name in PROPERTY_CONSTRAINTS and _names(each) == [name]
            }
        return DeclaredProperty(
            ids[name],
            own_id,
            elements,
            found.direct,
            frozenset(self.asked[interface, name] for interface in found.interfaces),
            frozenset(flags),
            syntax,
        )

    def _end(self, name: str) -> int:
        """The type or the interface at an end of an edge."""
        found = self.ids.get(("node", name))
        return self.ids["interface", name] if found is None else found

    def elements(self, syntax: Declaration, ids: Mapping[str, int]) -> Elements:
        found: dict[Aspect, Element] = {NAME: Element(syntax.name.text)}
        if isinstance(syntax, Interface):
            return found
        found |= _notes(syntax.annotations)
        if isinstance(syntax, Node):
            for interface in syntax.implements:
                found["implements", self.ids["interface", interface.text]] = Element(meaning=True)
        else:
            ends = (self._end(syntax.source.text), self._end(syntax.target.text))
            found[ENDS] = Element(ends)
            card = syntax.cardinality
            limits = (0, None) if card is None else (card.minimum, card.maximum)
            found[CARD] = Element(limits)
        for property_ in properties_of(syntax.members):
            member = ids[property_.name.text]
            for kind in PROPERTY_CONSTRAINTS:
                if _noted(property_, kind):
                    found |= _over(kind, frozenset({member}))
                    found["spelled", kind, member] = Element(meaning=True)
        return found | _constraints(constraints_of(syntax.members), ids)


def property_elements(syntax: Property, ids: Mapping[str, int]) -> dict[Aspect, Element]:
    """The elements of a property; ``ids`` are those of the properties of its type, by name."""
    found: dict[Aspect, Element] = {
        NAME: Element(syntax.name.text),
        TYPE: Element(_type_meaning(syntax.type), syntax.type),
        NULLABLE: Element(syntax.type.nullable),
    }
    for annotation in syntax.annotations:
        if annotation.name == "embed" and annotation.value is not None:
            model = next((text.text for name, text in annotation.options), None)
            # An interface may embed what only its nodes have: then the name is all there is.
            source = annotation.value.text
            found[EMBED] = Element((ids.get(source, source), model), annotation)
    return found | _notes(syntax.annotations)


def _type_meaning(type_: ValueType) -> Hashable:
    values = None if type_.enum_values is None else frozenset(type_.enum_values)
    return (type_.scalar, type_.is_list, type_.dimension, values)


def _notes(annotations: Iterable[Annotation]) -> dict[Aspect, Element]:
    by_name: dict[str, list[Annotation]] = {}
    for annotation in annotations:
        if annotation.name not in _NOT_NOTES:
            by_name.setdefault(annotation.name, []).append(annotation)
    return {
        ("note", name): Element(frozenset(map(_note, found)), tuple(found))
        for name, found in by_name.items()
    }


def _note(annotation: Annotation) -> Hashable:
    value = None if annotation.value is None else annotation.value.text
    return (value, tuple(sorted((name.text, text.text) for name, text in annotation.options)))


def _noted(property_: Property, name: str) -> bool:
    return any(annotation.name == name for annotation in property_.annotations)


def _over(kind: str, members: frozenset[Member]) -> dict[Aspect, Element]:
    return {KEY: Element(members)} if kind == "key" else {(kind, members): Element(meaning=True)}


def constraint_aspect(constraint: Constraint, ids: Mapping[str, int]) -> Aspect:
    """Which element of its type a constraint of a body says; ``ids`` are those of properties."""
    names = _names(constraint)
    if constraint.name in ("range", "check"):
        return (constraint.name, ids[names[0]])
    if constraint.name == "key":
        return KEY
    return (constraint.name, _members(names, ids))


def _members(names: Iterable[str], ids: Mapping[str, int]) -> frozenset[Member]:
    return frozenset(ids.get(name, f"@{name.removeprefix('@')}") for name in names)


def _constraints(
    constraints: Iterable[Constraint], ids: Mapping[str, int]
) -> dict[Aspect, Element]:
    found: dict[Aspect, Element] = {}
    rules: dict[Aspect, dict[Hashable, Constraint]] = {}
    for constraint in constraints:
        aspect = constraint_aspect(constraint, ids)
        match constraint.arguments:
            case (_, Bounds(low, high), *_) if constraint.name == "range":
                rules.setdefault(aspect, {})[_number(low), _number(high)] = constraint
            case (_, Argument(_, pattern), *_) if constraint.name == "check":
                rules.setdefault(aspect, {})[pattern] = constraint
            case _:
                found |= _over(constraint.name, _members(_names(constraint), ids))
    for aspect, each in rules.items():
        found[aspect] = Element(frozenset(each), tuple(each.values()))
    return found


def _names(constraint: Constraint) -> list[str]:
    """The names among its arguments, each once."""
    named = (each for each in constraint.arguments if isinstance(each, Argument))
    return list(dict.fromkeys(each.text for each in named if each.kind == "name"))


def _number(bound: Argument | None) -> str | None:
    # As text: 1 and 1.0 are one number and two bounds.
    return None if bound is None else repr(bound_value(bound))


def _key_order(each: IRType) -> list[int]:
    if isinstance(each, IRInterface):
        return []
    key = next((found.fields for found in each.constraints if found.kind == "key"), ())
    return sorted(found.property_id for found in key if isinstance(found, PropertyField))
