"""Resolution: which side wins where two branches disagree, as the caller asked for it.

Owns reading the request. An entity that is named wins over its kind of conflict, and
that over all of them. Decides nothing that was not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import Catalog

Side = Literal["source", "target"]
Resolve: TypeAlias = str | Mapping[str, str] | None

SIDES: tuple[Side, ...] = get_args(Side)
RESOLVABLE = ("divergent_insert", "divergent_update", "delete_vs_update", "orphan_edge")
"""The kinds of conflict that taking a side settles."""
UNRESOLVABLE = ("unique_violation", "cardinality_violation", "value_constraint_violation")


@dataclass(frozen=True, slots=True)
class Resolution:
    """The sides to take; ``entities`` are by type key and id."""

    every: Side | None = None
    kinds: Mapping[str, Side] = field(default_factory=dict)
    entities: Mapping[tuple[str, str], Side] = field(default_factory=dict)

    def side(self, kind: str, type_key: str, entity_id: str) -> Side | None:
        """The side to take in one conflict; None when nobody has said."""
        named = self.entities.get((type_key, entity_id))
        return named or self.kinds.get(kind) or self.every

    @property
    def is_empty(self) -> bool:
        """Whether it settles nothing."""
        return self.every is None and not self.kinds and not self.entities


def read_resolution(wanted: Resolve, catalog: Catalog) -> Resolution:
    """A side for everything, or sides by kind of conflict or by entity (`Person:ann`)."""
    if wanted is None:
        return Resolution()
    if isinstance(wanted, str):
        return Resolution(every=_side(wanted))
    kinds: dict[str, Side] = {}
    entities: dict[tuple[str, str], Side] = {}
    for name, side in wanted.items():
        if ":" in name:
            entities[_entity(name, catalog)] = _side(side)
        else:
            kinds[_kind(name)] = _side(side)
    return Resolution(None, kinds, entities)


def _side(text: str) -> Side:
    for side in SIDES:
        if text == side:
            return side
    raise BadRequest(f"a conflict is resolved to source or target, not to {text!r}")


def _kind(name: str) -> str:
    if name in RESOLVABLE:
        return name
    if name in UNRESOLVABLE:
        raise BadRequest(
            f"a {name} cannot be resolved by taking a side: change one of the two branches so "
            "that both fit together, and merge again"
        )
    hint = did_you_mean(name, RESOLVABLE) or f"the kinds are {', '.join(RESOLVABLE)}"
    raise BadRequest(f"there is no kind of conflict {name!r}: {hint}; an entity is Type:id")


def _entity(name: str, catalog: Catalog) -> tuple[str, str]:
    """`Person:ann`, or `node:Person:ann` where a node and an edge type share a name."""
    type_name, _, id_ = name.partition(":")
    if type_name in ("node", "edge") and ":" in id_:
        bare, _, rest = id_.partition(":")
        if any(catalog.named(f"{type_name}:{bare}")):
            type_name, id_ = f"{type_name}:{bare}", rest
    try:
        found = catalog.find(type_name)
    except NotFound as error:
        raise BadRequest(f"{error.message}; an entity to resolve is Type:id") from error
    return f"{found.kind}:{found.name}", id_
