"""Diffs: what is different between any two states of a graph, of one schema or of two.

Owns finding the states that were named, the net differences with their counts, and the plan that
leads from one schema to the other. Lazy: rows are read when somebody looks, and images are made
for those that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from omnigraph.errors import BadRequest, BranchNotFound, NotFound
from omnigraph.history.changed_rows import ChangeCounts
from omnigraph.history.changes import Change, ChangeFilter, Filters
from omnigraph.history.compared_types import ComparedType, compared_types
from omnigraph.history.stream import ChangeStream, counts_of
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.ir.ir import ir_from_json
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN, EntityKind
from omnigraph.manifest.revisions import find_revision, is_relative
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

    def plus(self, counts: ChangeCounts) -> TypeStats:
        """With more of them."""
        return TypeStats(
            self.kind,
            self.type_name,
            self.inserted + counts.inserted,
            self.updated + counts.updated,
            self.deleted + counts.deleted,
        )


class Diff:
    """The net differences between two states, by type key (edges first), then by id.

    Every iteration compares again; `len` and `stats` count entities without making images. A
    diff is true if anything differs, the schema too.
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
        self._schemas = (before.schema, after.schema)

    def __iter__(self) -> Iterator[Change]:
        return iter(ChangeStream(self._types, self._wanted))

    def __len__(self) -> int:
        return sum(counted.total for counted in self.stats)

    def __bool__(self) -> bool:
        return bool(self.schema.steps) or next(iter(self), None) is not None

    @cached_property
    def schema(self) -> MigrationPlan:
        """The steps from the schema of the one state to that of the other; none if it is one.

        Filters make no difference to them.
        """
        before, after = (ir_from_json(contract.ir) for contract in self._schemas)
        return plan_migration(before, after)

    @cached_property
    def stats(self) -> tuple[TypeStats, ...]:
        """How many entities differ, for every type where some do."""
        # A type that went may have left its name to another.
        counted: dict[tuple[EntityKind, str], TypeStats] = {}
        for type_ in self._types:
            key = (type_.kind, type_.ref.name)
            counted[key] = counted.get(key, TypeStats(*key)).plus(self._count(type_))
        return tuple(found for found in counted.values() if found.total)

    def _count(self, type_: ComparedType) -> ChangeCounts:
        found, ops = counts_of(type_), self._wanted.ops
        return ChangeCounts(
            found.inserted if "insert" in ops else 0,
            found.updated if "update" in ops else 0,
            found.deleted if "delete" in ops else 0,
        )

    def version_of(self, change: Change) -> int:
        """The published version of the table in which one of the changes is seen.

        >>> diff = graph.diff("main", "draft")
        >>> [diff.version_of(change) for change in diff]
        [3]
        """
        return self._versions[change.type.id]

    def __repr__(self) -> str:
        return f"<Diff of manifest versions {self.from_version} and {self.to_version}>"

    def _repr_html_(self) -> str:
        from omnigraph.display.history import diff_html

        heading = f"manifest versions {self.from_version} and {self.to_version}"
        plan = self.schema._repr_html_() if self.schema.steps else ""
        return diff_html(heading, self.stats, self, plan)


def diff(before: Snapshot, after: Snapshot, filters: Filters) -> Diff:
    """What is different in ``after``."""
    if before.schema.identity_domain != after.schema.identity_domain:
        raise BadRequest("the two snapshots are not of one graph: only states of one are compared")
    return Diff(compared_types(before, after), filters.among(before, after), before, after)


def named_state(graph: GraphHandle, named: str | Snapshot) -> Snapshot:
    """The state that the name of a branch, a tag or a commit means."""
    if isinstance(named, Snapshot):
        return named
    try:
        return graph.manifest.view(normalise_branch(named)).snapshot
    except (BadRequest, BranchNotFound):
        pass  # then it is a commit
    try:
        commit = find_revision(graph.manifest, named)
    except (BadRequest, NotFound) as error:
        if is_relative(named) or (isinstance(error, BadRequest) and named.strip()):
            raise
        names = [MAIN, *graph.manifest.refs.read().names]
        hint = did_you_mean(named, names) or "the lists of branches and commits show what is"
        raise NotFound(
            f"there is no branch and no commit {named!r}: {hint}", details={"target": named}
        ) from None
    return graph.manifest.view_at(commit).snapshot
