"""Conflicts: what is told about rows that two branches disagree on, and what a merge reports.

Owns their texts, and reading which side the caller wants to win: an entity that is named wins
over its kind of conflict, and that over all of them. Decides nothing that was not asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import msgspec
import pyarrow as pa

from omnigraph.errors import BadRequest, MergeConflict, NotFound, quoted
from omnigraph.history.changed_rows import LOCATION
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import Catalog, EdgeType
from omnigraph.lang.schema.merge.conflicts import concerns_schema, read_side
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.structural import ENDPOINTS, ID, spelling
from omnigraph.manifest.entries import Commit
from omnigraph.read.output.json_text import end_text, json_text
from omnigraph.write.change.change_set import EntityType

Side = Literal["source", "target"]
Resolve: TypeAlias = str | Mapping[str, str] | None

SIDES: tuple[Side, ...] = get_args(Side)
RESOLVABLE = ("divergent_insert", "divergent_update", "delete_vs_update", "orphan_edge")
"""The kinds of conflict that taking a side settles."""
UNRESOLVABLE = ("unique_violation", "cardinality_violation", "value_constraint_violation")

_TEXTS = {
    "divergent_insert": "divergent insert for id '{id}'",
    "divergent_update": "divergent update for id '{id}'",
    "delete_vs_update": "delete/update conflict for id '{id}'",
}

Outcome = Literal["already_up_to_date", "fast_forward", "merged", "reverted", "picked", "reset"]


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
        return Resolution(every=read_side(wanted))
    kinds: dict[str, Side] = {}
    entities: dict[tuple[str, str], Side] = {}
    for name, side in wanted.items():
        if concerns_schema(name):
            read_side(side)
        elif ":" in name:
            entities[_entity(name, catalog)] = read_side(side)
        else:
            kinds[_kind(name)] = read_side(side)
    return Resolution(None, kinds, entities)


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
        raise BadRequest(f"{error.message}; an entity to resolve is Type:id") from None
    return f"{found.kind}:{found.name}", id_


@dataclass(slots=True)
class Conflicts:
    """The conflicts of a merge: those that stand, and those that a resolution has settled."""

    resolution: Resolution
    standing: list[MergeConflict] = field(default_factory=list)
    settled: list[tuple[MergeConflict, Side]] = field(default_factory=list)
    unused_elements: list[str] = field(default_factory=list)
    """The elements of schemas that a resolution names and that were in no conflict."""

    def settle(self, found: MergeConflict) -> Side | None:
        """Note a conflict; returns the side that wins, None when it stands."""
        key = f"{found.entity_kind}:{found.type_name}"
        side = self.resolution.side(found.kind, key, found.entity_id)
        if side is None:
            self.standing.append(found)
        else:
            self.settled.append((found, side))
        return side

    def unused(self) -> list[tuple[str, str]]:
        """The entities a resolution names that were in no conflict."""
        met = {
            (f"{conflict.entity_kind}:{conflict.type_name}", conflict.entity_id)
            for conflict in (*self.standing, *(settled for settled, _ in self.settled))
        }
        return [entity for entity in self.resolution.entities if entity not in met]


def row_conflicts(
    type_: EntityType,
    kind: str,
    ids: Sequence[str],
    sides: tuple[pa.Table | None, pa.Table | None, pa.Table | None],
) -> list[MergeConflict]:
    """Conflicts about whole rows of base, source and target; a side without the row has None."""
    shown = [_rows(type_, side, len(ids)) for side in sides]
    return [
        MergeConflict(
            kind,
            type_.kind,
            type_.name,
            id_,
            _TEXTS[kind].format(id=quoted(id_)),
            base=old,
            source=theirs,
            target=ours,
        )
        for id_, old, theirs, ours in zip(ids, *shown, strict=True)
    ]


def property_conflicts(
    type_: EntityType,
    name: str,
    ids: Sequence[str],
    sides: Sequence[pa.ChunkedArray],
) -> list[MergeConflict]:
    """Conflicts about one property that both sides changed, as base, source and target have it."""
    shown = ENDPOINTS.get(name, name)
    values = [json_values(column, type_, name) for column in sides]
    return [
        MergeConflict(
            "divergent_update",
            type_.kind,
            type_.name,
            id_,
            f"{_TEXTS['divergent_update'].format(id=quoted(id_))}, property '{shown}'",
            shown,
            old,
            theirs,
            ours,
        )
        for id_, old, theirs, ours in zip(ids, *values, strict=True)
    ]


def rule_conflict(
    kind: str, type_: EntityType, entity_id: str, message: str, property_: str | None = None
) -> MergeConflict:
    """A merged row that breaks a rule of the schema; ``property_`` is as a violation has it."""
    words = {spelling(column, type_.properties): word for column, word in ENDPOINTS.items()}
    shown = words.get(property_ or "", property_)
    return MergeConflict(kind, type_.kind, type_.name, entity_id, message, shown)


def json_values(column: pa.ChunkedArray, type_: EntityType, name: str) -> list[Any]:
    """The values as JSON has them."""
    whole = column.combine_chunks()
    if isinstance(type_, EdgeType) and name in ENDPOINTS:
        texts = end_text(type_, name, whole).to_pylist()
    else:
        texts = json_text(whole).to_pylist()
    return [None if text is None else msgspec.json.decode(text) for text in texts]


def _rows(type_: EntityType, rows: pa.Table | None, count: int) -> list[Any]:
    if rows is None:
        return [None] * count
    names = [name for name in rows.column_names if name not in (ID, *LOCATION)]
    columns = [json_values(rows.column(name), type_, name) for name in names]
    labels = [ENDPOINTS.get(name, name) for name in names]
    if not names:
        return [{} for _ in range(count)]
    return [dict(zip(labels, values, strict=True)) for values in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class MergedRowCounts:
    """What a merge does to one type; ``combined`` of the updated rows mix both sides."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    combined: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult:
    """What became of a merge.

    ``commit`` is None when nothing was to be merged, and for a dry run. A dry run says in
    ``counts`` what would happen to each type and in ``conflicts`` what stands in the way;
    ``resolved`` are the conflicts that were settled, with the side that won. ``schema`` is what
    the merge does to the target's schema. With ``repeats_run`` it was done before, by an earlier
    merge with the same run id.
    """

    source: str
    target: str
    outcome: Outcome
    commit: Commit | None = None
    actor: str | None = None
    base_commit_id: str | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    is_dry_run: bool = False
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[tuple[MergeConflict, Side], ...] = ()
    counts: Mapping[str, MergedRowCounts] = field(default_factory=dict)
    schema: MigrationPlan = field(default_factory=MigrationPlan)
    repeats_run: bool = field(default=False, compare=False)
    source_id: str | None = field(default=None, compare=False, repr=False)
    """What tells the source from any other branch of its name."""

    def with_deletion(self, error: str | None) -> MergeResult:
        """The same, after the source branch was to be deleted."""
        return replace(self, branch_deleted=error is None, branch_delete_error=error)

    def __repr__(self) -> str:
        return f"<MergeResult {self._heading}>"

    def _repr_html_(self) -> str:
        from omnigraph.display.history import merge_html

        plan = self.schema._repr_html_() if self.schema.steps else ""
        return merge_html(
            self._heading,
            self.counts,
            self.commit,
            standing=self.conflicts,
            settled=self.resolved,
            plan=plan,
        )

    @property
    def _heading(self) -> str:
        """What became of it, in one line."""
        told = f"{self.source} into {self.target}: {self.outcome.replace('_', ' ')}"
        if self.is_dry_run:
            told += " (dry run)"
        if self.conflicts:
            told += f", {len(self.conflicts):,} in conflict"
        return told if self.commit is None else f"{told}, commit {self.commit.id}"
