"""What the contract says about merging schemas and the rows under them, as plainly as can be.

Three schemas become one by the numbers of their things, element by element; then the rows of
all sides are brought under it and merged row by row, property by property. No code of the
program under test. Slow, small, and meant to be read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.evolve.evolution_model import (
    History,
    Property,
    Row,
    Rows,
    Schema,
    State,
    Type,
    broken_rules,
    change_type,
)
from tests.history import history_model

Pairs = set[tuple[int, int]]
"""Numbers that are one thing, since both sides of a merge had added it alike."""
Told = tuple[str, str, str | None]
"""A conflict of schemas: its kind, and the type and the property that it is about."""
LIMITS = {"I32": (-(2**31), 2**31 - 1), "I64": (-(2**63), 2**63 - 1), "U32": (0, 2**32 - 1)}
LIMITS |= {"U64": (0, 2**64 - 1)}


@dataclass
class Merged:
    """What a merge comes to; without a state nothing is merged."""

    outcome: str
    state: State | None = None
    pairs: Pairs = field(default_factory=set)
    schema: set[Told] = field(default_factory=set)
    """Conflicts of the schemas; if there are any, rows have not been looked at."""
    rows: set[tuple[str, str, str, str | None]] = field(default_factory=set)
    """Conflicts of rows: kind, type, id and property."""
    rules: list[str] = field(default_factory=list)
    """What the rows that came out do not obey."""
    settled: int = 0
    is_open: bool = False
    """Whether the contract says nothing of how a conflict is resolved."""
    may_be_refused: bool = False
    """Whether edges that the target has as the base had them stand in the way of a new key.

    They do if the target has written them: rows do not tell.
    """

    @property
    def is_clean(self) -> bool:
        return not (self.schema or self.rows or self.rules)


def merge_branches(
    history: History, source: str, target: str, resolve: str | None = None
) -> Merged:
    """What a merge of two branches comes to."""
    theirs, ours = history.heads[source], history.heads[target]
    base = history.base(theirs, ours)
    if base == theirs:
        return Merged("already_up_to_date", history.states[ours])
    if base == ours:
        return Merged("fast_forward", history.states[theirs])
    states = (history.states[base], history.states[theirs], history.states[ours])
    return merge(states, history.joined(theirs, ours), resolve)


def merge(states: tuple[State, State, State], pairs: Pairs, resolve: str | None = None) -> Merged:
    """Merge base, source and target; what stands is settled for one side if it is said."""
    known = set(pairs)
    while True:
        base, source, target = (_renumbered(state, _finder(known)) for state in states)
        schemas = _Schemas(base, source, target, resolve)
        joined = set(schemas.equal_additions())
        if not joined:
            schemas.run()
            joined = schemas.joins
        if not joined:
            break
        known |= joined
    found = Merged("merged", schema=schemas.told, settled=schemas.settled)
    found.is_open = schemas.is_open
    if not found.schema and not found.is_open:
        _merge_rows(schemas, resolve, found)
    if found.state is not None:
        found.state = _own_numbers(found.state, states, known, found.pairs)
    return found


# -- numbers ---------------------------------------------------------------------------------


def _finder(pairs: Pairs) -> Callable[[int], int]:
    parent: dict[int, int] = {}

    def find(number: int) -> int:
        while number in parent:
            number = parent[number]
        return number

    for left, right in sorted(pairs):
        low, high = sorted((find(left), find(right)))
        if low != high:
            parent[high] = low
    return find


def _renumbered(state: State, find: Callable[[int], int]) -> State:
    schema = {}
    rows: Rows = {}
    for number, type_ in state.schema.items():
        properties = {find(n): replace(one, number=find(n)) for n, one in type_.properties.items()}
        ends = None if type_.ends is None else (find(type_.ends[0]), find(type_.ends[1]))
        key = None if type_.key is None else tuple(map(find, type_.key))
        schema[find(number)] = Type(find(number), type_.name, properties, ends, key, type_.most)
        rows[find(number)] = {
            id_: {find(n) if isinstance(n, int) else n: value for n, value in row.items()}
            for id_, row in state.rows[number].items()
        }
    return State(schema, rows)


def _own_numbers(
    merged: State,
    states: tuple[State, State, State],
    pairs: Pairs,
    recorded: Pairs,
) -> State:
    """The merged state with the numbers of the target, of the source for what only it has."""
    find = _finder(pairs)
    own: dict[int, int] = {}
    for state in states:
        for number, type_ in state.schema.items():
            for one in (number, *type_.properties):
                # The target comes last, and has the last word.
                if find(one) in own and own[find(one)] != one:
                    recorded.add((own[find(one)], one))
                own[find(one)] = one
    return _renumbered(merged, lambda number: own[number])


# -- schemas ---------------------------------------------------------------------------------


def _said(one: Property | None) -> dict[str, Any]:
    """The elements of a property."""
    assert one is not None
    return {
        "name": one.name,
        "type": (one.type, frozenset(one.values)),
        "nullable": one.nullable,
        "default": None if one.default is None else json.dumps(one.default),
    }


def _rules(type_: Type) -> dict[tuple[Any, ...], Any]:
    """The elements of a type that are about its properties."""
    found: dict[tuple[Any, ...], Any] = {}
    for number, one in type_.properties.items():
        if one.is_unique:
            found["unique", number] = True
        if one.is_indexed:
            found["index", number] = True
        if one.low is not None or one.high is not None:
            found["range", number] = (one.low, one.high)
    if type_.key is not None:
        found["key",] = type_.key
    return found


def _about(aspect: tuple[Any, ...], value: Any) -> set[int]:
    return set(value or ()) if aspect[0] == "key" else set(aspect[1:])


def _as_written(type_: Type, *, with_name: bool = True) -> Any:
    """What a declaration says, whatever the numbers in it."""
    names = {number: one.name for number, one in type_.properties.items()}
    properties = {
        (tuple(_said(one).items()), one.is_unique, one.is_indexed, one.is_key, one.low, one.high)
        for one in type_.properties.values()
    }
    key = None if type_.key is None else {names[number] for number in type_.key}
    return (type_.name if with_name else None, properties, type_.ends, key, type_.most)


@dataclass
class _Schemas:
    """One attempt at merging three schemas whose things have the same numbers on all sides."""

    base: State
    source: State
    target: State
    side: str | None
    merged: dict[int, Type] = field(default_factory=dict)
    told: set[Told] = field(default_factory=set)
    unsure: set[tuple[int, int | None]] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    """Types that go since a resolution says so."""
    joins: Pairs = field(default_factory=set)
    settled: int = 0
    is_open: bool = False

    @property
    def sides(self) -> dict[str, State]:
        return {"source": self.source, "target": self.target}

    def equal_additions(self) -> Iterator[tuple[int, int]]:
        """What both sides have added alike under different numbers."""
        old, theirs, ours = (one.schema for one in (self.base, self.source, self.target))
        for number, type_ in theirs.items():
            for other, twin in ours.items():
                is_new = number not in old and other not in old
                apart = number not in ours and other not in theirs
                if is_new and apart and _as_written(type_) == _as_written(twin):
                    yield from _pairs_by_name(type_, twin)
                if number == other:
                    yield from self._equal_properties(type_, twin, old.get(number))

    def _equal_properties(
        self, theirs: Type, ours: Type, old: Type | None
    ) -> Iterator[tuple[int, int]]:
        before = {} if old is None else old.properties
        for number, one in theirs.properties.items():
            for other, twin in ours.properties.items():
                is_new = number not in before and other not in before and number != other
                alike = (_said(one), one.is_unique, one.is_indexed) == (
                    _said(twin),
                    twin.is_unique,
                    twin.is_indexed,
                )
                if is_new and alike:
                    yield number, other

    def run(self) -> None:
        for number in dict.fromkeys([*self.target.schema, *self.source.schema]):
            if self._type_stays(number):
                self._merge_type(number)
        self._check_ends()
        self._check_names()
        if not self.told and not self.is_open:
            for type_ in self.merged.values():
                for one in type_.properties.values():
                    if _is_wrong(type_, one):
                        self._conflict("schema_divergent_change", type_.number, one.number)
                        self.is_open = True

    # -- conflicts ---------------------------------------------------------------------

    def _conflict(self, kind: str, number: int, property_: int | None = None) -> bool:
        """Note a conflict; true if it is settled."""
        if self.side is not None:
            self.settled += 1
            return True
        self.unsure.add((number, property_))
        self.told.add((kind, *self._called(number, property_)))
        return False

    def _called(self, number: int, property_: int | None) -> tuple[str, str | None]:
        states = (self.target, self.source, self.base)
        types = [one.schema[number] for one in states if number in one.schema]
        if property_ is None:
            return types[0].name, None
        named = [one.properties[property_] for one in types if property_ in one.properties]
        return types[0].name, named[0].name

    # -- types -------------------------------------------------------------------------

    def _holder(self, number: int) -> str | None:
        has = [side for side, state in self.sides.items() if number in state.schema]
        return has[0] if len(has) == 1 else None

    def _type_stays(self, number: int) -> bool:
        holder, old = self._holder(number), self.base.schema.get(number)
        if holder is None or old is None:
            return True
        held = self.sides[holder]
        rows, before = held.rows[number], self.base.rows[number]
        is_changed = _without_key_text(old) != _without_key_text(held.schema[number])
        wrote = any(before.get(id_) != row for id_, row in rows.items())
        if not is_changed and not wrote:
            return False
        if self._conflict("schema_drop_change", number):
            if self.side != holder:
                self.gone.add(number)
            return self.side == holder
        return True

    def _merge_type(self, number: int) -> None:
        old = self.base.schema.get(number)
        source, target = self.source.schema.get(number), self.target.schema.get(number)
        kept = target or source
        assert kept is not None
        theirs, ours = source or old or kept, target or old or kept
        if old is None and _as_written(theirs) != _as_written(ours):
            is_settled = self._conflict("schema_divergent_add", number)
            theirs = ours = theirs if is_settled and self.side == "source" else ours
        place = (number, None)
        name = self._element(place, "name", old and old.name, theirs.name, ours.name)
        most = self._element(place, "most", old and old.most, theirs.most, ours.most)
        rules = self._merged_rules(number, old, theirs, ours)
        properties: dict[int, Property] = {}
        before = {} if old is None else old.properties
        for one in dict.fromkeys([*ours.properties, *theirs.properties, *before]):
            found = self._property(number, one, (old, theirs, ours))
            if found is not None:
                low, high = rules.get(("range", one)) or (None, None)
                properties[one] = replace(
                    found,
                    is_unique=("unique", one) in rules,
                    is_indexed=("index", one) in rules,
                    low=low,
                    high=high,
                )
        key = rules.get(("key",))
        if key is not None and not set(key) <= properties.keys():
            key = None
        self.merged[number] = Type(number, name, properties, kept.ends, key, most)

    def _merged_rules(
        self, number: int, old: Type | None, theirs: Type, ours: Type
    ) -> dict[tuple[Any, ...], Any]:
        before = {} if old is None else _rules(old)
        sides = []
        for side in (theirs, ours):
            said = _rules(side)
            for aspect, value in before.items():
                # It had to give up what is about things that it dropped.
                if aspect not in said and _about(aspect, value) - side.properties.keys():
                    said[aspect] = value
            sides.append(said)
        found = {}
        for aspect in dict.fromkeys([*before, *sides[0], *sides[1]]):
            place = (number, aspect[1] if aspect[0] == "range" else None)
            values = (before.get(aspect), sides[0].get(aspect), sides[1].get(aspect))
            value = self._element(place, aspect[0], *values)
            if value is not None:
                found[aspect] = value
        return found

    def _element(
        self, place: tuple[int, int | None], what: str, old: Any, theirs: Any, ours: Any
    ) -> Any:
        """What one side changed is taken; what both changed must be the same."""
        if theirs in (ours, old):
            return ours
        if ours == old:
            return theirs
        if what == "type" and all(each[0] == "enum" for each in (old, theirs, ours)):
            values = (theirs[1] & ours[1]) | ((theirs[1] | ours[1]) - old[1])
            if values:
                return ("enum", values)
        number, property_ = place
        is_settled = self._conflict("schema_divergent_change", number, property_)
        if what == "range":
            self.unsure.add((number, None))
        return theirs if is_settled and self.side == "source" else ours

    # -- properties --------------------------------------------------------------------

    def _property(
        self, number: int, one: int, types: tuple[Type | None, Type, Type]
    ) -> Property | None:
        old, theirs, ours = (None if each is None else each.properties.get(one) for each in types)
        if not self._property_stays(number, one, types):
            return None
        if None not in (theirs, ours) and old is None and _said(theirs) != _said(ours):
            is_settled = self._conflict("schema_divergent_add", number, one)
            theirs = ours = theirs if is_settled and self.side == "source" else ours
        any_side = ours or theirs or old
        assert any_side is not None
        before = {} if old is None else _said(old)
        left, right = (_said(each or old or any_side) for each in (theirs, ours))
        said = {
            what: self._element((number, one), what, before.get(what), left[what], right[what])
            for what in left
        }
        defaults = [each.default for each in (ours, theirs, old) if each is not None]
        default = next(
            (each for each in defaults if each is not None and json.dumps(each) == said["default"]),
            None,
        )
        values = said["type"][1]
        order = next(
            (
                each.values
                for each in (ours, theirs, old)
                if each is not None and frozenset(each.values) == values
            ),
            tuple(sorted(values)),
        )
        return replace(
            any_side,
            name=said["name"],
            type=said["type"][0],
            values=order,
            nullable=said["nullable"],
            default=default,
        )

    def _property_stays(self, number: int, one: int, types: tuple[Type | None, Type, Type]) -> bool:
        old, theirs, ours = types
        has = {"source": one in theirs.properties, "target": one in ours.properties}
        if has["source"] == has["target"]:
            return has["source"]
        if old is None or one not in old.properties:
            return True
        holder = "source" if has["source"] else "target"
        held = self.sides[holder]
        if number not in held.schema:
            return False
        type_ = held.schema[number]
        before, after = _rules(old), _rules(type_)
        is_changed = _said(old.properties[one]) != _said(type_.properties[one]) or any(
            one in _about(aspect, value) and before.get(aspect) != value
            for aspect, value in after.items()
        )
        if not is_changed and not self._wrote(number, one, held):
            return False
        if self._conflict("schema_drop_change", number, one):
            return self.side == holder
        return True

    def _wrote(self, number: int, one: int, held: State) -> bool:
        """Whether a side inserted values, or changed some to others than null."""
        type_ = held.schema[number]
        before, _ = change_type(self.base.schema[number], self.base.rows[number], type_)
        return any(
            row[one] is not None and (id_ not in before or before[id_][one] != row[one])
            for id_, row in held.rows[number].items()
        )

    # -- what refers to each other -----------------------------------------------------

    def _check_ends(self) -> None:
        """An edge needs its ends: what one side dropped comes back, or both go."""
        for number, edge in list(self.merged.items()):
            for end in sorted(set(edge.ends or ()) - self.merged.keys()):
                holder = self._holder(end)
                if end not in self.gone and self._conflict("schema_drop_change", end):
                    # A node that comes back may be anything: what it is, is not said here.
                    self.is_open = self.is_open or self.side == holder
                if self.side is not None:
                    self.merged.pop(number, None)

    def _check_names(self) -> None:
        groups: dict[Any, list[tuple[int, int | None]]] = {}
        for number, type_ in self.merged.items():
            groups.setdefault((type_.is_edge, type_.name), []).append((number, None))
            for one in type_.properties.values():
                groups.setdefault((number, one.name, "."), []).append((number, one.number))
        for places in groups.values():
            if len(places) > 1 and not self.unsure & set(places):
                self._same_name(places)

    def _same_name(self, places: list[tuple[int, int | None]]) -> None:
        so_named = {side: self._so_named(side, places) for side in self.sides}
        told = so_named["target"] or places[0]
        if not self._conflict("schema_divergent_add", *told):
            return
        theirs, ours = so_named["source"], so_named["target"]
        if theirs is None or ours is None or theirs == ours:
            self.is_open = True
            return
        is_new = all(not self._has(self.base, place) for place in (theirs, ours)) and not (
            self._has(self.source, ours) or self._has(self.target, theirs)
        )
        left, right = self.source.schema[theirs[0]], self.target.schema[ours[0]]
        if not is_new:
            self.is_open = True
        elif theirs[1] is not None and ours[1] is not None:
            self.joins.add((theirs[1], ours[1]))
        elif _ids_mean_the_same(left, right):
            self.joins |= set(_pairs_by_name(left, right))
        else:
            self.is_open = True

    def _has(self, state: State, place: tuple[int, int | None]) -> bool:
        number, one = place
        type_ = state.schema.get(number)
        return type_ is not None and (one is None or one in type_.properties)

    def _so_named(
        self, side: str, places: list[tuple[int, int | None]]
    ) -> tuple[int, int | None] | None:
        for number, one in places:
            state = self.sides[side]
            if self._has(state, (number, one)):
                type_ = state.schema[number]
                name = type_.name if one is None else type_.properties[one].name
                merged = self.merged[number]
                if name == (merged.name if one is None else merged.properties[one].name):
                    return number, one
        return None


def _without_key_text(type_: Type) -> Any:
    """What a type says, by number."""
    said = {number: _said(one) for number, one in type_.properties.items()}
    return (type_.name, said, _rules(type_), type_.ends, type_.most)


def _pairs_by_name(theirs: Type, ours: Type) -> Iterator[tuple[int, int]]:
    yield theirs.number, ours.number
    names = {one.name: one.number for one in ours.properties.values()}
    for one in theirs.properties.values():
        if one.name in names:
            yield one.number, names[one.name]


def _ids_mean_the_same(theirs: Type, ours: Type) -> bool:
    """Whether rows of both can be rows of one."""

    def key(type_: Type) -> Any:
        members = type_.key if type_.is_edge else None
        keys = [one.name for one in type_.properties.values() if one.is_key]
        named = None if members is None else [type_.properties[n].name for n in members]
        return (keys, named, type_.ends)

    return bool(key(theirs) == key(ours))


def _is_wrong(type_: Type, one: Property) -> bool:
    """Whether the language refuses a property, whoever said what of it."""
    is_number = not one.is_text and one.type != "Bool"
    has_range = one.low is not None or one.high is not None
    if has_range and not is_number:
        return True
    if has_range and one.type[0] == "U" and min(one.low or 0, one.high or 0) < 0:
        return True
    if one.number in (type_.key or ()) and (one.nullable or one.type in ("F32", "F64", "Bool")):
        return True
    if one.default is None:
        return False
    if one.type == "enum":
        return one.default not in one.values
    if one.type == "String":
        return not isinstance(one.default, str)
    if one.type == "Bool":
        return not isinstance(one.default, bool)
    if isinstance(one.default, bool | str):
        return True
    if one.type in LIMITS:
        low, high = LIMITS[one.type]
        if isinstance(one.default, float) or not low <= one.default <= high:
            return True
    return (one.low is not None and one.default < one.low) or (
        one.high is not None and one.default > one.high
    )


# -- rows ------------------------------------------------------------------------------------


def _merge_rows(schemas: _Schemas, resolve: str | None, found: Merged) -> None:
    base = _brought(schemas, schemas.base, None, [])
    sides = {
        side: _brought(schemas, state, base, found.rules) for side, state in schemas.sides.items()
    }
    for number, rule in _alike_as_before(schemas, base).items():
        if rule in found.rules:
            found.may_be_refused = True
            found.rules.remove(rule)
            sides["target"][number] = base[number]
    if found.rules:
        return
    merged = schemas.merged
    types = {number: _plain_type(merged, type_) for number, type_ in merged.items()}

    def named(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
        return {types[n].key: {k: dict(row) for k, row in rows[n].items()} for n in merged}

    work = history_model.ThreeWay(
        {one.key: one for one in types.values()},
        named(base),
        named(sides["source"]),
        named(sides["target"]),
        lambda _: resolve,
    )
    state = work.run()
    names = {
        types[n].key: {p: one.name for p, one in type_.properties.items()}
        for n, type_ in merged.items()
    }
    for one in work.standing:
        name = one.property
        told = names[one.type_key].get(name, name) if name is not None else None  # type: ignore[call-overload]
        found.rows.add((one.kind, one.type_key.partition(":")[2], one.id, told))
    found.settled += len(work.settled)
    rows: Rows = {n: dict(state[types[n].key]) for n in merged}
    for number, type_ in merged.items():
        rows[number] = _once(type_, rows[number], found.rules)
    found.rules += broken_rules(merged, rows)
    found.state = State(merged, rows)


def _once(type_: Type, rows: dict[str, Row], rules: list[str]) -> dict[str, Row]:
    if type_.key is not None and any(type_.id_of(row) != id_ for id_, row in rows.items()):
        rules.append(f"{type_.name} has an id that is not its key")
    return rows


def _plain_type(schema: Schema, type_: Type) -> history_model.Type:
    if type_.ends is None:
        return history_model.Type(f"node:{type_.name}")
    source, target = (schema[end].name for end in type_.ends)
    return history_model.Type(f"edge:{type_.name}", ends=(source, target), card=(0, type_.most))


def _brought(schemas: _Schemas, state: State, base: Rows | None, refusals: list[str]) -> Rows:
    """The rows of a side under the merged schema; what does not fit is told."""
    rows: Rows = {}
    for number, type_ in schemas.merged.items():
        if number not in state.schema:
            rows[number] = (
                {}
                if base is None or not _is_dropped(schemas, state, number)
                else {id_: dict(row) for id_, row in base[number].items()}
            )
            continue
        before = state.schema[number]
        silent = _silent(schemas, before, type_) if base is not None else set()
        after = replace(
            type_, properties={n: p for n, p in type_.properties.items() if n not in silent}
        )
        if before.key is None and silent.intersection(type_.key or ()):
            if state.rows[number]:
                refusals.append(f"{type_.name}: a key of what was dropped")
            rows[number] = {}
            continue
        before, fitted = _fitted(before, state.rows[number], after, is_base=base is None)
        rows[number], refused = change_type(before, fitted, after)
        if base is not None:
            refusals += [f"{type_.name}: {one}" for one in refused]
            for id_, row in rows[number].items():
                for one in silent:
                    property_ = type_.properties[one]
                    row[one] = None if property_.nullable else property_.default
                    if id_ in base[number]:
                        row[one] = base[number][id_][one]
    return rows


def _alike_as_before(schemas: _Schemas, base: Rows) -> dict[int, str]:
    """The types of which the target has just the edges that the base had, alike under a new key."""
    found: dict[int, str] = {}
    for number, type_ in schemas.merged.items():
        old, ours = schemas.base.schema.get(number), schemas.sides["target"].schema.get(number)
        theirs = schemas.sides["source"].schema.get(number)
        if old is None or ours != old or type_.key is None or old.key is not None:
            continue
        rows = schemas.base.rows[number]
        is_same = schemas.sides["target"].rows[number] == rows
        if is_same and theirs == type_ and len(base[number]) < len(rows):
            found[number] = f"{type_.name}: {type_.name} has edges alike"
    return found


def _is_dropped(schemas: _Schemas, state: State, number: int) -> bool:
    return number in schemas.base.schema and number not in state.schema


def _silent(schemas: _Schemas, side: Type, merged: Type) -> set[int]:
    """Properties that a side has dropped and the merge keeps: it says nothing of them."""
    old = schemas.base.schema.get(merged.number)
    before: Mapping[int, Property] = {} if old is None else old.properties
    return {n for n in merged.properties if n in before and n not in side.properties}


def _fitted(
    before: Type, rows: dict[str, Row], after: Type, *, is_base: bool
) -> tuple[Type, dict[str, Row]]:
    """Rows with values in other types, where every value of a property can be had there.

    What the base had and cannot be had is as if it had been nothing.
    """
    found = {id_: dict(row) for id_, row in rows.items()}
    for number, one in after.properties.items():
        former = before.properties.get(number)
        if former is None or former.type == one.type or (former.is_text and one.is_text):
            continue
        values = {id_: _cast(row[number], former.type, one) for id_, row in rows.items()}
        fits = not any(row[number] is not None and values[id_] is None for id_, row in rows.items())
        if fits or is_base:
            before = before.with_property(replace(former, type=one.type))
            for id_, value in values.items():
                found[id_][number] = value if fits else None
    return before, found


def _cast(value: Any, former: str, after: Property) -> Any:
    """A value in another type, None if there is none that means the same."""
    if value is None or isinstance(value, str):
        return None
    if after.is_text:
        if isinstance(value, bool):
            return str(value).lower()
        return str(int(value)) if former[0] == "F" and value.is_integer() else str(value)
    if after.type == "Bool":
        return bool(value) if value in (0, 1) else None
    if after.type in LIMITS:
        low, high = LIMITS[after.type]
        return int(value) if value == int(value) and low <= value <= high else None
    if after.type == "F32" and struct.unpack("f", struct.pack("f", value))[0] != value:
        return None
    exact = 2**24 if after.type == "F32" else 2**53
    return float(value) if former[0] == "F" or abs(value) <= exact else None
