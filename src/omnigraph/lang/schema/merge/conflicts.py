"""Conflicts of schemas: where two branches disagree, and which side the caller takes.

Owns their kinds and the reading of `resolve`: an element that is named wins over its type, that
over a kind of conflict, and that over a side for everything. Decides nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from omnigraph.errors import BadRequest, quoted
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.ir.ir import TypeKind

Side = Literal["source", "target"]
SchemaConflictKind = Literal[
    "schema_divergent_add", "schema_divergent_change", "schema_drop_change"
]
Resolve: TypeAlias = str | Mapping[str, str] | None
ElementName = tuple[TypeKind, str, str | None]
"""A type by kind and name, or one of its properties."""

SIDES: tuple[Side, ...] = get_args(Side)
SCHEMA_CONFLICTS: tuple[SchemaConflictKind, ...] = get_args(SchemaConflictKind)

_SIDES_BY_WORD: Mapping[str, Side] = {
    "source": "source",
    "theirs": "source",
    "target": "target",
    "ours": "target",
}
_ELEMENT = re.compile(
    r"(?:(?P<kind>interface|node|edge):)?(?P<type>[A-Z]\w*)(?:\.(?P<property>[a-z_]\w*))?",
    re.ASCII,
)


def other_side(side: Side) -> Side:
    """The other one."""
    return "target" if side == "source" else "source"


@dataclass(frozen=True, slots=True)
class SchemaConflict:
    """One place where two schemas disagree.

    ``base``, ``source`` and ``target`` are what each says there, as `.pg` writes it; None is
    nothing.
    """

    kind: SchemaConflictKind
    entity_kind: TypeKind
    type_name: str
    message: str
    property: str | None = None
    base: str | None = None
    source: str | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class SchemaResolution:
    """The sides to take; ``elements`` are as they were written, such as `node:Crew.age`."""

    every: Side | None = None
    kinds: Mapping[SchemaConflictKind, Side] = field(default_factory=dict)
    elements: Mapping[str, Side] = field(default_factory=dict)

    def side(self, kind: SchemaConflictKind, names: Iterable[ElementName]) -> Side | None:
        """The side to take where a thing of these names is in conflict; None if nobody said."""
        spelled = self.naming(names)
        if spelled:
            return self.elements[spelled[0]]
        return self.kinds.get(kind) or self.every

    def naming(self, names: Iterable[ElementName]) -> list[str]:
        """The elements that mean one of these names, the narrowest first."""
        wanted: list[str] = []
        ordered = sorted(names, key=lambda name: (name[2] is None, name[0], name[1], name[2] or ""))
        for kind, type_name, property_ in ordered:
            for owner in (f"{kind}:{type_name}", type_name):
                wanted += [owner] if property_ is None else [f"{owner}.{property_}"]
        return [name for name in dict.fromkeys(wanted) if name in self.elements]


def concerns_schema(name: str) -> bool:
    """Whether a key of `resolve` is about schemas: one of their kinds of conflict, or an element.

    An entity has a colon behind its type (`Crew:ann`), so that it is never taken for one.
    """
    return name in SCHEMA_CONFLICTS or _ELEMENT.fullmatch(name) is not None


def schema_part(wanted: Resolve) -> Resolve:
    """What a `resolve` for rows and schemas together says of schemas."""
    if wanted is None or isinstance(wanted, str):
        return wanted
    return {name: side for name, side in wanted.items() if concerns_schema(name)}


def read_schema_resolution(wanted: Resolve) -> SchemaResolution:
    """A side for everything, or sides by kind of conflict, by type or by property."""
    if wanted is None:
        return SchemaResolution()
    if isinstance(wanted, str):
        return SchemaResolution(every=read_side(wanted))
    kinds: dict[SchemaConflictKind, Side] = {}
    elements: dict[str, Side] = {}
    for name, side in wanted.items():
        known = next((kind for kind in SCHEMA_CONFLICTS if kind == name), None)
        if known is not None:
            kinds[known] = read_side(side)
        elif _ELEMENT.fullmatch(name):
            elements[name] = read_side(side)
        else:
            known_kinds = f"the kinds are {', '.join(SCHEMA_CONFLICTS)}"
            hint = did_you_mean(name, SCHEMA_CONFLICTS) or known_kinds
            raise BadRequest(
                f"there is no kind of conflict {quoted(name)!r} between schemas: {hint}; "
                "an element is Type or Type.property"
            )
    return SchemaResolution(None, kinds, elements)


def read_side(text: str) -> Side:
    """The side that a word means."""
    side = _SIDES_BY_WORD.get(text)
    if side is None:
        raise BadRequest(
            f"a conflict is resolved to source (theirs) or target (ours), not to {quoted(text)!r}"
        )
    return side
