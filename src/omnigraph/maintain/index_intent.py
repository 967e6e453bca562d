"""Index intent: which indexes a schema asks for, and why.

Owns the rule from declarations to purposes. Pure: what an index of a purpose looks like
depends on the rows, and is decided elsewhere (index_choice.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef

Purpose = Literal["lookup", "match", "words", "nearest"]
"""What an index is for.

`lookup` is equality, ranges and prefixes; `match` is that for free text, or `contains` where
texts are long; `words` is full-text search, `nearest` is vector search.
"""


@dataclass(frozen=True, slots=True)
class IndexIntent:
    """One wanted index; ``property`` is the column, too."""

    type_key: str
    property: str
    purpose: Purpose
    why: str
    may_be_null: bool = False


@dataclass(frozen=True, slots=True)
class Unbuilt:
    """A declaration that asks for no index, and the reason; for several properties, with commas."""

    type_key: str
    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class TypeIntent:
    """What one type asks for."""

    type_key: str
    wanted: tuple[IndexIntent, ...]
    unbuilt: tuple[Unbuilt, ...] = ()


def intents_of(catalog: Catalog) -> Mapping[str, TypeIntent]:
    """What every type asks for, by type key."""
    found = [_of_node(type_) for type_ in catalog.nodes.values()]
    found += [_of_edge(type_) for type_ in catalog.edges.values()]
    return {intent.type_key: intent for intent in sorted(found, key=lambda one: one.type_key)}


def _of_node(type_: NodeType) -> TypeIntent:
    key = f"node:{type_.name}"
    wanted = [IndexIntent(key, "id", "lookup", "every id is looked up")]
    unbuilt: list[Unbuilt] = []
    declared = dict.fromkeys(type_.indexes, "@index")
    if type_.key:
        declared |= {type_.key: "@key"}
    for members, word in declared.items():
        if len(members) > 1:
            reason = f"{word} of several properties builds nothing"
            unbuilt.append(Unbuilt(key, ", ".join(members), reason))
            continue
        property_ = type_.properties[members[0]]
        intents = list(_of_property(key, property_, word))
        wanted += intents
        if not intents:
            reason = f"{word} on {property_.type} builds nothing: it has no order to search by"
            unbuilt.append(Unbuilt(key, property_.name, reason))
    return TypeIntent(key, tuple(wanted), tuple(unbuilt))


def _of_property(type_key: str, property_: PropertyDef, word: str) -> Iterator[IndexIntent]:
    name, kind = property_.name, property_.type
    if kind.is_vector:
        may_be_null = kind.nullable or property_.embedding is not None
        yield IndexIntent(type_key, name, "nearest", f"{word} on a vector", may_be_null)
    elif not kind.is_plain:
        return
    elif kind.is_text and kind.enum_values is None:
        purpose: Purpose = "lookup" if word == "@key" else "match"
        yield IndexIntent(type_key, name, purpose, f"{word} on a text")
        yield IndexIntent(type_key, name, "words", f"{word} on a text")
    else:
        yield IndexIntent(type_key, name, "lookup", f"{word} on {kind.without_null}")


def _of_edge(type_: EdgeType) -> TypeIntent:
    key = f"edge:{type_.name}"
    wanted = [
        IndexIntent(key, "id", "lookup", "every id is looked up"),
        IndexIntent(key, "src", "lookup", "edges are followed"),
        IndexIntent(key, "dst", "lookup", "edges are followed backwards"),
    ]
    unbuilt = [
        Unbuilt(
            key,
            ", ".join(members),
            "@index of several properties builds nothing"
            if len(members) > 1
            else "@index on a property of an edge builds nothing",
        )
        for members in type_.indexes
        if len(members) > 1 or members[0] not in {"src", "dst"}
    ]
    return TypeIntent(key, tuple(wanted), tuple(unbuilt))
