"""Diffs: what is different between any two states of a graph.

Owns finding the states that were named, and the net differences with their counts. Lazy:
rows are read when somebody looks, and images are made for those that are looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from omnigraph.errors import BadRequest, BranchNotFound, NotFound
from omnigraph.history.changes import (
    Change,
    ChangeFilter,
    ComparedType,
    Filters,
    Op,
    compared_types,
)
from omnigraph.history.stream import ChangeStream, rows_of
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, EntityKind
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import GraphHandle


@dataclass(frozen=True, slots=True)
class TypeStats:
    """How many entities of a type differ, and how."""

    kind: EntityKind
    type_name: str
    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    @property
    def total(self) -> int:
        """How many altogether."""
        return self.inserted + self.updated + self.deleted


class Diff:
    """The net differences between two states, by type key (edges first), then by id.

    Every iteration compares again; `len` and `stats` count without making images.
    """

    def __init__(
        self,
        types: Sequence[ComparedType],
        wanted: ChangeFilter,
        before: Snapshot,
        after: Snapshot,
    ) -> None:
        self.from_version: int = before.manifest_version
        self.to_version: int = after.manifest_version
        self._types = [type_ for type_ in types if wanted.has_type(type_.kind, type_.ref.id)]
        self._wanted = wanted
        self._versions = {type_.ref.id: type_.version for type_ in self._types}

    def __iter__(self) -> Iterator[Change]:
        return iter(ChangeStream(self._types, self._wanted))

    def __len__(self) -> int:
        return sum(counted.total for counted in self.stats)

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    @cached_property
    def stats(self) -> tuple[TypeStats, ...]:
        """How many entities differ, for every type where some do."""
        counted = (self._count(type_) for type_ in self._types)
        return tuple(found for found in counted if found.total)

    def _count(self, type_: ComparedType) -> TypeStats:
        counts: Counter[Op] = Counter()
        for rows in rows_of(type_):
            counts["insert"] += rows.inserted.num_rows
            counts["update"] += rows.after.num_rows
            counts["delete"] += rows.deleted.num_rows
        wanted = {op: count for op, count in counts.items() if op in self._wanted.ops}
        return TypeStats(
            type_.kind,
            type_.ref.name,
            wanted.get("insert", 0),
            wanted.get("update", 0),
            wanted.get("delete", 0),
        )

    def version_of(self, change: Change) -> int:
        """The published version of the table in which one of the changes is seen."""
        return self._versions[change.type.id]

    def __repr__(self) -> str:
        return f"<Diff of manifest versions {self.from_version} and {self.to_version}>"


def diff(before: Snapshot, after: Snapshot, filters: Filters) -> Diff:
    """What is different in ``after``."""
    if before.schema.identity_domain != after.schema.identity_domain:
        raise BadRequest("the two snapshots are not of one graph: only states of one are compared")
    return Diff(compared_types(before, after), filters.among(before, after), before, after)


def named_state(graph: GraphHandle, named: str | Snapshot) -> Snapshot:
    """The state that the name of a branch or the id of a commit means."""
    if isinstance(named, Snapshot):
        return named
    try:
        return graph.manifest.view(normalise_branch(named)).snapshot
    except (BadRequest, BranchNotFound):
        pass  # then it is a commit
    try:
        commit = graph.manifest.find_commit(named.strip())
    except NotFound as error:
        branches = [MAIN, *graph.manifest.refs.read().names]
        hint = did_you_mean(named, branches) or "the lists of branches and commits show what is"
        raise NotFound(
            f"there is no branch and no commit {named!r}: {hint}", details={"target": named}
        ) from error
    return graph.manifest.view_at(commit).snapshot
