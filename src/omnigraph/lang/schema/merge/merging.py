"""One attempt at a merge: three models, what was decided about them, and what came out so far.

Owns the decisions of a resolution by place, and how a conflict is told. Never decides which side
is right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from omnigraph.lang.schema.ir.ir import TypeKind
from omnigraph.lang.schema.merge.conflicts import (
    SIDES,
    ElementName,
    SchemaConflict,
    SchemaConflictKind,
    Side,
    other_side,
)
from omnigraph.lang.schema.merge.model import (
    NAME,
    Aspect,
    DeclaredProperty,
    DeclaredType,
    Element,
    Model,
)
from omnigraph.lang.schema.merge.same_things import Equivalence, Pair
from omnigraph.lang.schema.syntax.format import declaration_text, member_text

EXISTS: Aspect = ("exists",)
SAID: Aspect = ("said",)
"""Everything that is said of a property, and the constraints over it."""
ALL: Aspect = ("all",)
"""The same, and whether the property is there."""
WHOLE: Aspect = ("whole",)
"""Everything about a type, its properties and its existence included."""


class TouchedData(Protocol):
    """What the sides did to rows since the base."""

    def wrote_values(
        self, side: Literal["source", "target"], type_id: int, property_id: int | None
    ) -> bool:
        """Whether a side inserted rows or changed values to other than null.

        The ids are those of that side; without a property the whole type is meant.
        """
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """An element of a schema by identity; without a property one of the type itself."""

    type_id: int
    property_id: int | None = None
    aspect: Aspect = EXISTS

    def moved(self, same: Equivalence) -> Place:
        """The same place, when more identities have become one."""
        property_id = None if self.property_id is None else same.find(self.property_id)
        aspect = tuple(same.find(each) if isinstance(each, int) else each for each in self.aspect)
        return Place(same.find(self.type_id), property_id, aspect)


@dataclass(frozen=True, slots=True)
class Decision:
    """What taking a side means in one conflict: places to take from it, ids to make one."""

    places: tuple[Place, ...] = ()
    joins: tuple[Pair, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A conflict and what settles it: for each side decisions, to be tried one after another."""

    conflict: SchemaConflict
    about: Hashable
    names: frozenset[ElementName]
    ways: Mapping[Side, tuple[Decision, ...]]


@dataclass(slots=True)
class MergedType:
    """A type as far as it is merged.

    ``properties`` are the elements of what it declares itself. ``expected`` are properties that
    its interfaces should inject, ``injected`` those that they do, by the name they give.
    """

    kind: TypeKind
    id: int
    elements: dict[Aspect, Element]
    properties: dict[int, dict[Aspect, Element]] = field(default_factory=dict)
    expected: set[int] = field(default_factory=set)
    injected: dict[int, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called."""
        return str(self.elements[NAME].meaning)

    def property_name(self, property_id: int) -> str:
        """What a property of it is called."""
        own = self.properties.get(property_id)
        return self.injected[property_id] if own is None else str(own[NAME].meaning)

    def implemented(self) -> list[int]:
        """The interfaces that it implements."""
        found = (aspect for aspect in self.elements if aspect[0] == "implements")
        return [each for _, each in found if isinstance(each, int)]

    def has(self, property_id: int) -> bool:
        """Whether it has a property, its own or from an interface."""
        return property_id in self.properties or property_id in self.injected


@dataclass(slots=True)
class Merging:
    """The models, the decisions so far, and what this attempt has found."""

    base: Model
    source: Model
    target: Model
    same: Equivalence
    decided: Mapping[Place, Side]
    touched: TouchedData
    types: dict[int, MergedType] = field(default_factory=dict)
    found: list[Found] = field(default_factory=list)
    unsure: set[Place] = field(default_factory=set)
    """Places in a conflict that nobody has settled: what depends on them is not judged."""

    def model(self, side: Side) -> Model:
        """The schema of a side."""
        return self.source if side == "source" else self.target

    def versions(
        self, type_id: int
    ) -> tuple[DeclaredType | None, DeclaredType | None, DeclaredType | None]:
        """A type in the base, the source and the target."""
        return (
            self.base.types.get(type_id),
            self.source.types.get(type_id),
            self.target.types.get(type_id),
        )

    def holder(self, type_id: int, property_id: int | None = None) -> Side | None:
        """The one side that has a type or property; None when both have it, or neither."""
        has = [side for side in SIDES if self.has(side, type_id, property_id)]
        return has[0] if len(has) == 1 else None

    def has(self, side: Side, type_id: int, property_id: int | None = None) -> bool:
        """Whether a side has a type or a property."""
        found = self.model(side)
        if property_id is None:
            return type_id in found.types
        return found.property(type_id, property_id) is not None

    # -- decisions -----------------------------------------------------------------

    def side_for(self, place: Place, members: Iterable[int] = ()) -> Side | None:
        """The side that was decided for a place; ``members`` are what a constraint is about."""
        about = (place.property_id, *members)
        wider = [place, *(Place(place.type_id, each, ALL) for each in about)]
        if place.aspect != EXISTS:
            wider += [Place(place.type_id, each, SAID) for each in about]
        wider.append(Place(place.type_id, None, WHOLE))
        return next((self.decided[each] for each in wider if each in self.decided), None)

    def wrote(self, side: Side, type_id: int, property_id: int | None = None) -> bool:
        """Whether a side wrote values to a type or property that it has."""
        owner = self.model(side).types[type_id]
        if owner.kind == "interface":
            return False
        own = None if property_id is None else owner.properties[property_id].own_id
        return self.touched.wrote_values(side, owner.own_id, own)

    # -- conflicts -----------------------------------------------------------------

    def report(
        self,
        kind: SchemaConflictKind,
        place: Place,
        message: str,
        *,
        ways: Mapping[Side, tuple[Decision, ...]] | None = None,
        shown: tuple[str | None, str | None, str | None] | None = None,
        property_id: int | None = None,
        also: Iterable[ElementName] = (),
    ) -> None:
        """Note a conflict; without ``ways`` a side is taken for the place itself.

        It is told of ``property_id`` where the place is an element of the type about it.
        ``also`` are names by which the conflict can be resolved besides those of its place.
        """
        self.unsure.add(place)
        told = place if property_id is None else Place(place.type_id, property_id)
        owner = self._latest(told.type_id)
        property_ = self._latest_property(told)
        base, source, target = self._declared(told) if shown is None else shown
        conflict = SchemaConflict(
            kind,
            owner.kind,
            owner.name,
            message,
            None if property_ is None else property_.name,
            base,
            source,
            target,
        )
        if ways is None:
            ways = {side: (Decision((place,)),) for side in SIDES}
        names = frozenset([*self.names(told), *also])
        self.found.append(Found(conflict, (kind, place), names, ways))

    def dropped(self, place: Place, keeper: Side, why: str) -> None:
        """Note that the other side dropped what this one needs."""
        dropper = other_side(keeper)
        # The side that dropped it may never have known another name.
        called = self.called(place, (self.base, self.target, self.source))
        self.report(
            "schema_drop_change",
            Place(place.type_id, place.property_id),
            f"the {dropper} dropped {called}, {why}",
        )

    def called(self, place: Place, models: tuple[Model, ...] = ()) -> str:
        """A type or property as messages name it, after the first of these that has it."""
        owner = self._latest(place.type_id, models)
        property_ = self._latest_property(place, models)
        name = owner.name if property_ is None else f"{owner.name}.{property_.name}"
        return f"{owner.kind} {name}" if property_ is None else name

    def names(self, place: Place) -> Iterator[ElementName]:
        """Every name by which a type or property goes on any side."""
        for owner in self.versions(place.type_id):
            if owner is None:
                continue
            yield owner.kind, owner.name, None
            for model in (self.base, self.source, self.target):
                if place.property_id is not None:
                    found = model.property(place.type_id, place.property_id)
                    if found is not None:
                        yield owner.kind, owner.name, found.name

    def _latest(self, type_id: int, models: tuple[Model, ...] = ()) -> DeclaredType:
        found = (each.types.get(type_id) for each in models or self._by_age())
        return next(each for each in found if each is not None)

    def _latest_property(
        self, place: Place, models: tuple[Model, ...] = ()
    ) -> DeclaredProperty | None:
        if place.property_id is None:
            return None
        models = models or self._by_age()
        found = (each.property(place.type_id, place.property_id) for each in models)
        return next((each for each in found if each is not None), None)

    def _by_age(self) -> tuple[Model, ...]:
        return (self.target, self.source, self.base)

    def _declared(self, place: Place) -> tuple[str | None, str | None, str | None]:
        """What base, source and target declare at a place."""
        base, source, target = (
            self.text(model, place) for model in (self.base, self.source, self.target)
        )
        return base, source, target

    def text(self, model: Model, place: Place) -> str | None:
        """What a schema declares at a place, as `.pg` writes it."""
        owner = model.types.get(place.type_id)
        if owner is None or place.property_id is None:
            return None if owner is None else declaration_text(owner.syntax)
        found = owner.properties.get(place.property_id)
        return None if found is None else member_text(found.syntax)
