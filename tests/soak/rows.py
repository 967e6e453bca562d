"""The rows of a graph as the soak knows them: its schema, and what writes do to rows.

Owns states, which are plain mappings, and the effect of every kind of write on them. Knows
nothing of graphs: an effect that cannot have happened on a state says so.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TypeAlias

SCHEMA = """\
node Person {
    name: String @key
    mark: I32
}

node Board {
    name: String @key
    mark: I32
}

node Bulk {
    name: String @key
    mark: I32
    text: String
}

node Counter {
    name: String @key
    mark: I32
}

edge Knows: Person -> Person {
    mark: I32
}
"""
TYPES = ("Person", "Board", "Bulk", "Counter", "Knows")
COUNTER = "all"

Rows: TypeAlias = Mapping[str, str]
"""Of one type: what a row is known by, and what it says."""
State: TypeAlias = Mapping[str, Rows]
"""By type."""
Effect: TypeAlias = Callable[[State], State]

EMPTY: State = {type_: {} for type_ in TYPES}


class Impossible(Exception):
    """A commit that cannot have been made on the state that it is said to stand on."""


# -- what a row is known by ----------------------------------------------------------------


def edge_key(source: str, target: str, mark: int) -> str:
    """What an edge is known by: no write makes two edges of one mark between two nodes."""
    return f"{source}>{target}#{mark}"


def ends(key: str) -> tuple[str, str]:
    """The nodes of an edge."""
    source, _, target = key.partition("#")[0].partition(">")
    return source, target


def bulk_text(mark: int, size: int) -> str:
    """A text of this many characters that no other write has."""
    piece = f"{mark:07},"
    return (piece * (size // len(piece) + 1))[:size]


def digest(mark: int, text: str) -> str:
    """What is compared of a row with a long text."""
    return f"{mark}/{len(text)}/{zlib.crc32(text.encode()):08x}"


# -- what writes do ------------------------------------------------------------------------


def put(type_: str, rows: Rows) -> Effect:
    """Rows that are there afterwards, whatever was there."""
    return lambda state: {**state, type_: {**state[type_], **rows}}


def append(rows: Mapping[str, Rows]) -> Effect:
    """Rows that must not have been there."""

    def effect(state: State) -> State:
        for type_, added in rows.items():
            if known := added.keys() & state[type_].keys():
                raise Impossible(f"appended {type_} rows that were there: {sorted(known)}")
        return {**state, **{type_: {**state[type_], **added} for type_, added in rows.items()}}

    return effect


def update(type_: str, chosen: Callable[[str], bool], value: str) -> Effect:
    """One value for the rows that are chosen by key."""

    def effect(state: State) -> State:
        found = [key for key in state[type_] if chosen(key)]
        if not found:
            raise Impossible(f"updated {type_} rows where there were none")
        return {**state, type_: {**state[type_], **dict.fromkeys(found, value)}}

    return effect


def delete(chosen: Callable[[str], bool]) -> Effect:
    """People that are chosen by key, and the edges at them."""

    def effect(state: State) -> State:
        gone = {key for key in state["Person"] if chosen(key)}
        if not gone:
            raise Impossible("deleted people where there were none")
        people = {key: value for key, value in state["Person"].items() if key not in gone}
        edges = {key: value for key, value in state["Knows"].items() if gone.isdisjoint(ends(key))}
        return {**state, "Person": people, "Knows": edges}

    return effect


def replace(type_: str, rows: Rows) -> Effect:
    """All rows of a type."""
    return lambda state: {**state, type_: dict(rows)}


def count(state: State) -> State:
    """One more on the counter that everybody counts with."""
    value = int(state["Counter"][COUNTER]) + 1
    return {**state, "Counter": {COUNTER: str(value)}}


def nothing(state: State) -> State:
    """A write without an effect."""
    return state


# -- merging -------------------------------------------------------------------------------


def merged(base: State, source: State, target: State) -> State:
    """The rows of both sides; Impossible when they disagree, since nothing may be merged then."""
    result = {type_: _merged(type_, base[type_], source[type_], target[type_]) for type_ in TYPES}
    for key in result["Knows"]:
        if not all(end in result["Person"] for end in ends(key)):
            raise Impossible(f"merged the edge {key} of a node that one side deleted")
    return result


def _merged(type_: str, base: Rows, source: Rows, target: Rows) -> Rows:
    if source == base:
        return target
    if target == base:
        return source
    result: dict[str, str] = {}
    for key in _keys((base, source, target)):
        old, theirs, ours = base.get(key), source.get(key), target.get(key)
        if theirs != old and ours not in (old, theirs):
            raise Impossible(f"merged {type_} {key}: {old} became {theirs} and {ours}")
        value = ours if theirs == old else theirs
        if value is not None:
            result[key] = value
    return result


def _keys(several: Iterable[Rows]) -> Iterable[str]:
    return dict.fromkeys(chain.from_iterable(several))
