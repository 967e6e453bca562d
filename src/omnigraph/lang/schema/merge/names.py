"""Names in a merged schema: two things that would be called the same.

Owns such collisions: what both sides added under one name and declare differently, and a rename
to a name that the other side has given. Never renames anything by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.schema.merge.conflicts import SIDES, Side
from omnigraph.lang.schema.merge.merging import (
    ALL,
    WHOLE,
    Decision,
    MergedType,
    Merging,
    Place,
)
from omnigraph.lang.schema.merge.model import NAME
from omnigraph.lang.schema.merge.same_things import Pair, can_share_rows, pairs_of


def check_names(merging: Merging) -> None:
    """Report every name that two types of a kind, or two properties of a type, would have."""
    groups: dict[tuple[str | int, str], list[Place]] = {}
    for each in merging.types.values():
        groups.setdefault((each.kind, _folded(each.kind, each.name)), []).append(Place(each.id))
        for property_id, name in _property_names(merging, each):
            groups.setdefault((each.id, name), []).append(Place(each.id, property_id))
    for (_, name), found in groups.items():
        if len(found) > 1:
            _report(merging, found, name)


def _folded(kind: str, name: str) -> str:
    # Queries look edges up in any case.
    return name.lower() if kind == "edge" else name


def _property_names(merging: Merging, each: MergedType) -> Iterator[tuple[int, str]]:
    """Its properties by name, also those that it only should have had."""
    for property_id in (*each.properties, *each.injected):
        yield property_id, each.property_name(property_id)
    for property_id in sorted(each.expected - each.injected.keys() - each.properties.keys()):
        holder = merging.holder(each.id, property_id)
        name = None if holder is None else _name(merging, holder, Place(each.id, property_id))
        if name is not None:
            yield property_id, name


def _report(merging: Merging, found: list[Place], name: str) -> None:
    unsure = {(place.type_id, place.property_id) for place in merging.unsure}
    if any((place.type_id, place.property_id) in unsure for place in found):
        return
    so_named = {side: _so_named(merging, side, found, name) for side in SIDES}
    added = _added_by_both(merging, so_named)
    everything = Decision(tuple(map(_everything, found)))
    ways: dict[Side, tuple[Decision, ...]] = {
        side: (_without_others(merging, side, found, name), everything) for side in SIDES
    }
    if added is not None:
        joined = _joined(merging, *added)
        ways = ways if joined is None else dict.fromkeys(SIDES, (joined,))
    told = so_named["target"] or found[0]
    merging.report(
        "schema_divergent_add",
        Place(told.type_id, told.property_id, ("called", name)),
        f"both sides added {merging.called(told)} and declare it differently"
        if added is not None
        else f"the sides call two different things {merging.called(told)}",
        ways=ways,
        shown=(
            None,
            _text(merging, "source", so_named["source"]),
            _text(merging, "target", so_named["target"]),
        ),
        also=[each for place in found for each in merging.names(place)],
    )


def _name(merging: Merging, side: Side, place: Place) -> str | None:
    """What a side calls a type or property, in the form in which names are compared."""
    owner = merging.model(side).types.get(place.type_id)
    if owner is None:
        return None
    if place.property_id is None:
        return _folded(owner.kind, owner.name)
    found = owner.properties.get(place.property_id)
    return None if found is None else found.name


def _so_named(merging: Merging, side: Side, found: list[Place], name: str) -> Place | None:
    return next((place for place in found if _name(merging, side, place) == name), None)


def _added_by_both(
    merging: Merging, so_named: dict[Side, Place | None]
) -> tuple[Place, Place] | None:
    """What the source and what the target has added under one name."""
    theirs, ours = so_named["source"], so_named["target"]
    if theirs is None or ours is None or theirs == ours:
        return None
    new = all(
        merging.holder(place.type_id, place.property_id) == side and not _in_base(merging, place)
        for side, place in (("source", theirs), ("target", ours))
    )
    return (theirs, ours) if new else None


def _in_base(merging: Merging, place: Place) -> bool:
    if place.property_id is None:
        return place.type_id in merging.base.types
    return merging.base.property(place.type_id, place.property_id) is not None


def _joined(merging: Merging, theirs: Place, ours: Place) -> Decision | None:
    """Both become one that is declared as one side has it; None where rows cannot be shared."""
    left, right = merging.source.types[theirs.type_id], merging.target.types[ours.type_id]
    if theirs.property_id is None or ours.property_id is None:
        if not can_share_rows(left, right, merging.same):
            return None
        return Decision((Place(theirs.type_id, None, WHOLE),), tuple(pairs_of(left, right)))
    pair: Pair = (
        left.properties[theirs.property_id].own_id,
        right.properties[ours.property_id].own_id,
    )
    return Decision((Place(theirs.type_id, theirs.property_id, ALL),), (pair,))


def _without_others(merging: Merging, side: Side, found: list[Place], name: str) -> Decision:
    """A side keeps its own; the rest is called as on that side, or goes if it is not there."""
    places = []
    for place in found:
        here = _name(merging, side, place)
        if here is None:
            places.append(place)
        elif here != name:
            places.append(Place(place.type_id, place.property_id, NAME))
    return Decision(tuple(places))


def _everything(place: Place) -> Place:
    aspect = WHOLE if place.property_id is None else ALL
    return Place(place.type_id, place.property_id, aspect)


def _text(merging: Merging, side: Side, place: Place | None) -> str | None:
    return None if place is None else merging.text(merging.model(side), place)
