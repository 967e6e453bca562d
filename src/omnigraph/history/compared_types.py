"""Compared types: which tables and columns of two states are the same, whatever they are called.

Owns matching types and properties by their stable ids, across every change of the schema, and
the refusal of the change feed to go over one that its readers could not follow. Never reads a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.errors import ChangeDiffRefused
from omnigraph.history.changes import TypeRef, type_id
from omnigraph.lang.schema.catalog import EdgeType, NodeType, PropertyDef
from omnigraph.lang.structural import EDGE_COLUMNS, NODE_COLUMNS
from omnigraph.manifest.entries import EntityKind
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable, catalog_of
from omnigraph.storage.tables.rows_in_place import ColumnPair, is_stored_once
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class ComparedType:
    """One type in the states of two commits, of which at least one has it.

    ``properties`` are matched by their ids: those of the later state, then those that it does
    not have any more. ``version`` is the published one in the later state that has the type.
    """

    kind: EntityKind
    ref: TypeRef
    before: Table | None
    after: Table | None
    properties: tuple[ColumnPair, ...]
    version: int
    commits: tuple[str, str]
    former: Mapping[str, str | None] = field(default_factory=dict)
    """What properties of the later state were called, if that was something else."""
    shared: tuple[str, ...] = ()
    """The columns of its ends where nodes may be of several types."""
    end_types: tuple[tuple[int, str], ...] = ()
    """The types of such nodes, by their ids."""

    @property
    def structural(self) -> tuple[str, ...]:
        """The columns that it has besides properties."""
        return NODE_COLUMNS if self.kind == "node" else EDGE_COLUMNS

    @property
    def columns(self) -> list[str | ColumnPair]:
        """All that is compared."""
        return [*self.structural, *self.properties]

    @property
    def names_before(self) -> list[str]:
        """The properties of the earlier state, by name."""
        return sorted(pair.before for pair in self.properties if pair.before is not None)

    @property
    def names_after(self) -> list[str]:
        """The properties of the later state, by name."""
        return sorted(pair.after for pair in self.properties if pair.after is not None)


def compared_types(before: Snapshot, after: Snapshot) -> list[ComparedType]:
    """The types that may differ between two states, by type key: edges before nodes."""
    old, new = before.by_identity, after.by_identity
    found: list[tuple[str, ComparedType]] = []
    for identity, shown in {**old, **new}.items():
        compared = _compared(_State(before, old.get(identity)), _State(after, new.get(identity)))
        if compared is not None:
            found.append((shown.table.type_key, compared))
    return [compared for _, compared in sorted(found, key=lambda one: (one[0], one[1].ref.id))]


@dataclass(frozen=True, slots=True)
class _State:
    """A table in one of the two states, if it is there."""

    snapshot: Snapshot
    shown: SnapshotTable | None

    @property
    def table(self) -> Table | None:
        return None if self.shown is None else self.shown.pinned

    @property
    def properties(self) -> dict[int, PropertyDef]:
        """By their ids; none where the type is not there."""
        if self.shown is None:
            return {}
        type_ = _type(self.snapshot, self.shown)
        return {found.property_id: found for found in type_.properties.values()}


def _compared(before: _State, after: _State) -> ComparedType | None:
    """What is to be compared of a table; None where nothing can differ."""
    last = after if after.shown is not None else before
    shown = last.shown
    if shown is None:
        raise AssertionError("a table of neither state is compared")
    if before.shown is None or after.shown is None:
        if not shown.pin.row_count:
            return None
    elif (
        before.snapshot.schema == after.snapshot.schema
        and before.shown.pin == after.shown.pin
        # An edge comes and goes with the nodes that are shown.
        and before.shown.pinned.is_whole
        and after.shown.pinned.is_whole
    ):
        return None
    was, now = before.properties, after.properties
    pairs = [
        ColumnPair(was[known].name if known in was else None, property_.name)
        for known, property_ in now.items()
    ]
    pairs += [
        ColumnPair(property_.name, None) for known, property_ in was.items() if known not in now
    ]
    old, new = before.table, after.table
    if old is not None and new is not None and _says_the_same(old, new, pairs):
        return None
    return ComparedType(
        shown.table.entity_kind,
        TypeRef(type_id(last.snapshot, shown.identity), shown.table.type_name),
        old,
        new,
        tuple(pairs),
        shown.version,
        (before.snapshot.commit_id, after.snapshot.commit_id),
        dict(_former(pairs)),
        *_shared_ends(before, after),
    )


def _shared_ends(
    before: _State, after: _State
) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    """The columns of ends that may be of several types, and those types as they are called last."""
    shared: set[str] = set()
    names: dict[int, str] = {}
    for state in (before, after):
        type_ = None if state.shown is None else _type(state.snapshot, state.shown)
        if isinstance(type_, EdgeType):
            shared.update(type_.shared)
            names.update(type_.end_types)
    return tuple(sorted(shared)), tuple(sorted(names.items()))


def _says_the_same(old: Table, new: Table, pairs: list[ColumnPair]) -> bool:
    is_one_version = old.pin.version == new.pin.version and old.is_whole and new.is_whole
    return is_one_version and all(is_stored_once(old, new, pair) for pair in pairs)


def _former(pairs: list[ColumnPair]) -> Iterator[tuple[str, str | None]]:
    """Names of before, where they are others: also none, where another property had the name."""
    renamed = {pair.before for pair in pairs if pair.after is not None} - {None}
    for pair in pairs:
        is_other = pair.before is not None and pair.before != pair.after
        if pair.after is not None and (is_other or (pair.before is None and pair.after in renamed)):
            yield pair.after, pair.before


def _type(snapshot: Snapshot, shown: SnapshotTable) -> NodeType | EdgeType:
    catalog, table = catalog_of(snapshot.schema), shown.table
    types = catalog.nodes if table.entity_kind == "node" else catalog.edges
    return types[table.type_name]


# -- the feed ----------------------------------------------------------------------------


def require_followable(before: Snapshot, after: Snapshot) -> None:
    """Refuse a step of the feed that adds, drops or retypes a property, or drops entities.

    Other names, and other words or nulls that are allowed, are no such step.
    """
    if before.schema.ir_hash == after.schema.ir_hash:
        return
    new = after.by_identity
    for identity, shown in before.by_identity.items():
        later = new.get(identity)
        if later is None:
            if shown.pin.row_count:
                raise _boundary(shown.table.type_name, after.commit_id)
        elif set(_columns(_type(before, shown))) != set(_columns(_type(after, later))):
            raise _boundary(later.table.type_name, after.commit_id)


def _columns(type_: NodeType | EdgeType) -> Iterator[tuple[object, ...]]:
    """What makes images comparable; whether null or which words are allowed does not."""
    for property_ in type_.properties.values():
        stored = property_.type
        yield property_.property_id, stored.scalar, stored.is_list, stored.dimension


def _boundary(type_name: str, commit_id: str) -> ChangeDiffRefused:
    return ChangeDiffRefused(
        f"the schema of {type_name} changed in between: take a new baseline behind that change; "
        "a diff compares states on both sides of it",
        details={
            "reason": "schema_boundary",
            "graph_commit_id": commit_id,
            "type_name": type_name,
        },
    )
