"""Bodies of answers as the results that an opened graph gives.

Owns that direction alone; the other one is `wire`. What a body does not say, a result does not
have.
"""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.client.failures import conflict_of
from omnigraph.errors import ServerError
from omnigraph.evolve.apply import SchemaResult
from omnigraph.history.changes import Cause, Change, ChangeBlock, Endpoints, Image, TypeRef
from omnigraph.history.feed import CommitChanges, FeedPage
from omnigraph.history.merge.conflicts import MergeResult
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.steps import steps_from_json
from omnigraph.maintain.health import GraphStatus
from omnigraph.maintain.reports import IndexStatus
from omnigraph.maintain.steps import MaintenanceReport
from omnigraph.manifest.entries import MESSAGE, Commit
from omnigraph.read.output.result import Result
from omnigraph.wire.changes import BlockBody, CauseBody, ChangeBody, FeedBody, ImageBody
from omnigraph.wire.graphs import CommitBody, MergeBody
from omnigraph.wire.health import MaintenanceBody
from omnigraph.wire.results import EmbedBody, LoadBody, MutationBody, QueryBody
from omnigraph.wire.schemas import SchemaAppliedBody
from omnigraph.wire.serving import ServedStatusBody
from omnigraph.write.backfill import EmbedResult
from omnigraph.write.change.results import (
    EmptiedProperties,
    LoadResult,
    MutationResult,
    TypeChanges,
)

_NOTED = "omnigraph."


def arrow_result(data: bytes) -> Result:
    """The rows of a query from an Arrow stream, whose schema says where they are from."""
    import pyarrow as pa

    try:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    except pa.ArrowInvalid as error:
        raise ServerError(
            f"the server sent rows that cannot be read ({error}): ask again", kind="bad_answer"
        ) from None
    every = {name.decode(): text for name, text in (table.schema.metadata or {}).items()}
    noted = {
        name.removeprefix(_NOTED): text.decode()
        for name, text in every.items()
        if name.startswith(_NOTED)
    }
    rest = {name: text for name, text in every.items() if not name.startswith(_NOTED)}
    return Result(
        table.replace_schema_metadata(rest or None),
        noted.get("query_name", ""),
        noted.get("graph_commit_id", ""),
        noted.get("branch"),
        noted.get("snapshot"),
    )


def json_result(body: QueryBody) -> Result:
    """The same from JSON, in the types that Arrow finds in it."""
    import pyarrow as pa

    columns = {name: [row.get(name) for row in body.rows] for name in body.columns}
    target = body.target
    return Result(
        pa.table(columns),
        body.query_name,
        body.graph_commit_id or "",
        target.branch,
        target.snapshot,
    )


def commit(body: CommitBody) -> Commit:
    """A commit."""
    noted = {"embedding": body.embedding, MESSAGE: body.message}
    metadata = {name: value for name, value in noted.items() if value is not None}
    return Commit(
        body.graph_commit_id,
        body.graph_branch,
        body.graph_manifest_version,
        body.parent_commit_id,
        body.merged_parent_commit_id,
        body.actor_id,
        body.created_at,
        metadata,
    )


def any_commit(body: CommitBody | None) -> Commit | None:
    """The commit of a write, if it made one."""
    return None if body is None else commit(body)


def mutation(body: MutationBody) -> MutationResult:
    """What a mutation did."""
    warnings = tuple(
        EmptiedProperties(one.type_name, one.rows, tuple(one.properties)) for one in body.warnings
    )
    return MutationResult(
        body.branch,
        body.query_name,
        body.affected_nodes,
        body.affected_edges,
        body.actor_id,
        any_commit(body.commit),
        warnings,
        body.repeats_run,
        None if isinstance(body.rows, msgspec.UnsetType) else body.rows,
    )


def load(body: LoadBody) -> LoadResult:
    """What a load did."""
    return LoadResult(
        body.branch,
        body.mode,
        {one.name: one.entities_loaded for one in body.nodes},
        {one.name: one.entities_loaded for one in body.edges},
        any_commit(body.commit),
        body.actor_id,
        body.base_branch,
        body.branch_created,
        dict(body.rejects or {}),
        engine=body.engine or "inline",
        is_dry_run=body.dry_run,
        changes={
            one.type: TypeChanges(one.inserted, one.replaced, one.patched, one.emptied)
            for one in body.changes or ()
        },
        repeats_run=body.repeats_run,
    )


def merge(body: MergeBody) -> MergeResult:
    """What became of a merge."""
    steps = () if body.schema is None else steps_from_json(body.schema["steps"])
    return MergeResult(
        body.source,
        body.target,
        body.outcome,
        any_commit(body.commit),
        body.actor_id,
        branch_deleted=body.branch_deleted,
        branch_delete_error=body.branch_delete_error,
        resolved=tuple((conflict_of(one), one.side or "target") for one in body.resolved),
        schema=MigrationPlan(steps),
        repeats_run=body.repeats_run,
    )


def schema_change(body: SchemaAppliedBody) -> SchemaResult:
    """What became of a change of the schema."""
    plan = MigrationPlan(steps_from_json(body.steps))
    return SchemaResult(body.branch, plan, any_commit(body.commit), body.repeats_run)


def embedding(body: EmbedBody) -> EmbedResult:
    """What a backfill did."""
    return EmbedResult(
        body.branch,
        body.type,
        body.vectors,
        body.entities,
        body.actor_id,
        any_commit(body.commit),
    )


def status(body: ServedStatusBody) -> GraphStatus:
    """The health of a graph."""
    return GraphStatus(
        body.uri,
        body.format,
        body.branch,
        commit(body.head),
        body.schema_hash,
        body.types,
        body.branches,
        body.stale_branches,
        body.unreadable_branches,
        body.commits_kept,
        commit(body.oldest_commit),
        body.live_bytes,
        body.stored_bytes,
        body.reclaimable_bytes,
        body.reclaimable_is_estimate,
        body.writes_at_work,
        body.writes_dead,
        body.findings,
    )


def indexes(body: ServedStatusBody) -> IndexStatus:
    """The indexes of a branch."""
    return IndexStatus(body.branch, body.head.graph_commit_id, body.indexes)


def maintenance(body: MaintenanceBody) -> MaintenanceReport:
    """What one round of maintenance did."""
    return MaintenanceReport(body.steps, body.seconds, body.dry_run)


# -- changes -----------------------------------------------------------------------------


def commit_page(body: BlockBody) -> CommitChanges:
    """A page of what a commit changed."""
    return CommitChanges(_cause(body.cause), _changes(body.changes), body.next_page_token)


def feed_page(body: FeedBody) -> FeedPage:
    """A page of the change feed."""
    blocks = tuple(ChangeBlock(_cause(one.cause), _changes(one.changes)) for one in body.blocks)
    return FeedPage(blocks, body.next_page_token, body.cursor, bool(body.caught_up))


def _cause(body: CauseBody) -> Cause:
    return msgspec.convert(body, Cause, from_attributes=True)


def _changes(bodies: list[ChangeBody]) -> tuple[Change, ...]:
    return tuple(
        Change(
            one.kind,
            TypeRef(one.type.id, one.type.name),
            one.id,
            one.op,
            before := _image(one.before),
            after := _image(one.after),
            _changed(before, after),
        )
        for one in bodies
    )


def _image(body: ImageBody | None) -> Image | None:
    if body is None:
        return None
    ends = body.endpoints
    return Image(
        body.properties,
        None if ends is None else Endpoints(ends.from_, ends.to, ends.from_type, ends.to_type),
    )


def _changed(before: Image | None, after: Image | None) -> tuple[str, ...]:
    """The properties in which the two sides of an update differ."""
    if before is None or after is None:
        return ()
    sides: list[Any] = [before.properties, after.properties]
    names = dict.fromkeys([*sides[1], *sides[0]])
    return tuple(name for name in names if sides[0].get(name) != sides[1].get(name))
