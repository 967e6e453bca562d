"""Merging schemas: two that began as one become one again, or tell where they cannot.

Owns the order of things, and how a resolution is applied: conflicts that it settles are decided
and the merge is tried again, until nothing more is settled. Pure: rows are asked about through
`TouchedData`, and nothing is read or written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.identity import identities
from omnigraph.lang.schema.ir.ir import SchemaIR
from omnigraph.lang.schema.merge.conflicts import (
    Resolve,
    SchemaConflict,
    SchemaResolution,
    Side,
    read_schema_resolution,
)
from omnigraph.lang.schema.merge.declarations import merge_declarations
from omnigraph.lang.schema.merge.merging import Decision, Found, Merging, Place, TouchedData
from omnigraph.lang.schema.merge.model import Model, SchemaVersion, read_model, read_tree
from omnigraph.lang.schema.merge.names import check_names
from omnigraph.lang.schema.merge.references import follow_references
from omnigraph.lang.schema.merge.result import Sealed, seal
from omnigraph.lang.schema.merge.same_things import Equivalence, Unified, join_equal_additions
from omnigraph.lang.schema.merge.text import merged_text
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.source import Source


@dataclass(frozen=True, slots=True)
class SideIds:
    """The id that each thing of a merged schema has on each side that has it."""

    base: Mapping[int, int] = field(default_factory=dict)
    source: Mapping[int, int] = field(default_factory=dict)
    target: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchemaMerge:
    """What became of a merge of schemas.

    While conflicts stand there is no ``ir`` and no ``source_text``; ``resolved`` are those that
    were settled, with the side that won, and ``unused`` the elements that a resolution named and
    that were in no conflict. ``unified`` are the ids of the source that are other ids in the
    merged schema, because both sides added the same thing; ``ids`` say where everything in the
    merged schema (types, properties, incarnations) is on each side.
    """

    ir: SchemaIR | None = None
    source_text: str | None = None
    conflicts: tuple[SchemaConflict, ...] = ()
    resolved: tuple[tuple[SchemaConflict, Side], ...] = ()
    unused: tuple[str, ...] = ()
    unified: Mapping[int, int] = field(default_factory=dict)
    ids: SideIds = field(default_factory=SideIds)


def merge_schemas(
    base: SchemaVersion,
    source: SchemaVersion,
    target: SchemaVersion,
    *,
    touched: TouchedData,
    unified: Unified = (),
    resolve: Resolve = None,
) -> SchemaMerge:
    """Merge the source's changes since the base into the target.

    ``unified`` are the pairs of ids that earlier merges in the history of either side have
    recorded, in whatever order.
    """
    versions = (base, source, target)
    if len({each.ir.schema_identity_domain for each in versions}) > 1:
        raise SchemaError("schemas of different graphs cannot be merged: their ids mean nothing")
    resolution = read_schema_resolution(resolve)
    following = max(each.ir.next_identity_id for each in versions)
    texts = zip(versions, ("base", "source", "target"), strict=True)
    sources = [Source(version.text, name) for version, name in texts]
    readings = tuple(
        (source, read_tree(source), version.ir)
        for source, version in zip(sources, versions, strict=True)
    )
    attempts = _Attempts(readings, Equivalence(unified), touched, resolution)
    while True:
        merging = attempts.models()
        merge_declarations(merging)
        follow_references(merging)
        check_names(merging)
        sealed = None
        if not merging.found:
            sealed = seal(merging, domain=base.ir.schema_identity_domain, following=following)
        if not attempts.settle(merging.found):
            return attempts.outcome(merging, sealed)


@dataclass(slots=True)
class _Attempts:
    """What was settled so far."""

    readings: tuple[tuple[Source, Schema, SchemaIR], ...]
    """Base, source and target."""
    same: Equivalence
    touched: TouchedData
    resolution: SchemaResolution
    decided: dict[Place, Side] = field(default_factory=dict)
    settled: dict[object, tuple[SchemaConflict, Side]] = field(default_factory=dict)
    standing: list[SchemaConflict] = field(default_factory=list)
    named: set[str] = field(default_factory=set)

    def models(self) -> Merging:
        """A fresh start with all that is decided."""
        base, source, target = self._read()
        while join_equal_additions(base, source, target, self.same):
            base, source, target = self._read()
        self.decided = {place.moved(self.same): side for place, side in self.decided.items()}
        return Merging(base, source, target, self.same, self.decided, self.touched)

    def _read(self) -> tuple[Model, Model, Model]:
        base, source, target = (read_model(*each, self.same.find) for each in self.readings)
        return base, source, target

    def settle(self, found: list[Found]) -> bool:
        """Decide what the resolution says; false when it says nothing new."""
        self.standing = []
        progress = False
        for each in found:
            self.named.update(self.resolution.naming(each.names))
            side = self.resolution.side(each.conflict.kind, each.names)
            if side is not None and any(self._take(way, side) for way in each.ways.get(side, ())):
                self.settled.setdefault(each.about, (each.conflict, side))
                progress = True
            else:
                self.standing.append(each.conflict)
        return progress

    def _take(self, way: Decision, side: Side) -> bool:
        """Decide what is still open; false when that is nothing."""
        new = [place for place in way.places if place not in self.decided]
        self.decided |= dict.fromkeys(new, side)
        joins = [pair for pair in way.joins if len({self.same.find(each) for each in pair}) > 1]
        for pair in joins:
            self.same.join(*pair)
        return bool(new or joins)

    def outcome(self, merging: Merging, sealed: Sealed | None) -> SchemaMerge:
        """What is told in the end."""
        resolved = tuple(each for each in self.settled.values() if each[0] not in self.standing)
        unused = tuple(name for name in self.resolution.elements if name not in self.named)
        if sealed is None:
            conflicts = sorted(self.standing, key=_by_place)
            return SchemaMerge(conflicts=tuple(conflicts), resolved=resolved, unused=unused)
        ids = _side_ids(merging, sealed)
        merged_of = {own: merged for merged, own in ids.source.items()}
        return SchemaMerge(
            sealed.ir,
            merged_text(merging, sealed),
            resolved=resolved,
            unused=unused,
            unified={own: merged for own, merged in sorted(merged_of.items()) if own != merged},
            ids=ids,
        )


def _by_place(conflict: SchemaConflict) -> tuple[str, ...]:
    return (
        conflict.entity_kind,
        conflict.type_name,
        conflict.property or "",
        conflict.kind,
        conflict.message,
    )


def _side_ids(merging: Merging, sealed: Sealed) -> SideIds:
    find = merging.same.find
    by_class = {find(each): each for each in identities(sealed.ir)}
    found = []
    for model in (merging.base, merging.source, merging.target):
        own = {}
        for each in model.types.values():
            for identity in each.own_ids():
                if find(identity) in by_class:
                    own[by_class[find(identity)]] = identity
        found.append(own)
    return SideIds(*found)
