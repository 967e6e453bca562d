"""Which identities are one thing: what both sides added alike, and what earlier merges joined.

Owns the equivalence of ids and when two additions are equal. The declarations must say the
same, whatever order or spelling they have. Never merges anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from omnigraph.lang.schema.ir.ir import TypeKind
from omnigraph.lang.schema.merge.model import (
    EMBED,
    ENDS,
    KEY,
    NAME,
    DeclaredProperty,
    DeclaredType,
    Elements,
    Model,
    members_of,
)

Pair = tuple[int, int]
Unified = Mapping[int, int] | Iterable[Pair]

_KINDS: tuple[TypeKind, ...] = ("interface", "node", "edge")


class Equivalence:
    """Identities in classes; the smallest stands for all of its class."""

    def __init__(self, pairs: Unified = ()) -> None:
        self._parent: dict[int, int] = {}
        for left, right in pairs.items() if isinstance(pairs, Mapping) else pairs:
            self.join(left, right)

    def find(self, identity: int) -> int:
        """The identity that stands for this one and all that are the same thing."""
        while (parent := self._parent.get(identity, identity)) != identity:
            identity = parent
        return identity

    def join(self, left: int, right: int) -> None:
        """Make two identities one thing."""
        low, high = sorted((self.find(left), self.find(right)))
        if low != high:
            self._parent[high] = low


def join_equal_additions(base: Model, source: Model, target: Model, same: Equivalence) -> bool:
    """Join what both sides added alike; false when there was nothing to join.

    Interfaces first, then nodes, then edges: what refers to things that became one may be equal
    because of that. The models are to be read anew afterwards.
    """
    joined = False
    for kind in _KINDS:
        for theirs, ours in _both_new(base, source, target, kind):
            if _type_signature(theirs, same) == _type_signature(ours, same):
                for pair in pairs_of(theirs, ours):
                    same.join(*pair)
                joined = True
        for theirs, ours in _shared(source, target, kind, same):
            for pair in _equal_properties(base, theirs, ours, same):
                same.join(*pair)
                joined = True
    return joined


def pairs_of(theirs: DeclaredType, ours: DeclaredType) -> Iterator[Pair]:
    """The ids of two types that become one: their own, their tables', their properties' by name."""
    yield theirs.own_id, ours.own_id
    if theirs.incarnation is not None and ours.incarnation is not None:
        yield theirs.incarnation, ours.incarnation
    for property_ in theirs.properties.values():
        twin = ours.named(property_.name)
        if twin is not None:
            yield property_.own_id, twin.own_id


def can_share_rows(theirs: DeclaredType, ours: DeclaredType, same: Equivalence) -> bool:
    """Whether rows of both can be rows of one: an id means the same, and so does an end."""
    return (
        theirs.kind == ours.kind
        and theirs.name == ours.name
        and _ends(theirs, same) == _ends(ours, same)
        and _row_key(theirs) == _row_key(ours)
    )


def _both_new(
    base: Model, source: Model, target: Model, kind: TypeKind
) -> Iterator[tuple[DeclaredType, DeclaredType]]:
    """Types of one name that each side has added."""
    ours = {
        each.name: each
        for each in target.types.values()
        if each.kind == kind and each.id not in base.types and each.id not in source.types
    }
    for each in source.types.values():
        new = each.kind == kind and each.id not in base.types and each.id not in target.types
        if new and each.name in ours:
            yield each, ours[each.name]


def _shared(
    source: Model, target: Model, kind: TypeKind, same: Equivalence
) -> Iterator[tuple[DeclaredType, DeclaredType]]:
    ours = {same.find(each.id): each for each in target.types.values() if each.kind == kind}
    for each in source.types.values():
        if each.kind == kind and same.find(each.id) in ours:
            yield each, ours[same.find(each.id)]


def _equal_properties(
    base: Model, theirs: DeclaredType, ours: DeclaredType, same: Equivalence
) -> Iterator[Pair]:
    """Properties of one name that each side has added to one type."""
    before = base.types.get(theirs.id) or base.types.get(ours.id)
    old = set() if before is None else {same.find(each) for each in before.properties}
    for property_ in theirs.properties.values():
        twin = ours.named(property_.name)
        if twin is None or same.find(property_.id) == same.find(twin.id):
            continue
        if same.find(property_.id) in old or same.find(twin.id) in old:
            continue
        if _property_signature(property_, theirs) == _property_signature(twin, ours):
            yield property_.own_id, twin.own_id


# -- what declarations say, whatever the identities in them ------------------------------


def _type_signature(each: DeclaredType, same: Equivalence) -> Hashable:
    properties = frozenset(
        (found.name, _named_elements(found.elements, each))
        for found in each.properties.values()
        if found.direct
    )
    elements = frozenset(
        (_named_aspect(aspect, each, same), None if aspect in (KEY, ENDS) else element.meaning)
        for aspect, element in each.elements.items()
        if aspect[0] != "spelled"
    )
    return (elements, properties, _ends(each, same), _own_key(each), _row_key(each))


def _property_signature(found: DeclaredProperty, owner: DeclaredType) -> Hashable:
    return (_named_elements(found.elements, owner), found.flags)


def _named_elements(elements: Elements, owner: DeclaredType) -> Hashable:
    said = {aspect: each.meaning for aspect, each in elements.items() if aspect != NAME}
    match said.get(EMBED):
        case (int() as source, model):
            said[EMBED] = (owner.properties[source].name, model)
    return frozenset(said.items())


def _named_aspect(aspect: tuple[Hashable, ...], owner: DeclaredType, same: Equivalence) -> Hashable:
    match aspect:
        case ("implements", int() as interface):
            return ("implements", same.find(interface))
        case ("key",) | ("ends",):
            return aspect
        case _:
            members = members_of(aspect, owner.elements[aspect])
            return (aspect[0], _names(members, owner)) if members else aspect


def _names(members: Iterable[int | str], owner: DeclaredType) -> frozenset[str]:
    return frozenset(
        owner.properties[member].name if isinstance(member, int) else member for member in members
    )


def _own_key(each: DeclaredType) -> Hashable:
    """The key that a type itself declares."""
    key = each.elements.get(KEY)
    return None if key is None else _names(members_of(KEY, key), each)


def _row_key(each: DeclaredType) -> Hashable:
    """What the ids of rows are made of, in this order."""
    names = tuple(each.properties[member].name for member in each.key_order)
    return (each.kind == "edge" and KEY in each.elements, names)


def _ends(each: DeclaredType, same: Equivalence) -> Hashable:
    ends = each.elements.get(ENDS)
    match None if ends is None else ends.meaning:
        case (int() as start, int() as end):
            return (same.find(start), same.find(end))
    return None
