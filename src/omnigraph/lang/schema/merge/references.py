"""References in a merged schema: what one side dropped and the other refers to.

Owns interfaces and what they inject, the members of constraints, the sources of vectors and the
ends of edges. What a resolution has let go takes along what referred to it; anything else that
is missing is a conflict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from omnigraph.lang.schema.merge.conflicts import SIDES, Side, other_side
from omnigraph.lang.schema.merge.merging import (
    ALL,
    Decision,
    MergedType,
    Merging,
    Place,
)
from omnigraph.lang.schema.merge.model import (
    EMBED,
    ENDS,
    NAME,
    Aspect,
    DeclaredProperty,
    Element,
    Model,
    members_of,
)


def follow_references(merging: Merging) -> None:
    """Let interfaces inject, then drop or report whatever refers to nothing."""
    for node in merging.types.values():
        _check_interfaces(merging, node)
    for node in merging.types.values():
        if node.kind == "node":
            _inject(merging, node)
    for each in list(merging.types.values()):
        _check_members(merging, each)
        _check_embeds(merging, each)
    for edge in list(merging.types.values()):
        if edge.kind == "edge":
            _check_ends(merging, edge)


def _holding(
    merging: Merging, each: MergedType, property_id: int | None, aspect: Aspect
) -> Iterator[tuple[Side, Element]]:
    """The sides that have an element, the target first."""
    for side in reversed(SIDES):
        owner = merging.model(side).types.get(each.id)
        if owner is None:
            continue
        found = owner if property_id is None else owner.properties.get(property_id)
        element = None if found is None else found.elements.get(aspect)
        if element is not None:
            yield side, element


def _needed_by(
    merging: Merging, each: MergedType, property_id: int | None, aspect: Aspect, element: Element
) -> Side | None:
    """The side that has put an element where it is; None when it is as the base had it."""
    base = merging.base.types.get(each.id)
    owner = base if base is None or property_id is None else base.properties.get(property_id)
    if owner is not None and owner.elements.get(aspect) == element:
        return None
    holding = _holding(merging, each, property_id, aspect)
    return next((side for side, found in holding if found == element), None)


# -- interfaces ------------------------------------------------------------------------


def _check_interfaces(merging: Merging, node: MergedType) -> None:
    for interface in node.implemented():
        if interface in merging.types:
            continue
        aspect: Aspect = ("implements", interface)
        needed = _needed_by(merging, node, None, aspect, node.elements[aspect])
        del node.elements[aspect]
        if needed is not None and merging.side_for(Place(interface)) is None:
            why = f"which node {node.name} implements in the {needed}"
            merging.dropped(Place(interface), needed, why)


def _inject(merging: Merging, node: MergedType) -> None:
    """Find the identity of every property that the interfaces of a node ask for."""
    wanted: dict[str, set[int]] = {}
    origin: dict[int, int] = {}
    for interface in node.implemented():
        for property_id, elements in merging.types[interface].properties.items():
            wanted.setdefault(str(elements[NAME].meaning), set()).add(property_id)
            origin[property_id] = interface
    for property_id in node.properties:
        wanted.pop(node.property_name(property_id), None)
    for _, name, property_id in sorted(_answers(merging, node, wanted)):
        if name in wanted and not node.has(property_id):
            node.injected[property_id] = name
            del wanted[name]
    for name, asked in sorted(wanted.items()):
        _report_lacking(merging, node, name, asked, origin)
    for property_id in sorted(node.expected - node.injected.keys()):
        _give_up(merging, node, property_id)


def _answers(
    merging: Merging, node: MergedType, wanted: Mapping[str, set[int]]
) -> Iterator[tuple[tuple[bool, bool, int], str, int]]:
    """The properties that may answer to what is asked for by name, the likeliest smallest.

    First what stays anyway, then what a side has had answer where the other changed nothing,
    then what has answered on more sides: a rename of what two interfaces share parts them.
    """
    models = (merging.base, merging.source, merging.target)
    for name, asked in wanted.items():
        for each in asked:
            answers = [_answer(model, node.id, each) for model in models]
            base, source, target = answers
            latest = source if target == base else target
            for found in set(answers) - {None}:
                gone = Place(node.id, found) in merging.decided and found not in node.expected
                if found is not None and not gone:
                    rank = (found not in node.expected, found != latest, -answers.count(found))
                    yield rank, name, found


def _answer(model: Model, node: int, asked: int) -> int | None:
    owner = model.types.get(node)
    found = () if owner is None else owner.properties.values()
    return next((each.id for each in found if asked in each.satisfies), None)


def _report_lacking(
    merging: Merging, node: MergedType, name: str, asked: set[int], origin: dict[int, int]
) -> None:
    """A node that one side gave an interface, which on the other side asks for more."""
    property_id = min(asked)
    interface = merging.types[origin[property_id]]
    if any(place.type_id in (node.id, interface.id) for place in merging.unsure):
        return
    places = [Place(node.id, None, ("implements", interface.id))]
    places += [
        Place(interface.id, each, ALL) for each in sorted(asked) if origin[each] == interface.id
    ]
    candidates = {
        each.id
        for side in SIDES
        if node.id in merging.model(side).types
        for each in merging.model(side).types[node.id].properties.values()
        if each.satisfies & asked
    }
    places += [Place(node.id, each, ALL) for each in sorted(candidates)]
    decision = (Decision(tuple(places)),)
    merging.report(
        "schema_divergent_change",
        Place(interface.id, property_id, ("asks", node.id)),
        f"interface {interface.name} asks for `{name}`, which node {node.name} does not have: "
        "one side has the interface ask for it, the other has the node as it is",
        ways=dict.fromkeys(SIDES, decision),
        also=merging.names(Place(node.id)),
    )


def _give_up(merging: Merging, node: MergedType, property_id: int) -> None:
    """A property that no interface injects any more."""
    place = Place(node.id, property_id)
    if place in merging.unsure:
        return
    side = merging.side_for(place)
    if side is not None:
        _declare(merging, node, property_id, side)
        return
    for holder in SIDES:
        found = merging.has(holder, node.id, property_id)
        if found and merging.wrote(holder, node.id, property_id):
            merging.report(
                "schema_drop_change",
                place,
                f"the {holder} wrote values to {merging.called(place)}, which comes from an "
                f"interface that asks for it no more in the {other_side(holder)}",
            )
            return


def _declare(merging: Merging, node: MergedType, property_id: int, side: Side) -> None:
    """Have a node declare a property itself, as interfaces did on this side."""
    found: DeclaredProperty | None = merging.model(side).property(node.id, property_id)
    if found is not None:
        node.properties[property_id] = dict(found.elements)


# -- members and sources ---------------------------------------------------------------


def _check_members(merging: Merging, each: MergedType) -> None:
    for aspect, element in list(each.elements.items()):
        members = members_of(aspect, element)
        lost = sorted(
            member for member in members if isinstance(member, int) and not each.has(member)
        )
        if not lost:
            continue
        needed = _needed_by(merging, each, None, aspect, element)
        del each.elements[aspect]
        if needed is not None and aspect[0] != "spelled":
            why = f"which the {needed} needs for `@{aspect[0]}`"
            _report_lost(merging, each, lost, needed, why)


def _check_embeds(merging: Merging, each: MergedType) -> None:
    for property_id, elements in each.properties.items():
        element = elements.get(EMBED)
        match None if element is None else element.meaning:
            case (int() as source, _) if element is not None and not each.has(source):
                needed = _needed_by(merging, each, property_id, EMBED, element)
                del elements[EMBED]
                if needed is not None:
                    name = each.property_name(property_id)
                    why = f"from which the {needed} embeds `{name}`"
                    _report_lost(merging, each, [source], needed, why)


def _report_lost(
    merging: Merging, each: MergedType, lost: list[int], needed: Side, why: str
) -> None:
    for member in lost:
        place = Place(each.id, member)
        if place not in merging.unsure and merging.side_for(place) is None:
            merging.dropped(place, needed, why)


# -- ends ------------------------------------------------------------------------------


def _check_ends(merging: Merging, edge: MergedType) -> None:
    lost = sorted({end for end in _ends(edge.elements[ENDS]) if end not in merging.types})
    undecided = [end for end in lost if merging.side_for(Place(end)) is None]
    for end in undecided:
        needed = merging.holder(end)
        if needed is not None and Place(end) not in merging.unsure:
            why = f"to which edge {edge.name} leads in the {needed}"
            merging.dropped(Place(end), needed, why)
    if lost and not undecided:
        _report_lost_end(merging, edge, lost[0])


def _report_lost_end(merging: Merging, edge: MergedType, end: int) -> None:
    """An edge whose end goes by a resolution goes too, or stays as the other side has it."""
    side = merging.side_for(Place(end))
    if side is None or Place(edge.id) in merging.unsure:
        return
    owner = merging.model(side).types.get(edge.id)
    elsewhere = owner is not None and all(
        each in merging.types for each in _ends(owner.elements[ENDS])
    )
    place = Place(edge.id, None, ENDS) if elsewhere else Place(edge.id)
    merging.report(
        "schema_drop_change",
        place,
        f"edge {edge.name} leads to {merging.called(Place(end))}, which goes as the {side} has it",
        ways={side: (Decision((place,)),)},
        also=merging.names(Place(end)),
    )


def _ends(element: Element) -> tuple[int, int]:
    match element.meaning:
        case (int() as start, int() as end):
            return start, end
    raise AssertionError("an edge has two ends")
