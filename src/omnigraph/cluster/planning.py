"""Planning: what an apply would do now, and what stands in its way.

Owns the one way from both sides to decided changes, for a plan that is only shown and for an
apply that follows it. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from omnigraph.cluster.changes import (
    Change,
    blast_radius,
    decided,
    differences,
    fitting_approvals,
    needed_approvals,
)
from omnigraph.cluster.desired import Desired, read_desired
from omnigraph.cluster.graph_work import schema_source
from omnigraph.cluster.layout import Root
from omnigraph.cluster.ledger import EMPTY, Ledger, read_ledger
from omnigraph.cluster.live_graphs import plan_for
from omnigraph.cluster.lock import locked, read_lock
from omnigraph.cluster.reports import Planned, ShownResource, StateObservations, Validated
from omnigraph.cluster.sidecars import Approval, read_approvals, read_sidecars
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.config.cluster.parse import FILE
from omnigraph.errors import OmniGraphError


def validate(config_dir: Path) -> Validated:
    """Whether a configuration is sound; no storage is looked at."""
    found = Diagnostics()
    desired = read_desired(config_dir, found)
    if desired is None:
        return Validated(
            config_dir=str(config_dir),
            diagnostics=found.found,
            config_file=str(config_dir / FILE),
        )
    return Validated(
        config_dir=str(config_dir),
        diagnostics=found.found,
        config_file=str(config_dir / FILE),
        resource_digests=desired.digests,
        resources=[
            ShownResource(address=one.address, kind=one.kind, digest=one.digest, path=one.path)
            for _, one in sorted(desired.resources.items())
        ],
        dependencies=list(desired.dependencies),
    )


@dataclass(frozen=True, slots=True)
class Course:
    """What is to be done, and which approvals it rests on."""

    changes: list[Change]
    approvals: Mapping[str, Approval]


def chart(
    root: Root,
    desired: Desired,
    ledger: Ledger,
    blocked: Mapping[str, str],
    approvals: list[Approval],
    *,
    found: Diagnostics,
) -> Course:
    """The changes with what becomes of them, those of schemas with their migrations."""
    changes = differences(desired, ledger)
    fitting = fitting_approvals(approvals, changes, ledger, desired.digest, found)
    changes = decided(changes, fitting, blocked)
    unsupported: dict[str, str] = {}
    planned = []
    for change in changes:
        shown = _with_migration(root, desired, change, found)
        if shown.disposition == "blocked" and change.disposition != "blocked":
            unsupported[shown.graph or ""] = f"the schema of graph.{shown.graph} cannot be changed"
        planned.append(shown)
    return Course(_dependents_blocked(planned, unsupported, found), fitting)


def _with_migration(root: Root, desired: Desired, change: Change, found: Diagnostics) -> Change:
    """A change of a schema with the steps that it takes, held against what is there."""
    is_migration = change.kind == "schema" and change.operation == "update"
    if not is_migration or change.disposition == "blocked":
        return change
    schema = desired.resources[change.resource]
    try:
        plan = plan_for(root, change.graph or "", schema_source(schema))
    except OmniGraphError as error:
        found.warn("schema_preview_unavailable", change.resource, error.message)
        return change
    shown = replace(change, migration=plan.to_json(), described=plan.describe())
    if plan.supported:
        return shown
    reasons = "; ".join(refusal.reason for refusal in plan.refusals) or "it is not supported"
    found.warn(
        "apply_unsupported_change",
        change.resource,
        f"the graph cannot be given this schema: {reasons}",
    )
    return shown.blocked("unsupported_schema_change")


def _dependents_blocked(
    changes: list[Change], unsupported: Mapping[str, str], found: Diagnostics
) -> list[Change]:
    """What belongs to a graph whose schema cannot be changed stays as it is."""
    result = []
    for change in changes:
        reason = unsupported.get(change.graph or "")
        if reason is not None and change.disposition != "blocked":
            found.warn("apply_dependency_blocked", change.resource, reason)
            result.append(change.blocked("dependency_blocked"))
        else:
            result.append(change)
    return result


def plan(config_dir: Path) -> Planned:
    """What an apply would do now; writes nothing but the lock, which it gives back."""
    found = Diagnostics()
    desired = read_desired(config_dir, found)
    if desired is None or found.has_errors:
        return Planned(
            config_dir=str(config_dir),
            diagnostics=found.found,
            state=StateObservations("" if desired is None else str(desired.storage)),
        )
    root = Root(desired.storage)
    course = Course([], {})
    with locked(root, "plan", found, locks=desired.document.locks) as is_free:
        # Why it is not free was said when it was asked for; who has it is shown.
        lock = None if is_free else read_lock(root, Diagnostics(), is_needed=False)
        held = read_ledger(root, found) if is_free else None
        if is_free and not found.has_errors:
            if held is None:
                found.warn(
                    "state_missing",
                    "__cluster/state.json",
                    "nothing was applied here yet: `omnigraph cluster import` makes the ledger, "
                    "which an apply needs",
                )
            for sidecar in read_sidecars(root, found):
                found.warn(
                    "cluster_recovery_pending",
                    f"graph.{sidecar.graph_id}",
                    f"the operation {sidecar.operation_id} ({sidecar.kind}) died: the next apply "
                    "finds out what became of it, and goes on from there",
                )
            ledger = EMPTY if held is None else held.ledger
            approvals = read_approvals(root, found)
            if not found.has_errors:
                course = chart(root, desired, ledger, {}, approvals, found=found)
    return Planned(
        config_dir=str(config_dir),
        diagnostics=found.found,
        config_digest=desired.digest,
        resource_digests=desired.digests,
        dependencies=list(desired.dependencies),
        state=StateObservations.of(str(root.location), held, lock),
        changes=course.changes,
        blast_radius=blast_radius(course.changes, desired.dependencies),
        approvals=needed_approvals(course.changes, course.approvals),
    )
