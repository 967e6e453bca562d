"""Elements three ways: what one side changed is taken, what both changed must be the same.

Owns that rule and its two exceptions: values of an enum are elements of their own, and a side
that dropped what an element is about has no opinion on it. Never looks beyond one declaration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from omnigraph.lang.schema.merge.merging import Merging, Place
from omnigraph.lang.schema.merge.model import (
    EMBED,
    NAME,
    TYPE,
    Aspect,
    DeclaredProperty,
    DeclaredType,
    Element,
    Elements,
    Member,
    Model,
    members_of,
)
from omnigraph.lang.schema.merge.wording import shown, subject
from omnigraph.lang.types import Scalar, ValueType

Versions = tuple[Elements, Elements, Elements]
"""The elements of one declaration in base, source and target."""

_Three = tuple[Element | None, Element | None, Element | None]


def merged_property(merging: Merging, place: Place, versions: Versions) -> dict[Aspect, Element]:
    """The elements of one property."""
    return _merged(merging, place, versions)


def merged_type(
    merging: Merging,
    type_id: int,
    types: tuple[DeclaredType | None, DeclaredType, DeclaredType],
) -> dict[Aspect, Element]:
    """The elements of a type, but for its properties."""
    base, source, target = types
    before: Elements = {} if base is None else base.elements
    versions = (
        before,
        _opinion(before, source, merging.source),
        _opinion(before, target, merging.target),
    )
    return _merged(merging, Place(type_id), versions)


def _opinion(before: Elements, side: DeclaredType, model: Model) -> Elements:
    """What a side says: it had to give up what is about things that it dropped."""
    silent = {
        aspect: element
        for aspect, element in before.items()
        if aspect not in side.elements
        and (
            (aspect[0] == "implements" and aspect[1] not in model.types)
            or any(
                isinstance(member, int) and member not in side.properties
                for member in members_of(aspect, element)
            )
        )
    }
    return {**side.elements, **silent} if silent else side.elements


def without_opinion_on_embed(
    before: DeclaredProperty, side: DeclaredProperty, owner: DeclaredType
) -> Elements:
    """What a side says of a property: it had to give up an `@embed` whose source it dropped."""
    former = before.elements.get(EMBED)
    match None if former is None else former.meaning:
        case (int() as source, _) if EMBED not in side.elements and source not in owner.properties:
            return {**side.elements, EMBED: before.elements[EMBED]}
    return side.elements


def _merged(merging: Merging, place: Place, versions: Versions) -> dict[Aspect, Element]:
    merged: dict[Aspect, Element] = {}
    for aspect in _aspects(versions):
        element = _three_way(
            merging, Place(place.type_id, place.property_id, aspect), _at(versions, aspect)
        )
        if element is not None:
            merged[aspect] = element
    return merged


def _aspects(versions: Versions) -> Iterator[Aspect]:
    """Every aspect of any version, in the order of the target."""
    yield from dict.fromkeys(aspect for each in reversed(versions) for aspect in each)


def _at(versions: Versions, aspect: Aspect) -> _Three:
    base, source, target = (version.get(aspect) for version in versions)
    return base, source, target


def _three_way(merging: Merging, place: Place, versions: _Three) -> Element | None:
    base, source, target = versions
    side = merging.side_for(place, _about(place.aspect, versions))
    if side is not None:
        if place.aspect[0] == "implements" and not merging.has(side, place.type_id):
            return None
        return source if side == "source" else target
    if source in (target, base):
        return target
    if target == base:
        return source
    if place.aspect == TYPE:
        joined = _joined_enum(versions)
        if joined is not None:
            return joined
    _report(merging, place, versions)
    return target


def _about(aspect: Aspect, versions: _Three) -> set[int]:
    found: Iterable[Member] = {
        member for each in versions if each is not None for member in members_of(aspect, each)
    }
    return {member for member in found if isinstance(member, int)}


def _joined_enum(versions: _Three) -> Element | None:
    """An enum with what either side added and without what either removed, if it was one."""
    base, source, target = (_enum_values(each) for each in versions)
    if base is None or source is None or target is None:
        return None
    values = (source & target) | ((source | target) - base)
    if not values:
        return None
    type_ = ValueType(Scalar.STRING, enum_values=tuple(sorted(values)))
    return Element((type_.scalar, type_.is_list, type_.dimension, values), type_)


def _enum_values(element: Element | None) -> frozenset[str] | None:
    meaning: Any = None if element is None else element.meaning
    return None if meaning is None else meaning[3]


def _report(merging: Merging, place: Place, versions: _Three) -> None:
    models = (merging.base, merging.source, merging.target)
    base, source, target = (
        shown(model, place, each) for model, each in zip(models, versions, strict=True)
    )
    match place.aspect:
        case ("range" | "check", int() as about):
            property_id: int | None = about
        case _:
            property_id = place.property_id
    told = merging.called(Place(place.type_id, property_id))
    message = (
        f"both sides changed {subject(place.aspect)} of {told}: "
        f"{source or 'nothing'} in the source, {target or 'nothing'} in the target"
    )
    if place.aspect == NAME:
        message = f"both sides renamed {base}: to {source} in the source, to {target} in the target"
    merging.report(
        "schema_divergent_change",
        place,
        message,
        shown=(base, source, target),
        property_id=property_id,
    )
