"""Graph objects as JSON: the same bodies that the server sends.

Owns the names of their fields. Takes what it is given and asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.version import INTERNAL_SCHEMA

if TYPE_CHECKING:
    from omnigraph.cli.render.formats import ReadOutput
    from omnigraph.errors import PreconditionFailed
    from omnigraph.manifest.entries import Commit
    from omnigraph.manifest.snapshot import Snapshot, SnapshotTable
    from omnigraph.write.change.results import LoadResult, MutationResult


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
    """A commit; `created_at` is in microseconds since the epoch.

    `embedding` says who computed its `@embed` vectors, and is left out when nobody did.
    """
    body = {
        "graph_commit_id": commit.id,
        "graph_branch": commit.branch,
        "graph_manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_at,
    }
    if "embedding" in commit.metadata:
        body["embedding"] = commit.metadata["embedding"]
    return body


def read_body(output: ReadOutput) -> dict[str, Any]:
    """What a query returned; `columns` and `graph_commit_id` are left out when there are none."""
    body: dict[str, Any] = {
        "query_name": output.query_name,
        "target": output.target,
        "row_count": output.row_count,
    }
    if output.columns:
        body["columns"] = list(output.columns)
    body["rows"] = list(output.rows())
    if output.commit_id is not None:
        body["graph_commit_id"] = output.commit_id
    return body


def mutation_body(result: MutationResult) -> dict[str, Any]:
    """What a mutation did; `commit` is null when nothing changed."""
    return {
        "branch": result.branch,
        "query_name": result.query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": result.actor,
        "commit": None if result.commit is None else commit_body(result.commit),
    }


def load_body(result: LoadResult) -> dict[str, Any]:
    """What a load did, declarations by name; what was left out only where something was."""
    body: dict[str, Any] = {
        "branch": result.branch,
        "mode": result.mode,
        "base_branch": result.base_branch,
        "branch_created": result.branch_created,
        "nodes": _counts(result.nodes),
        "edges": _counts(result.edges),
        "total_entities": result.total,
        "actor_id": result.actor,
        "commit": None if result.published is None else commit_body(result.published),
    }
    if result.is_dry_run:
        body["dry_run"] = True
    if result.repeats_run:
        body["repeats_run"] = True
    if result.rejected:
        body["rejected"] = result.rejected
        body["rejects"] = dict(result.rejects)
        body["rejects_file"] = result.rejects_file
    if result.work is not None:
        body["engine"] = result.engine
        body["fragments"] = result.work.fragments
        body["bytes"] = result.work.bytes
        body["seconds"] = {name: round(took, 3) for name, took in result.work.seconds.items()}
        body["log_file"] = result.work.log_file
    return body


def _counts(loaded: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "entities_loaded": count} for name, count in sorted(loaded.items())]


def precondition_body(error: PreconditionFailed) -> dict[str, Any]:
    """The error of a conditional write that lost; its detail says what it is, not a code."""
    return {"error": str(error), "precondition_failure": dict(error.details)}
