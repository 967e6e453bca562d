"""What the contract says about changing schemas, as plainly as it can be said.

Dicts and loops, and no code of the program under test. Types and properties have numbers that
survive renames; a row holds its values by the numbers of properties. Slow, small, and meant to
be read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Value = Any
Row = dict[Any, Value]
"""Values by the number of the property; an edge's ends are `from` and `to`."""
Rows = dict[int, dict[str, Row]]
"""The rows of a branch by the number of the type, and by id."""

WIDER = {
    "I32": ("I64", "F64"),
    "U32": ("U64", "I64", "F64"),
    "F32": ("F64",),
}
ENDS = ("from", "to")


@dataclass(frozen=True)
class Property:
    """A property; ``values`` are those of an enum, ``low`` and ``high`` the ends of a range."""

    number: int
    name: str
    type: str
    nullable: bool = True
    default: Value = None
    values: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    is_unique: bool = False
    is_indexed: bool = False
    is_key: bool = False

    @property
    def is_text(self) -> bool:
        return self.type in ("String", "enum")

    def text(self, former: str | None) -> str:
        """How it is declared, given its former name if that was another."""
        type_ = f"enum({', '.join(self.values)})" if self.type == "enum" else self.type
        words = [f"{self.name}: {type_}{'?' if self.nullable else ''}"]
        words += [word for word, is_so in (("@key", self.is_key),) if is_so]
        words += ["@unique"] if self.is_unique else []
        words += ["@index"] if self.is_indexed else []
        if self.default is not None:
            words.append(f"@default({json.dumps(self.default)})")
        if former not in (None, self.name):
            words.append(f'@rename_from("{former}")')
        if self.low is not None or self.high is not None:
            low, high = ("" if end is None else end for end in (self.low, self.high))
            words.append(f"@range({self.name}, {low}..{high})")
        return " ".join(words)


@dataclass(frozen=True)
class Type:
    """A node type, or with ends (numbers of node types) an edge type.

    ``key`` are the properties that tell edges of two nodes apart, None for edges without a key.
    ``most`` is how many edges a node may have.
    """

    number: int
    name: str
    properties: Mapping[int, Property]
    ends: tuple[int, int] | None = None
    key: tuple[int, ...] | None = None
    most: int | None = None

    @property
    def is_edge(self) -> bool:
        return self.ends is not None

    def with_property(self, property_: Property) -> Type:
        return replace(self, properties={**self.properties, property_.number: property_})

    def id_of(self, row: Row) -> str:
        """What the key of an edge makes its id."""
        members = [row[number] for number in sorted(self.key or ())]
        texts = [row["from"], row["to"], *(_text(value) for value in members)]
        return json.dumps(texts, separators=(",", ":"), ensure_ascii=False)


def _text(value: Value) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


Schema = Mapping[int, Type]


def schema_text(schema: Schema, accepted: Schema) -> str:
    """A schema as it is written, on the way from the one that is accepted."""
    types = [_type_text(schema, type_, accepted) for type_ in schema.values()]
    return "\n".join(["// all types", *types, ""])


def _type_text(schema: Schema, type_: Type, accepted: Schema) -> str:
    before = accepted.get(type_.number)
    hint = "" if before is None or before.name == type_.name else f'@rename_from("{before.name}")'
    former = {} if before is None else {n: one.name for n, one in before.properties.items()}
    members = [one.text(former.get(one.number)) for one in type_.properties.values()]
    if type_.ends is None:
        return f"node {type_.name} {hint} {{ {' '.join(members)} }}"
    if type_.key is not None:
        names = [type_.properties[number].name for number in type_.key]
        members.append(f"@key({', '.join(['@src', '@dst', *names])})")
    source, target = (schema[number].name for number in type_.ends)
    card = "" if type_.most is None else f"@card(0..{type_.most})"
    return f"edge {type_.name}: {source} -> {target} {card} {hint} {{ {' '.join(members)} }}"


# -- what rows obey ----------------------------------------------------------------------


def broken_rules(schema: Schema, rows: Rows) -> Iterator[str]:
    """What the rows of a branch do not obey."""
    for type_ in schema.values():
        found = rows[type_.number]
        for property_ in type_.properties.values():
            values = [row[property_.number] for row in found.values()]
            yield from (
                f"{type_.name}.{property_.name} {problem}" for problem in _broken(property_, values)
            )
        if type_.ends is not None:
            yield from _broken_edges(type_, rows)


def _broken(property_: Property, values: list[Value]) -> Iterator[str]:
    given = [value for value in values if value is not None]
    if not property_.nullable and len(given) < len(values):
        yield "is null"
    if property_.type == "enum" and any(value not in property_.values for value in given):
        yield "is no value of the enum"
    if property_.low is not None and any(value < property_.low for value in given):
        yield "is too small"
    if property_.high is not None and any(value > property_.high for value in given):
        yield "is too large"
    if (property_.is_unique or property_.is_key) and len(set(given)) < len(given):
        yield "is there twice"


def _broken_edges(type_: Type, rows: Rows) -> Iterator[str]:
    edges = rows[type_.number].values()
    for name, number in zip(ENDS, type_.ends or (), strict=True):
        if any(row[name] not in rows[number] for row in edges):
            yield f"{type_.name} leads nowhere"
    counts = Counter(row["from"] for row in edges)
    if type_.most is not None and any(count > type_.most for count in counts.values()):
        yield f"{type_.name} has too many"


# -- changing the schema -----------------------------------------------------------------


@dataclass
class Outcome:
    """What becomes of a change: the rows afterwards, or what stands against it."""

    rows: Rows = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    losses: Counter[str] = field(default_factory=Counter)
    """How many rows lose a value, by type and property that are dropped."""


def change_schema(before: Schema, rows: Rows, after: Schema) -> Outcome:
    """Bring the rows of a branch under another schema."""
    outcome = Outcome({number: {} for number in after})
    for number, type_ in after.items():
        if number in before:
            outcome.rows[number], refused = change_type(before[number], rows[number], type_)
            outcome.refusals += refused
            outcome.losses.update(_lost_values(before[number], rows[number], type_))
    if not outcome.refusals:
        outcome.refusals += broken_rules(after, outcome.rows)
    for number, type_ in before.items():
        if number not in after:
            outcome.losses[type_.name] = len(rows[number])
    return outcome


def change_type(
    before: Type, rows: dict[str, Row], after: Type
) -> tuple[dict[str, Row], list[str]]:
    """The rows of a type under another declaration of it, and what stands against that."""
    changed, refusals = deepcopy(rows), []
    for property_ in after.properties.values():
        former = before.properties.get(property_.number)
        refused = (
            _fill_new(property_, changed)
            if former is None
            else _change_property(former, property_, changed)
        )
        if refused:
            refusals.append(f"{after.name}.{property_.name} {refused}")
    for number in before.properties.keys() - after.properties.keys():
        for row in changed.values():
            del row[number]
    if before.key is not None and after.key not in (None, before.key) and rows:
        refusals.append(f"{after.name} gets another key")
    if after.key is not None and before.key is None and not refusals:
        ids = [after.id_of(row) for row in changed.values()]
        if len(set(ids)) < len(ids):
            refusals.append(f"{after.name} has edges alike")
        changed = dict(zip(ids, changed.values(), strict=True))
    return changed, refusals


def _lost_values(before: Type, rows: dict[str, Row], after: Type) -> dict[str, int]:
    return {
        f"{after.name}.{one.name}": len([r for r in rows.values() if r[number] is not None])
        for number, one in before.properties.items()
        if number not in after.properties
    }


def _fill_new(property_: Property, rows: dict[str, Row]) -> str | None:
    if rows and not property_.nullable and property_.default is None:
        return "cannot be filled"
    for row in rows.values():
        row[property_.number] = None if property_.nullable else property_.default
    return None


def _change_property(before: Property, after: Property, rows: dict[str, Row]) -> str | None:
    number = after.number
    is_kept = (
        before.type == after.type
        or (before.is_text and after.is_text)
        or after.type in WIDER.get(before.type, ())
    )
    if not is_kept and any(row[number] is not None for row in rows.values()):
        return f"cannot become {after.type}"
    for row in rows.values():
        if row[number] is None and before.nullable and not after.nullable:
            row[number] = after.default
    return None


# -- history -----------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """What a commit shows: a schema, and rows under it."""

    schema: Schema
    rows: Rows

    def named(self) -> dict[str, dict[str, dict[str, Value]]]:
        """The rows by the names of this schema."""
        found: dict[str, dict[str, dict[str, Value]]] = {}
        for number, type_ in self.schema.items():
            names = {n: one.name for n, one in type_.properties.items()}
            found[type_.name] = {
                id_: {str(names.get(column, column)): value for column, value in row.items()}
                for id_, row in self.rows[number].items()
            }
        return found


class Commit(Protocol):
    """What the model wants to know of a commit."""

    @property
    def id(self) -> str: ...
    @property
    def created_at(self) -> int: ...


@dataclass
class History:
    """Every commit with its parents and its state, and the heads of branches."""

    states: dict[str, State] = field(default_factory=dict)
    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ages: dict[str, tuple[int, str]] = field(default_factory=dict)
    pairs: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    """Numbers that a merge made one."""
    heads: dict[str, str] = field(default_factory=dict)

    def state(self, branch: str) -> State:
        return self.states[self.heads[branch]]

    def commit(self, branch: str, commit: Commit, state: State, merged: str | None = None) -> None:
        """Put a commit on top of a branch."""
        parents = (self.heads[branch],) if branch in self.heads else ()
        self.parents[commit.id] = parents if merged is None else (*parents, merged)
        self.ages[commit.id] = (commit.created_at, commit.id)
        self.states[commit.id] = state
        self.heads[branch] = commit.id

    def ancestors(self, commit_id: str) -> set[str]:
        """A commit and everything it descends from."""
        found: set[str] = set()
        waiting = [commit_id]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += self.parents[one]
        return found

    def base(self, one: str, other: str) -> str:
        """The newest of the common ancestors that no other common ancestor descends from."""
        common = self.ancestors(one) & self.ancestors(other)
        older = {id_ for each in common for id_ in self.ancestors(each) - {each}}
        return max(common - older, key=lambda id_: self.ages[id_])

    def joined(self, one: str, other: str) -> set[tuple[int, int]]:
        """Numbers that merges in the history of either made one."""
        known = self.ancestors(one) | self.ancestors(other)
        return {pair for id_ in known for pair in self.pairs.get(id_, ())}
