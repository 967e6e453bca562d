"""The history of one entity: which commits changed it, and which gave each property its value.

Owns following a history with merges back to where an entity was really changed: past every commit
that shows it as one of its parents did. Looks the entity up by its id, where its table differs at
all.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from omnigraph.errors import NotFound
from omnigraph.history.changed_rows import compare
from omnigraph.history.changes import OPS, Change, TypeRef, type_id
from omnigraph.history.compared_types import ComparedType, compared_types
from omnigraph.history.stream import changes_of, in_order_of_ids
from omnigraph.lang.schema.catalog import EdgeType, NodeType, unknown_type
from omnigraph.lang.structural import ID
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import Commit, TableIdentity
from omnigraph.manifest.snapshot import (
    Snapshot,
    SnapshotTable,
    ancestors_of,
    catalog_of,
)
from omnigraph.manifest.store import GraphHandle
from omnigraph.storage.tables.row_lookup import find_rows
from omnigraph.storage.tables.rows_in_place import ColumnPair
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, column_names

PLACE = {ROW_ID, ROW_ADDRESS}
RECLAIMED: Literal["reclaimed"] = "reclaimed"

Show = Callable[[Snapshot, str], Snapshot]
"""What somebody may see of a state, by the rules for a branch."""


@dataclass(frozen=True, slots=True)
class EntityChange:
    """What a commit did to the entity, against the parent it was made on."""

    commit: Commit
    change: Change


@dataclass(frozen=True, slots=True)
class EntityHistory:
    """The commits that changed an entity, newest first.

    It ``is_complete`` unless cleanup has reclaimed commits in which more may have happened.
    """

    changes: tuple[EntityChange, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class SetBy:
    """A property with its value, and the commit that gave it; None where that was reclaimed."""

    property: str
    value: Any
    commit: Commit | None


@dataclass(slots=True)
class EntityLine:
    """One entity of a branch, looked at from its newest commit backwards."""

    graph: GraphHandle
    branch: str
    type_name: str
    id: str
    show: Show
    _shown: dict[str, Snapshot | None] = field(default_factory=dict)
    _steps: dict[tuple[str, str], Change | None] = field(default_factory=dict)
    _known: Mapping[str, Commit] = field(init=False)
    _head: Commit = field(init=False)
    _identity: TableIdentity = field(init=False)

    def __post_init__(self) -> None:
        view = self.graph.manifest.view(normalise_branch(self.branch))
        self._known = ancestors_of(view)
        self._head = self._known[view.state.head_commit_id]
        self._identity = self._find_type()

    def _find_type(self) -> TableIdentity:
        """The table of the type; of one that is gone, as it was called when it went."""
        names: set[str] = set()
        for commit in self._newest_first([self._head]):
            shown = self._state(commit)
            if shown is None:
                break
            try:
                return shown.named(self.type_name).identity
            except NotFound:
                names |= {table.table.type_name for table in shown.tables.values()}
        raise unknown_type(self.type_name, names)

    # -- asked -----------------------------------------------------------------------

    def history(self, limit: int | None = None) -> EntityHistory:
        """The commits that changed it, as many as are wanted."""
        found: list[EntityChange] = []
        is_complete = True
        waiting, seen = [_place(self._head)], {self._head.id}
        while waiting and (limit is None or len(found) < limit):
            commit = heapq.heappop(waiting)[-1]
            step = self._changed_by(commit)
            if step == RECLAIMED:
                is_complete = False
                continue
            if isinstance(step, Change):
                found.append(EntityChange(commit, step))
            for parent in self._followed(commit):
                if parent.id not in seen:
                    seen.add(parent.id)
                    heapq.heappush(waiting, _place(parent))
        if not found and is_complete:
            raise NotFound(
                f"there never was a {self.type_name} {self.id!r} on branch {self.branch}",
                details={"type_name": self.type_name, "id": self.id},
            )
        return EntityHistory(tuple(found), is_complete)

    def blame(self) -> list[SetBy]:
        """Every property as it is now, with the commit that set it last."""
        shown = self._state(self._head)
        table = None if shown is None else shown.by_identity.get(self._identity)
        values = {} if shown is None or table is None else self._values(shown, table)
        if shown is None or table is None or not values:
            raise NotFound(
                f"there is no {self.type_name} {self.id!r} on branch {self.branch}",
                details={"type_name": self.type_name, "id": self.id},
            )
        names = _names_by_id(shown, table)
        wanted = {one for one, name in names.items() if name in values}
        open_: dict[str, set[int]] = defaultdict(set, {self._head.id: wanted})
        setters: dict[int, Commit | None] = {}
        waiting = [_place(self._head)]
        while waiting:
            commit = heapq.heappop(waiting)[-1]
            asked = open_.pop(commit.id, set())
            if not asked:
                continue
            for parent in self._parents(commit):
                same = asked - self._set_between(parent, commit, asked)
                if same:
                    open_[parent.id] |= same
                    heapq.heappush(waiting, _place(parent))
                    asked = asked - same
            is_known = all(self._state(parent) is not None for parent in self._parents(commit))
            setters |= dict.fromkeys(asked, commit if is_known else None)
        return [
            SetBy(names[one], values[names[one]], setters[one]) for one in names if one in wanted
        ]

    # -- walking ---------------------------------------------------------------------

    def _changed_by(self, commit: Commit) -> Change | Literal["reclaimed"] | None:
        """What a commit did that none of its parents had; None if it is as one of them shows it."""
        parents = self._parents(commit)
        if self._state(commit) is None:
            return RECLAIMED
        if not parents:
            return None
        if any(self._state(parent) is None for parent in parents):
            return RECLAIMED
        steps = [self._step(parent, commit) for parent in parents]
        return None if any(step is None for step in steps) else steps[0]

    def _followed(self, commit: Commit) -> list[Commit]:
        """The parents that show it as this commit does; all of them where none does."""
        parents = self._parents(commit)
        same = [parent for parent in parents if self._step(parent, commit) is None]
        return same[:1] or parents

    def _set_between(self, parent: Commit, commit: Commit, asked: set[int]) -> set[int]:
        """Which of the properties a commit says otherwise than a parent."""
        after = self._state(commit)
        if after is None or self._state(parent) is None:
            return asked
        step = self._step(parent, commit)
        if step is None:
            return set()
        if step.op != "update":
            return asked
        names = _names_by_id(after, after.by_identity[self._identity])
        return {one for one in asked if names.get(one) in step.changed or one not in names}

    def _parents(self, commit: Commit) -> list[Commit]:
        ids = (commit.parent_id, commit.merged_parent_id)
        return [self._known[one] for one in ids if one is not None and one in self._known]

    def _newest_first(self, commits: list[Commit]) -> Iterator[Commit]:
        commit = commits[0]
        while True:
            yield commit
            if commit.parent_id is None or commit.parent_id not in self._known:
                return
            commit = self._known[commit.parent_id]

    def _state(self, commit: Commit) -> Snapshot | None:
        """What a commit showed; None when it was reclaimed."""
        if commit.id not in self._shown:
            view = self.graph.manifest.find_state(commit)
            shown = None if view is None else self.show(view.snapshot, self.branch)
            self._shown[commit.id] = shown
        return self._shown[commit.id]

    # -- comparing -------------------------------------------------------------------

    def _step(self, parent: Commit, commit: Commit) -> Change | None:
        key = parent.id, commit.id
        if key not in self._steps:
            before, after = self._state(parent), self._state(commit)
            if before is None or after is None:
                raise AssertionError("what was reclaimed is compared with nothing")
            self._steps[key] = self._compared(before, after)
        return self._steps[key]

    def _compared(self, before: Snapshot, after: Snapshot) -> Change | None:
        """How the entity differs between two states; None where it does not."""
        wanted = type_id(after, self._identity)
        for type_ in compared_types(before, after):
            if type_.ref.id == wanted:
                return self._compared_rows(type_)
        return None

    def _compared_rows(self, type_: ComparedType) -> Change | None:
        table = type_.after or type_.before
        if table is None:
            raise AssertionError("a type of neither state is compared")
        before, after = (
            self._row(table).slice(0, 0) if side is None else self._row(side)
            for side in (type_.before, type_.after)
        )
        rows = in_order_of_ids(compare(before, after, type_.columns), OPS)
        return changes_of(type_, rows, 0, len(rows))[0].change if len(rows) else None

    def _row(self, table: Table) -> pa.Table:
        """The stored row of the entity, or none."""
        columns = [name for name in column_names(table) if name not in PLACE]
        return find_rows(table, ID, pa.array([self.id]), columns, with_blobs=True)

    def _values(self, shown: Snapshot, table: SnapshotTable) -> Mapping[str, Any]:
        """What the properties say, as query results spell them; nothing if it is not there."""
        registered = table.table
        appeared = ComparedType(
            registered.entity_kind,
            TypeRef(type_id(shown, table.identity), registered.type_name),
            None,
            table.pinned,
            tuple(ColumnPair(None, name) for name in _names_by_id(shown, table).values()),
            table.version,
            (shown.commit_id, shown.commit_id),
        )
        change = self._compared_rows(appeared)
        return {} if change is None or change.after is None else change.after.properties


def _names_by_id(shown: Snapshot, table: SnapshotTable) -> Mapping[int, str]:
    """What a state calls the properties of a type, by their ids."""
    catalog = catalog_of(shown.schema)
    types: Mapping[str, NodeType | EdgeType]
    types = catalog.nodes if table.table.entity_kind == "node" else catalog.edges
    properties = types[table.table.type_name].properties.values()
    return {found.property_id: found.name for found in properties}


def _place(commit: Commit) -> tuple[int, int, str, Commit]:
    """Where a commit stands among those that wait: the newest first."""
    return -commit.created_at, -commit.manifest_version, commit.id, commit
