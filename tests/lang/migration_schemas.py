"""Sound schemas at random, and changed or renamed copies of them.

Names, types and values come from small sets, so that changes meet: in one column, one constraint,
one key. Drawn from a seed, since whole schemas are many choices; nearly all of them compile.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from random import Random

PLAIN = ("String", "enum(x)", "enum(x, y)", "I32", "I64", "U32", "U64", "F32", "F64", "Date")
TYPES = (*PLAIN, "Bool", "[I32]", "Vector(2)", "Blob")
NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
TEXTS = ("String", "enum(x)", "enum(x, y)")
DEFAULTS = {
    **dict.fromkeys(TEXTS, "x"),
    **dict.fromkeys(NUMBERS, "1"),
    "String": '"x"',
    "Date": '"2024-01-01"',
}
# Where a value of one type can live on, or nearly so.
NEIGHBOURS = {
    "String": ("enum(x)", "enum(x, y)"),
    "enum(x)": ("String", "enum(x, y)"),
    "enum(x, y)": ("String", "enum(x)"),
    "I32": ("I64", "F64", "F32"),
    "U32": ("U64", "I64", "F64"),
    "F32": ("F64",),
}
RANGES = ("0..1", "..1", "0..", "-3..3.5", "1..1", "0..2")
PATTERNS = ("x", "^[xy]", "z")
CARDS = ("", "@card(0..1)", "@card(0..2)", "@card(2..3)", "@card(1..)")
NAMES = "abcd"


@dataclass(frozen=True)
class Property:
    type: str
    nullable: bool = False
    has_default: bool = False
    notes: tuple[str, ...] = ()
    former: str | None = None

    def text(self, name: str) -> str:
        parts = [f"{name}: {self.type}{'?' if self.nullable else ''}"]
        if self.has_default and self.type in DEFAULTS:
            parts.append(f"@default({DEFAULTS[self.type]})")
        parts += [f"@{note}" for note in self.notes]
        if self.former is not None:
            parts.append(f'@rename_from("{self.former}")')
        return " ".join(parts)


@dataclass(frozen=True)
class Type:
    head: str
    ends: tuple[str, ...] = ()
    card: str = ""
    notes: tuple[str, ...] = ()
    implements: tuple[str, ...] = ()
    properties: dict[str, Property] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    former: str | None = None

    def text(self, name: str) -> str:
        ends = f": {self.ends[0]} -> {self.ends[1]}" if self.ends else ""
        notes = [self.card, *(f"@{note}" for note in self.notes)]
        if self.former is not None:
            notes.append(f'@rename_from("{self.former}")')
        implements = f"implements {', '.join(self.implements)}" if self.implements else ""
        members = [each.text(own) for own, each in self.properties.items()]
        body = "\n  ".join([*members, *self.constraints])
        return f"{self.head} {name}{ends} {' '.join(notes)} {implements} {{\n  {body}\n}}\n"

    def named(self, allows: Callable[[Property], bool]) -> list[str]:
        return [name for name, each in self.properties.items() if allows(each)]


Schema = dict[str, Type]


def written(schema: Schema) -> str:
    return "".join(each.text(name) for name, each in schema.items())


def some(random: Random, choices: Collection[str], most: int) -> list[str]:
    """Up to so many of the choices, each once."""
    return random.sample(sorted(choices), random.randint(0, min(most, len(choices))))


# -- one schema ------------------------------------------------------------------------


def drawn(random: Random) -> Schema:
    """A schema with an interface or none, one or two node types, and often an edge type."""
    found: Schema = {}
    if random.random() < 0.4:
        found["I"] = _type(random, "interface", {})
    for name in ("A", "B")[: random.randint(1, 2)]:
        found[name] = _type(random, "node", found)
    for name in ("E", "F")[: random.randint(0, 2)]:
        found[name] = _type(random, "edge", found)
    return found


def _type(random: Random, head: str, known: Schema) -> Type:
    names = sorted(random.sample(NAMES, random.randint(1, 3)))
    type_ = Type(head, properties={name: _property(random, head) for name in names})
    if head == "interface":
        return type_
    if head == "edge":
        nodes = [name for name, each in known.items() if each.head == "node"]
        ends = (random.choice(nodes), random.choice(nodes))
        type_ = replace(type_, ends=ends, card=random.choice(CARDS))
    elif random.random() < 0.5:
        asked = [name for name, each in known.items() if each.head == "interface"]
        type_ = replace(type_, implements=tuple(asked))
    type_ = replace(type_, notes=_notes(random), constraints=_constraints(random, type_))
    return _agreeing(type_, known)


def _notes(random: Random) -> tuple[str, ...]:
    return tuple(some(random, ("tag(1)", "tag(2)", 'description("d")'), 1))


def _property(random: Random, head: str) -> Property:
    type_ = random.choice(TYPES if random.random() < 0.3 else PLAIN)
    notes = [] if random.random() < 0.7 else list(_notes(random))
    if type_ in PLAIN and random.random() < 0.2:
        notes.append(random.choice(("unique", "index")))
    if type_ == "Vector(2)" and head == "node":
        notes += some(random, ("embed(a)",), 1)
    return Property(type_, random.random() < 0.6, random.random() < 0.4, tuple(notes))


def _constraints(random: Random, type_: Type) -> tuple[str, ...]:
    ends = ["@src", "@dst"] if type_.head == "edge" else []
    plain = type_.named(lambda each: each.type in PLAIN)
    found = set()
    for kind in ("unique", "unique", "index"):
        members = some(random, [*plain, *ends], 2)
        if members:
            found.add(f"@{kind}({', '.join(sorted(members))})")
    if type_.head == "node":
        for name in some(random, type_.named(lambda each: each.type in NUMBERS), 2):
            found.add(f"@range({name}, {random.choice(RANGES)})")
        for name in some(random, type_.named(lambda each: each.type in TEXTS), 1):
            found.add(f'@check({name}, "{random.choice(PATTERNS)}")')
    key = [*ends, *some(random, [name for name in plain if not type_.properties[name].nullable], 2)]
    if key and random.random() < 0.4:
        found.add(f"@key({', '.join(key)})")
    return tuple(sorted(found))


def _agreeing(type_: Type, known: Schema) -> Type:
    """A type whose properties are what its interfaces ask for, where they name one."""
    own = dict(type_.properties)
    for name in type_.implements:
        for asked, property_ in known[name].properties.items():
            if asked in own:
                own[asked] = replace(own[asked], type=property_.type, nullable=property_.nullable)
    type_ = replace(type_, properties=own)
    numbers = {name for name, each in own.items() if each.type in NUMBERS}
    plain = {name for name, each in own.items() if each.type in PLAIN}
    allowed = {
        "unique": plain,
        "index": plain,
        "range": numbers,
        "check": {name for name, each in own.items() if each.type in TEXTS},
        "key": {name for name in plain if not own[name].nullable},
    }
    kept = []
    for text in type_.constraints:
        kind, arguments = text.removeprefix("@").removesuffix(")").split("(", 1)
        members = arguments.split(", ")[: 1 if kind in ("range", "check") else None]
        if all(member.startswith("@") or member in allowed[kind] for member in members):
            kept.append(text)
    return replace(type_, constraints=tuple(kept))


# -- changes ---------------------------------------------------------------------------


def changed(random: Random, schema: Schema) -> Schema:
    """A schema after a few changes, each of one thing."""
    found = dict(schema)
    # Changes that meet are the ones to look at.
    focus = random.choice(sorted(found))
    for _ in range(random.randint(1, 5)):
        _change(random, found, focus)
    nodes = {name for name, each in found.items() if each.head == "node"}
    interfaces = {name for name, each in found.items() if each.head == "interface"}
    sound: Schema = {}
    for name, each in found.items():
        implements = tuple(one for one in each.implements if one in interfaces)
        if nodes.issuperset(each.ends):
            sound[name] = _agreeing(replace(each, implements=implements), found)
    return sound


def _change(random: Random, found: Schema, focus: str) -> None:
    what = random.choice(("type", *("part",) * 4, *("property",) * 7))
    name = random.choice(sorted(found)) if found else ""
    if focus in found and random.random() < 0.7:
        name = focus
    if what == "type" or not found:
        fresh, head = random.choice((("C", "node"), ("G", "edge"), ("J", "interface")))
        if found and random.random() < 0.3:
            del found[name]
        elif head != "edge" or any(each.head == "node" for each in found.values()):
            found.setdefault(fresh, _type(random, head, found))
    elif what == "part":
        found[name] = _other_part(random, found[name], found)
    else:
        own = _other_properties(random, found[name])
        found[name] = replace(found[name], properties=own)


def _other_part(random: Random, type_: Type, known: Schema) -> Type:
    if type_.head == "interface":
        return type_
    how = random.choice((*("constraints",) * 5, "notes", "head"))
    if how == "constraints":
        return replace(type_, constraints=_other_constraints(random, type_))
    if how == "notes":
        return replace(type_, notes=_notes(random))
    nodes = [name for name, each in known.items() if each.head == "node"]
    if type_.head == "edge" and nodes:
        ends = type_.ends if random.random() < 0.7 else (random.choice(nodes), type_.ends[1])
        return replace(type_, card=random.choice(CARDS), ends=ends)
    interfaces = [name for name, each in known.items() if each.head == "interface"]
    return replace(type_, implements=tuple(some(random, interfaces, 2)))


def _other_constraints(random: Random, type_: Type) -> tuple[str, ...]:
    """Some of the constraints, some with other bounds, and some that are new."""
    kept = {
        re.sub(r"[^ ]*\.\.[^)]*", random.choice(RANGES), text)
        for text in some(random, type_.constraints, len(type_.constraints))
    }
    is_keyed = any(text.startswith("@key") for text in kept)
    fresh = {
        text
        for text in some(random, _constraints(random, type_), 3)
        if not (is_keyed and text.startswith("@key"))
    }
    return tuple(sorted(kept | fresh))


def _other_properties(random: Random, type_: Type) -> dict[str, Property]:
    own = dict(type_.properties)
    name = random.choice(sorted(own)) if own else None
    how = random.choice(("add", "drop", "type", "type", "null", "default", "fill", "fill", "notes"))
    if how == "add" or name is None:
        own.setdefault(random.choice(NAMES), _property(random, type_.head))
        return own
    each = own[name]
    if how == "drop":
        del own[name]
    elif how == "type":
        near = NEIGHBOURS.get(each.type, TYPES)
        own[name] = replace(each, type=random.choice(TYPES if random.random() < 0.2 else near))
    elif how == "null":
        own[name] = replace(each, nullable=not each.nullable)
    elif how == "default":
        own[name] = replace(each, has_default=not each.has_default)
    elif how == "fill":
        own[name] = replace(each, nullable=False, has_default=True)
    else:
        own[name] = replace(each, notes=_property(random, type_.head).notes)
    return own


# -- renames ---------------------------------------------------------------------------


def renamed(random: Random, schema: Schema) -> Schema:
    """The same schema with other names for some types and properties, but not for interfaces'."""
    interfaces = [each for each in schema.values() if each.head == "interface"]
    asked = {name for each in interfaces for name in each.properties}
    names = {
        name: f"{name}2" if each.head != "interface" and random.random() < 0.5 else name
        for name, each in schema.items()
    }
    found: Schema = {}
    for name, each in schema.items():
        if each.head == "interface":
            found[name] = each
            continue
        own = {
            old: f"{old}2" if old not in asked and random.random() < 0.5 else old
            for old in each.properties
        }
        found[names[name]] = replace(
            each,
            ends=tuple(names[end] for end in each.ends),
            former=None if names[name] == name else name,
            properties={
                new: replace(
                    each.properties[old],
                    notes=tuple(_with_names(note, own) for note in each.properties[old].notes),
                    former=None if new == old else old,
                )
                for old, new in own.items()
            },
            constraints=tuple(_with_names(text, own) for text in each.constraints),
        )
    return found


def _with_names(text: str, names: dict[str, str]) -> str:
    """A text with whole words replaced, but nothing in quotes."""
    parts = re.split(r'("[^"]*")', text)
    return "".join(
        part if part.startswith('"') else re.sub(r"\w+", lambda m: names.get(m[0], m[0]), part)
        for part in parts
    )
