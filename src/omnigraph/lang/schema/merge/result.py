"""From merged declarations to a schema that stands: checked, with identities, sealed.

Owns the verdict of the language's own rules on what two sides made together, the identity of
everything that comes out, and where a broken rule is to blame. Never merges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.schema.check.whole_schema import check_schema
from omnigraph.lang.schema.ir.identified import Ids, identified
from omnigraph.lang.schema.ir.ir import PropertyField, SchemaIR, TypeKind, validate_ir
from omnigraph.lang.schema.ir.shape import Shape, build_shape
from omnigraph.lang.schema.merge.conflicts import SIDES
from omnigraph.lang.schema.merge.merging import (
    ALL,
    SAID,
    WHOLE,
    Decision,
    MergedType,
    Merging,
    Place,
)
from omnigraph.lang.schema.merge.model import EMBED, ENDS, NAME, DeclaredType
from omnigraph.lang.schema.merge.tree import Written, written
from omnigraph.lang.schema.syntax.format import print_schema
from omnigraph.lang.schema.syntax.parser import parse
from omnigraph.lang.schema.syntax.tree import Argument, Declaration, Interface, Member, Property
from omnigraph.lang.schema.syntax.tree import Schema as Tree
from omnigraph.lang.source import Source

_NAME = "<merged>"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A merged schema: its IR, its shape, and its declarations as syntax."""

    ir: SchemaIR
    shape: Shape
    declarations: tuple[Written, ...]
    text: str
    """In canonical form."""


def seal(merging: Merging, *, domain: str, following: int) -> Sealed | None:
    """The merged schema, or None after conflicts were reported instead."""
    declarations = tuple(written(each, merging.types) for each in merging.types.values())
    text = print_schema(Tree(tuple(each.declaration for each in declarations)))
    source = Source(text, _NAME)
    mistakes, tree = _checked(source)
    sides = (merging.source.source, merging.target.source)
    if mistakes and any(_checked(side)[0] for side in sides):
        # What was accepted before rules tightened may stay.
        mistakes, tree = _checked(source, stored=True)
    if mistakes:
        for found in mistakes:
            _blame(merging, found, declarations, tree)
        return None
    shape = build_shape(tree)
    ir = identified(shape, _ids(merging), domain=domain, following=following)
    validate_ir(ir)
    _check_key_orders(merging, ir)
    return None if merging.found else Sealed(ir, shape, declarations, text)


def _checked(source: Source, *, stored: bool = False) -> tuple[tuple[Diagnostic, ...], Tree]:
    reporter = Reporter(source)
    parsed = parse(source, reporter)
    check_schema(parsed, reporter, stored=stored)
    return reporter.diagnostics, parsed.schema


# -- identity ----------------------------------------------------------------------------


def _ids(merging: Merging) -> Ids:
    types: dict[tuple[TypeKind, str], int] = {}
    properties: dict[tuple[TypeKind, str, str], int] = {}
    incarnations: dict[tuple[TypeKind, str], int] = {}
    for each in merging.types.values():
        owner = next(_declared(merging, each.id))
        types[each.kind, each.name] = owner.own_id
        if owner.incarnation is not None:
            incarnations[each.kind, each.name] = owner.incarnation
        for property_id in (*each.properties, *each.injected):
            name = each.property_name(property_id)
            properties[each.kind, each.name, name] = own_property_id(merging, each, property_id)
    return Ids(types, properties, incarnations)


def own_property_id(merging: Merging, owner: MergedType, property_id: int) -> int:
    """The identity of a property in the merged schema: the target's, where it has it."""
    versions = (each.properties.get(property_id) for each in _declared(merging, owner.id))
    return next(found.own_id for found in versions if found is not None)


def _declared(merging: Merging, type_id: int) -> Iterator[DeclaredType]:
    """The versions of a type, the target's first."""
    base, source, target = merging.versions(type_id)
    yield from (each for each in (target, source, base) if each is not None)


def _check_key_orders(merging: Merging, ir: SchemaIR) -> None:
    """Refuse a key whose members have another order than on a side: its ids would change."""
    for table in ir.tables():
        key = next((found.fields for found in table.constraints if found.kind == "key"), ())
        ids = sorted(found.property_id for found in key if isinstance(found, PropertyField))
        order = tuple(merging.same.find(each) for each in ids)
        type_id = merging.same.find(table.type_id)
        for side in SIDES:
            owner = merging.model(side).types.get(type_id)
            if owner is None or sorted(owner.key_order) != sorted(order):
                continue
            if owner.key_order != order:
                merging.report(
                    "schema_divergent_change",
                    Place(type_id, None, ("order of the key",)),
                    f"the sides make the ids of {merging.called(Place(type_id))} from its key in "
                    "a different order: give one of the branches another key",
                    ways={},
                )
                break


# -- blame -------------------------------------------------------------------------------


def _blame(
    merging: Merging, found: Diagnostic, declarations: tuple[Written, ...], tree: Tree
) -> None:
    """Report a broken rule where it shows."""
    place = _place(merging, found, declarations, tree)
    owner = merging.types[place.type_id]
    whole = Place(owner.id, None, WHOLE)
    around = [Place(each, None, WHOLE) for each in sorted(_related_types(merging, owner))]
    ways = [Decision((whole,)), Decision((whole, *around))]
    if place.property_id is not None:
        related = tuple(_related(merging, owner, place.property_id))
        said = tuple(Place(each.type_id, each.property_id, SAID) for each in related)
        ways = [Decision(said), Decision(related), *ways]
    merging.report(
        "schema_divergent_change",
        Place(place.type_id, place.property_id, ("rule", found.message)),
        f"the changes of both sides do not go together: {found.message}",
        ways=dict.fromkeys(SIDES, tuple(ways)),
    )


def _place(
    merging: Merging, found: Diagnostic, declarations: tuple[Written, ...], tree: Tree
) -> Place:
    for each, parsed in zip(declarations, tree.declarations, strict=True):
        if parsed.span.start <= found.span.start <= parsed.span.end:
            owner = merging.types[each.type_id]
            ids = (*owner.properties, *owner.injected)
            names = {owner.property_name(property_id): property_id for property_id in ids}
            for member in _members(parsed):
                if member.span.start <= found.span.start <= member.span.end:
                    name = _about(member)
                    return Place(each.type_id, None if name is None else names.get(name))
            return Place(each.type_id)
    raise AssertionError("a mistake lies in a declaration")


def _members(declaration: Declaration) -> tuple[Member, ...]:
    if isinstance(declaration, Interface):
        return declaration.properties
    return declaration.members


def _about(member: Member) -> str | None:
    if isinstance(member, Property):
        return member.name.text
    return next((each.text for each in member.arguments if isinstance(each, Argument)), None)


def _related(merging: Merging, owner: MergedType, property_id: int) -> Iterator[Place]:
    """A property, what it is embedded from, and what interfaces ask of it."""
    yield Place(owner.id, property_id, ALL)
    element = owner.properties.get(property_id, {}).get(EMBED)
    match None if element is None else element.meaning:
        case (int() as source, _):
            yield Place(owner.id, source, ALL)
    name = owner.property_name(property_id)
    for interface in owner.implemented():
        for asked, elements in merging.types[interface].properties.items():
            if elements[NAME].meaning == name:
                yield Place(interface, asked, ALL)


def _related_types(merging: Merging, owner: MergedType) -> set[int]:
    """The interfaces of a node, the nodes of an interface, the ends of an edge, on any side."""
    found: set[int] = set()
    for model in (merging.source, merging.target):
        for each in model.types.values():
            interfaces = {aspect[1] for aspect in each.elements if aspect[0] == "implements"}
            if each.id == owner.id:
                found |= {each for each in interfaces if isinstance(each, int)}
            elif owner.id in interfaces:
                found.add(each.id)
    ends = owner.elements.get(ENDS)
    match None if ends is None else ends.meaning:
        case (int() as start, int() as end):
            found |= {start, end}
    return found & merging.types.keys()
