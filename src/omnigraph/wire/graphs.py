"""What a graph is: the program that wrote it, its snapshots, branches, commits and merges.

Owns the names of these bodies. Takes what it is given and asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from msgspec import field

from omnigraph.version import INTERNAL_SCHEMA, __version__
from omnigraph.wire.body import Body

if TYPE_CHECKING:
    from omnigraph.errors import MergeConflict
    from omnigraph.history.merge.conflicts import MergedRowCounts, MergeResult
    from omnigraph.manifest.entries import Commit
    from omnigraph.manifest.snapshot import Snapshot, SnapshotTable

EntityKind = Literal["node", "edge"]
Side = Literal["source", "target"]


class VersionBody(Body, frozen=True):
    """The release and the storage format that it writes."""

    version: str
    internal_schema: int

    @classmethod
    def current(cls) -> VersionBody:
        """Those of this program."""
        return cls(__version__, INTERNAL_SCHEMA)


class DatasetBody(Body, frozen=True):
    """One table as a snapshot shows it."""

    entity_kind: EntityKind
    type_name: str
    dataset_path: str
    published_dataset_version: int
    native_dataset_branch: str | None
    entity_count: int
    lance_version: int

    @classmethod
    def of(cls, found: SnapshotTable) -> DatasetBody:
        """The table with its pin."""
        return cls(
            found.table.entity_kind,
            found.table.type_name,
            found.table.path,
            found.version,
            found.branch,
            found.pin.row_count,
            found.pin.version,
        )


class SnapshotBody(Body, frozen=True):
    """A snapshot with its datasets, by type key: edges first."""

    graph_branch: str
    graph_manifest_version: int
    internal_schema_version: int
    datasets: list[DatasetBody]

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotBody:
        """What a branch or a commit shows."""
        datasets = [DatasetBody.of(found) for _, found in sorted(snapshot.tables.items())]
        return cls(snapshot.branch, snapshot.manifest_version, INTERNAL_SCHEMA, datasets)


# -- commits -----------------------------------------------------------------------------


class CommitBody(Body, frozen=True):
    """A commit; `graph_branch` is null for main, `created_at` is µs since the epoch."""

    graph_commit_id: str
    graph_branch: str | None
    graph_manifest_version: int
    parent_commit_id: str | None
    merged_parent_commit_id: str | None
    actor_id: str | None
    created_at: int
    embedding: dict[str, Any] | None = None
    """Who computed its `@embed` vectors; left out when nobody did."""
    heads: list[str] | None = None
    """The branches whose newest commit it is, in a log."""
    message: str | None = None
    """What somebody said about it; left out when nobody did."""

    @classmethod
    def of(cls, commit: Commit, heads: list[str] | None = None) -> CommitBody:
        """The commit, with the branches that end there if somebody looked."""
        return cls(
            commit.id,
            commit.branch,
            commit.manifest_version,
            commit.parent_id,
            commit.merged_parent_id,
            commit.actor,
            commit.created_at,
            commit.metadata.get("embedding"),
            heads,
            commit.message,
        )

    @classmethod
    def of_any(cls, commit: Commit | None) -> CommitBody | None:
        """The commit of a write, which has none when nothing changed."""
        return None if commit is None else cls.of(commit)


class CommitsBody(Body, frozen=True):
    """Commits, newest first."""

    commits: list[CommitBody]

    @classmethod
    def of(
        cls, commits: Iterable[Commit], heads: Mapping[str, list[str]] | None = None
    ) -> CommitsBody:
        """A list of them; with heads by commit id it is a log."""
        return cls(
            [
                CommitBody.of(commit, None if heads is None else heads.get(commit.id, []))
                for commit in commits
            ]
        )


# -- branches ----------------------------------------------------------------------------


class BranchesBody(Body, frozen=True):
    """The names of all branches, sorted."""

    branches: list[str]


class BranchCreatedBody(Body, frozen=True):
    """A new branch, and the one it was made from."""

    uri: str
    from_: str = field(name="from")
    name: str
    actor_id: str | None


class BranchDeletedBody(Body, frozen=True):
    """A branch that is gone."""

    uri: str
    name: str
    actor_id: str | None


class BranchRenamedBody(Body, frozen=True):
    """A branch that has another name."""

    uri: str
    former: str
    name: str
    actor_id: str | None


class TagBody(Body, frozen=True):
    """A tag and the commit that it keeps."""

    name: str
    graph_commit_id: str


class TagsBody(Body, frozen=True):
    """All tags, by name."""

    tags: list[TagBody]


class TagDeletedBody(Body, frozen=True):
    """A tag that is gone."""

    name: str


# -- merges ------------------------------------------------------------------------------


class ConflictBody(Body, frozen=True):
    """One place where two branches disagree, with the values of all sides.

    Where the schemas disagree there is no entity: its id is empty, and values are as `.pg` has
    them.
    """

    entity_kind: Literal["node", "edge", "interface"]
    type_name: str
    entity_id: str
    kind: str
    message: str
    property: str | None
    base: Any
    source: Any
    target: Any
    side: Side | None = None
    """The side that won, where a conflict was resolved."""

    @classmethod
    def of(cls, conflict: MergeConflict, side: Side | None = None) -> ConflictBody:
        """The conflict, and the side that won if one did."""
        return cls(**asdict(conflict), side=side)


class MergedTypeBody(Body, frozen=True):
    """What a merge does to one type; `combined` of the updated rows mix both sides."""

    entity_kind: EntityKind
    type_name: str
    inserted: int
    updated: int
    deleted: int
    combined: int

    @classmethod
    def of(cls, type_key: str, counts: MergedRowCounts) -> MergedTypeBody:
        """The counts of a type, which its key names."""
        return cls(*split_key(type_key), **asdict(counts))


class MergeBody(Body, frozen=True):
    """What became of a merge; `changes` and `merge_conflicts` are those of a dry run."""

    source: str
    target: str
    outcome: Literal["already_up_to_date", "fast_forward", "merged", "reverted", "picked", "reset"]
    actor_id: str | None
    commit: CommitBody | None = None
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None
    resolved: tuple[ConflictBody, ...] = ()
    dry_run: bool = False
    changes: list[MergedTypeBody] | None = None
    merge_conflicts: list[ConflictBody] | None = None
    repeats_run: bool = False
    schema: dict[str, Any] | None = None
    """What it does to the schema of the target, if anything."""

    @classmethod
    def of(cls, result: MergeResult) -> MergeBody:
        """The result of a merge or of a dry run."""
        is_dry_run = result.is_dry_run
        counts = [MergedTypeBody.of(key, found) for key, found in result.counts.items()]
        conflicts = [ConflictBody.of(conflict) for conflict in result.conflicts]
        return cls(
            result.source,
            result.target,
            result.outcome,
            result.actor,
            CommitBody.of_any(result.commit),
            result.branch_deleted,
            result.branch_delete_error,
            tuple(ConflictBody.of(conflict, side) for conflict, side in result.resolved),
            is_dry_run,
            counts if is_dry_run else None,
            conflicts if is_dry_run else None,
            result.repeats_run,
            result.schema.to_json() if result.schema.steps else None,
        )


def split_key(type_key: str) -> tuple[EntityKind, str]:
    """The kind and the name of a type key such as `node:Person`."""
    kind, _, name = type_key.partition(":")
    return "node" if kind == "node" else "edge", name
