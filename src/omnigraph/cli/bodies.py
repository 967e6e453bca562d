"""Graph objects as JSON: the same bodies that the server sends.

Owns the names of their fields. Takes what it is given and asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.version import INTERNAL_SCHEMA

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit
    from omnigraph.manifest.snapshot import Snapshot, SnapshotTable


def snapshot_body(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot with its datasets, by type key: edges first."""
    return {
        "graph_branch": snapshot.branch,
        "graph_manifest_version": snapshot.manifest_version,
        "internal_schema_version": INTERNAL_SCHEMA,
        "datasets": [_dataset_body(found) for _, found in sorted(snapshot.tables.items())],
    }


def _dataset_body(found: SnapshotTable) -> dict[str, Any]:
    return {
        "entity_kind": found.table.entity_kind,
        "type_name": found.table.type_name,
        "dataset_path": found.table.path,
        "published_dataset_version": found.version,
        "native_dataset_branch": found.branch,
        "entity_count": found.pin.row_count,
        "lance_version": found.pin.version,
    }


def commit_body(commit: Commit) -> dict[str, Any]:
    """A commit; `created_at` is in microseconds since the epoch."""
    return {
        "graph_commit_id": commit.id,
        "graph_branch": commit.branch,
        "graph_manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
    }
