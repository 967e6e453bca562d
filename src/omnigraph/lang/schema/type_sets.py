"""Type sets: nodes of several types as one, and edges too.

Owns what such a set has in common: its members, the properties they have and in which type, what
is shown of one of them, and how two sets overlap. Knows nothing of tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.lang.schema.catalog import EdgeType, EntityKind, NodeType, PropertyDef

SEPARATOR = "|"


@dataclass(frozen=True, slots=True)
class InterfaceType:
    """What an interface promises, and which node types keep it, by name."""

    name: str
    type_id: int
    properties: Mapping[str, PropertyDef]
    implementers: tuple[str, ...]
    key: tuple[str, ...] = ()
    """The property that identifies a node among those of all its types, if there is one."""


@dataclass(frozen=True, slots=True)
class TypeSet:
    """Several node types, or several edge types, that one variable stands for.

    ``disagreeing`` names the properties that some members have in types that do not go together.
    """

    kind: EntityKind
    name: str
    members: tuple[str, ...]
    properties: Mapping[str, PropertyDef]
    shown: tuple[str, ...]
    disagreeing: frozenset[str] = frozenset()
    key: tuple[str, ...] = ()


def members_of(type_: NodeType | EdgeType | TypeSet) -> tuple[str, ...]:
    """The types with rows that a type stands for: itself, or the members of a set."""
    return type_.members if isinstance(type_, TypeSet) else (type_.name,)


def node_set(
    name: str,
    types: Sequence[NodeType],
    shown: tuple[str, ...],
    promised: Mapping[str, PropertyDef],
) -> TypeSet:
    """Node types as one; what only some of them have may be null.

    ``promised`` is what an interface without implementing types would have.
    """
    properties, disagreeing = _joined(types, partly=True)
    keys = {type_.key for type_ in types}
    return TypeSet(
        "node",
        name,
        tuple(type_.name for type_ in types),
        properties if types else promised,
        shown,
        disagreeing,
        keys.pop() if len(keys) == 1 else (),
    )


def edge_set(types: Sequence[EdgeType]) -> TypeSet:
    """Edge types as one: with the properties that all of them have."""
    properties, disagreeing = _joined(types, partly=False)
    names = tuple(type_.name for type_ in types)
    return TypeSet("edge", SEPARATOR.join(names), names, properties, tuple(properties), disagreeing)


def _joined(
    types: Sequence[NodeType] | Sequence[EdgeType], *, partly: bool
) -> tuple[dict[str, PropertyDef], frozenset[str]]:
    names = sorted({name for type_ in types for name in type_.properties})
    properties: dict[str, PropertyDef] = {}
    disagreeing: set[str] = set()
    for name in names:
        found = [type_.properties[name] for type_ in types if name in type_.properties]
        if len(found) < len(types) and not partly:
            continue
        if len({_comparable(one) for one in found}) > 1:
            disagreeing.add(name)
            continue
        nullable = len(found) < len(types) or any(one.type.nullable for one in found)
        properties[name] = replace(found[0], type=found[0].type.or_null(when=nullable))
    return properties, frozenset(disagreeing)


def _comparable(found: PropertyDef) -> object:
    # An enum is a text, whichever choices it has.
    return replace(found.type, nullable=False, enum_values=None)
