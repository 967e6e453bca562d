"""Types and properties three ways: which of them stay, and what they say.

Owns existence: what one side dropped goes unless the other changed it or wrote values to it.
A side that lacks a thing says nothing about what is in it. Never follows a reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.merge.conflicts import Side
from omnigraph.lang.schema.merge.elements import (
    merged_property,
    merged_type,
    without_opinion_on_embed,
)
from omnigraph.lang.schema.merge.merging import (
    ALL,
    WHOLE,
    MergedType,
    Merging,
    Place,
)
from omnigraph.lang.schema.merge.model import (
    EMBED,
    Aspect,
    DeclaredProperty,
    DeclaredType,
    Element,
    Elements,
    members_of,
)

DIRECT: Aspect = ("direct",)
"""Whether a node declares a property itself."""

_Types = tuple[DeclaredType | None, DeclaredType, DeclaredType]
_Properties = tuple[DeclaredProperty | None, DeclaredProperty | None, DeclaredProperty | None]


def merge_declarations(merging: Merging) -> None:
    """Merge every type that stays with its own properties."""
    for type_id in _order(merging):
        base, source, target = merging.versions(type_id)
        if not _type_stays(merging, type_id):
            continue
        kept = target or source
        if kept is None:
            raise AssertionError("a type stays that no side has")
        if len({each.kind for each in (base, source, target) if each is not None}) > 1:
            raise SchemaError(f"one identity is used twice: {kept.name} is of two kinds")
        types = (base, source or base or kept, target or base or kept)
        if base is None and _is_divergent(merging, type_id, types):
            types = (None, types[2], types[2])
        merged = MergedType(kept.kind, type_id, merged_type(merging, type_id, types))
        merging.types[type_id] = merged
        for property_id in _property_order(types):
            _merge_property(merging, merged, property_id, types)


def _order(merging: Merging) -> Iterator[int]:
    """Every type, as the target has them and then what only the source has."""
    yield from dict.fromkeys([*merging.target.types, *merging.source.types])


def _property_order(types: _Types) -> Iterator[int]:
    base, source, target = types
    before = () if base is None else tuple(base.properties)
    yield from dict.fromkeys([*target.properties, *source.properties, *before])


# -- types -----------------------------------------------------------------------------


def _type_stays(merging: Merging, type_id: int) -> bool:
    place, holder = Place(type_id), merging.holder(type_id)
    if holder is None:
        return True
    side = merging.side_for(place)
    if side is not None:
        return side == holder
    base = merging.base.types.get(type_id)
    if base is None:
        return True
    if _says_other(base, merging.model(holder).types[type_id]):
        merging.dropped(place, holder, f"which the {holder} changed")
        return True
    if merging.wrote(holder, type_id):
        merging.dropped(place, holder, f"to which the {holder} wrote rows")
        return True
    return False


def _says_other(left: DeclaredType, right: DeclaredType) -> bool:
    return _said(left.elements) != _said(right.elements) or _own(left) != _own(right)


def _said(elements: Elements) -> dict[Aspect, Element]:
    """The elements without the places that constraints are written in."""
    return {aspect: each for aspect, each in elements.items() if aspect[0] != "spelled"}


def _own(each: DeclaredType) -> dict[int, Elements]:
    return {found.id: found.elements for found in each.properties.values() if found.direct}


def _is_divergent(merging: Merging, type_id: int, types: _Types) -> bool:
    """Whether both sides added a type that is known to be one and say different things of it."""
    _, source, target = types
    whole = Place(type_id, None, WHOLE)
    if merging.side_for(whole) is not None or not _says_other(source, target):
        return False
    merging.report(
        "schema_divergent_add",
        whole,
        f"both sides added {merging.called(whole)} and declare it differently",
    )
    return True


# -- properties ------------------------------------------------------------------------


def _merge_property(merging: Merging, merged: MergedType, property_id: int, types: _Types) -> None:
    found = _versions(property_id, types)
    if not _property_stays(merging, merged, property_id, types):
        return
    place = Place(merged.id, property_id)
    base, source, target = found
    if base is None and source is not None and target is not None:
        own = source.direct or target.direct
        if own and source.elements != target.elements:
            everything = Place(merged.id, property_id, ALL)
            if merging.side_for(everything) is None:
                merging.report(
                    "schema_divergent_add",
                    everything,
                    f"both sides added {merging.called(place)} and declare it differently",
                )
                found = (None, target, target)
    if not _is_direct(merging, place, found):
        merged.expected.add(property_id)
        return
    versions = _opinions(found, types)
    merged.properties[property_id] = merged_property(merging, place, versions)


def _versions(property_id: int, types: _Types) -> _Properties:
    base, source, target = (
        None if each is None else each.properties.get(property_id) for each in types
    )
    return base, source, target


def _property_stays(merging: Merging, merged: MergedType, property_id: int, types: _Types) -> bool:
    place = Place(merged.id, property_id)
    base, source, target = _versions(property_id, types)
    side = merging.side_for(place)
    if side is not None:
        return merging.has(side, merged.id, property_id)
    if source is None and target is None:
        return False
    if base is None or (source is not None and target is not None):
        return True
    holder: Side = "source" if target is None else "target"
    if not merging.has(holder, merged.id):
        return False
    owner = types[1] if holder == "source" else types[2]
    if is_changed(property_id, types[0], owner):
        merging.dropped(place, holder, f"which the {holder} changed")
        return True
    if merging.wrote(holder, merged.id, property_id):
        merging.dropped(place, holder, f"to which the {holder} wrote values")
        return True
    return False


def is_changed(property_id: int, base: DeclaredType | None, side: DeclaredType) -> bool:
    """Whether a side says other things of a property than the base, or uses it for more."""
    before = None if base is None else base.properties.get(property_id)
    after = side.properties[property_id]
    if base is None or before is None:
        return True
    own = before.direct or after.direct
    if own and (before.direct != after.direct or before.elements != after.elements):
        return True
    if after.satisfies - before.satisfies:
        return True
    return any(
        property_id in members_of(aspect, element) and base.elements.get(aspect) != element
        for aspect, element in _said(side.elements).items()
    ) or any(
        embeds(each.elements, property_id) and not _embedded(base, each, property_id)
        for each in side.properties.values()
        if each.direct
    )


def embeds(elements: Elements, property_id: int) -> bool:
    """Whether a vector is computed from a property."""
    found = elements.get(EMBED)
    match None if found is None else found.meaning:
        case (int() as source, _):
            return source == property_id
    return False


def _embedded(base: DeclaredType, vector: DeclaredProperty, property_id: int) -> bool:
    before = base.properties.get(vector.id)
    return before is not None and embeds(before.elements, property_id)


def _is_direct(merging: Merging, place: Place, found: _Properties) -> bool:
    """Whether the node declares the property itself; else its interfaces are to inject it."""
    base, source, target = found
    sides = [each for each in (source, target) if each is not None]
    side = merging.side_for(Place(place.type_id, place.property_id, DIRECT))
    chosen = {"source": source, "target": target}.get(side or "")
    if chosen is not None:
        return chosen.direct
    if base is None:
        return any(each.direct for each in sides)
    changed = [each.direct for each in sides if each.direct != base.direct]
    direct = changed[0] if changed else base.direct
    # What one side moved to an interface while the other changed it stays with the node,
    # which may say more of a property than its interface does.
    return direct or any(
        each.direct and base.direct and each.elements != base.elements for each in sides
    )


def _opinions(found: _Properties, types: _Types) -> tuple[Elements, Elements, Elements]:
    base, source, target = found
    if base is None:
        any_side = source or target
        if any_side is None:
            raise AssertionError("a property stays that no side has")
        return {}, (source or any_side).elements, (target or any_side).elements
    return (
        base.elements,
        _opinion(base, source, types[1]),
        _opinion(base, target, types[2]),
    )


def _opinion(
    base: DeclaredProperty, side: DeclaredProperty | None, owner: DeclaredType
) -> Elements:
    """What a side says of a property; nothing of its own where interfaces speak for it."""
    if side is None or not (base.direct or side.direct):
        return base.elements
    return without_opinion_on_embed(base, side, owner)
