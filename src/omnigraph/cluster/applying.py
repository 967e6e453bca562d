"""Applying: from what is applied to what is wanted, as far as it goes, in one order.

Owns the order: the sweep, graphs that come, schemas, the catalog, graphs that go, and one
compare-and-swap of the ledger at the end. Whatever is done to a graph is announced before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import msgspec

from omnigraph.cluster.approving import require_still_approved
from omnigraph.cluster.catalog import is_blob, write_blob
from omnigraph.cluster.changes import APPROVAL_REQUIRED, Change
from omnigraph.cluster.desired import Desired, read_desired
from omnigraph.cluster.draft import Draft
from omnigraph.cluster.failpoints import reach
from omnigraph.cluster.graph_work import change_schema, create, delete
from omnigraph.cluster.layout import STATE, Root
from omnigraph.cluster.ledger import HeldLedger, read_ledger, write_ledger
from omnigraph.cluster.live_graphs import LiveGraph, look_at
from omnigraph.cluster.lock import locked, now
from omnigraph.cluster.planning import Course, chart
from omnigraph.cluster.reports import Applied, StateObservations
from omnigraph.cluster.sidecars import (
    VERSION,
    Sidecar,
    SidecarKind,
    read_approvals,
    read_sidecars,
    remove_sidecar,
    write_approval,
    write_sidecar,
)
from omnigraph.cluster.sweep import Swept, sweep
from omnigraph.config.cluster.diagnostics import Diagnostics, ErrorCode, WarningCode
from omnigraph.errors import OmniGraphError
from omnigraph.storage.objects.clock import new_id

_FAILED: dict[SidecarKind, ErrorCode] = {
    "graph_create": "graph_create_failed",
    "schema_apply": "schema_apply_failed",
    "graph_delete": "graph_delete_failed",
}
_SKIPPED: dict[SidecarKind, WarningCode] = {
    "graph_create": "graph_create_skipped",
    "schema_apply": "schema_apply_skipped",
    "graph_delete": "graph_delete_skipped",
}


def apply(config_dir: Path, actor: str | None = None) -> Applied:
    """Bring a cluster to what its configuration says."""
    found = Diagnostics()
    desired = read_desired(config_dir, found)
    if desired is None or found.has_errors:
        return Applied(
            config_dir=str(config_dir),
            diagnostics=found.found,
            actor=actor,
            state=StateObservations("" if desired is None else str(desired.storage)),
        )
    root = Root(desired.storage)
    run = _Apply(root, desired, actor, found)
    with locked(root, "apply", found, locks=desired.document.locks) as is_free:
        if is_free:
            run.run()
    return run.report(config_dir)


@dataclass(slots=True)
class _Apply:
    """One apply, and how far it is."""

    root: Root
    desired: Desired
    actor: str | None
    found: Diagnostics
    operation_id: str = field(default_factory=new_id)
    held: HeldLedger | None = None
    draft: Draft | None = None
    course: Course = field(default_factory=lambda: Course([], {}))
    settled: list[Sidecar] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    """The graphs that were deleted."""
    blocked: dict[str, str] = field(default_factory=dict)
    """The graphs on which nothing could be done from the beginning."""
    failed: str | None = None
    """The graph on which work has failed: no other is touched after it."""
    is_written: bool = False
    is_settled: bool = False

    def run(self) -> None:
        """All of it, in order."""
        root, desired, found = self.root, self.desired, self.found
        self.held = read_ledger(root, found)
        if self.held is None:
            if not found.has_errors:
                found.error(
                    "state_missing",
                    STATE,
                    "there is no ledger: `omnigraph cluster import` makes it, once, and takes up "
                    "the graphs that are there already",
                )
            return
        sidecars, approvals = read_sidecars(root, found), read_approvals(root, found)
        if found.has_errors:
            return
        self.draft = draft = Draft.of(self.held.ledger)
        swept = sweep(root, draft, sidecars, desired.document.graphs, found)
        self.settled += swept.settled
        self.blocked = swept.blocked
        reach("cluster_swept")
        self.course = chart(root, desired, draft.ledger, swept.blocked, approvals, found=found)
        if self._is_unapproved():
            return
        self._work_on_graphs("create", lambda change: self._create(change, swept))
        self._work_on_schemas()
        self._write_catalog()
        self._work_on_graphs("delete", self._delete)
        self._compose()
        self._judge()
        self._write()

    def _is_unapproved(self) -> bool:
        """Whether anything would be destroyed that nobody has agreed to; it never is."""
        for change in self.course.changes:
            is_done = change.disposition == "applied" and change.is_gated
            if is_done and change.resource not in self.course.approvals:
                self.found.error(
                    "apply_approval_invariant_violation",
                    change.resource,
                    "it would be deleted without an approval: nothing was done, please report this",
                )
                return True
        return False

    # -- graphs --------------------------------------------------------------------------

    def _work_on_graphs(
        self, operation: Literal["create", "delete"], work: Callable[[Change], None]
    ) -> None:
        for change in self.course.changes:
            is_due = change.disposition == "applied" and change.operation == operation
            if is_due and change.kind == "graph":
                work(change)

    def _work_on_schemas(self) -> None:
        for change in self.course.changes:
            is_due = change.disposition == "applied" and change.operation == "update"
            if is_due and change.kind == "schema":
                self._change_schema(change)

    def _create(self, change: Change, swept: Swept) -> None:
        id_ = change.graph or ""
        schema = self.desired.resources[f"schema.{id_}"]
        force = id_ in swept.unfinished

        def work(_: str) -> None:
            create(self.root, id_, schema, self.actor, force=force)

        if self._announced(change, "graph_create", schema.digest, work):
            self._has(id_, schema.digest)

    def _change_schema(self, change: Change) -> None:
        id_ = change.graph or ""
        schema = self.desired.resources[change.resource]

        def work(operation_id: str) -> None:
            change_schema(self.root, id_, schema, self.actor, operation_id)

        if self._announced(change, "schema_apply", schema.digest, work):
            self._has(id_, schema.digest)

    def _delete(self, change: Change) -> None:
        id_ = change.graph or ""

        def work(_: str) -> None:
            approval = self.course.approvals[change.resource]
            require_still_approved(self.root, approval, self.held, self.desired.digest, self.found)
            delete(self.root, id_)

        if self._announced(change, "graph_delete", None, work) and self.draft is not None:
            self.draft.drop_graph(id_)
            self.used.append(change.resource)
            approval = self.course.approvals[change.resource]
            self.draft.approvals[approval.approval_id] = self.operation_id

    def _announced(
        self,
        change: Change,
        kind: SidecarKind,
        digest: str | None,
        work: Callable[[str], None],
    ) -> bool:
        """Do what was announced; False, and it is said, if it did not come to that or failed."""
        id_, address = change.graph or "", f"graph.{change.graph}"
        if self.failed is not None:
            self.found.warn(
                _SKIPPED[kind], address, f"left alone, since work on graph.{self.failed} has failed"
            )
            self._block(id_, "an earlier graph operation failed")
            return False
        approval = self.course.approvals.get(change.resource)
        seen = None if self.draft is None else self.draft.observations.get(address)
        sidecar = Sidecar(
            schema_version=VERSION,
            operation_id=new_id(),
            started_at=now(),
            actor=self.actor,
            kind=kind,
            graph_id=id_,
            graph_uri=str(self.root.graph(id_)),
            observed_manifest_version=None if seen is None else seen.manifest_version,
            desired_schema_digest=digest,
            state_cas_base=None if self.held is None else self.held.cas,
            approval_id=None if approval is None else approval.approval_id,
        )
        if not write_sidecar(self.root, sidecar, self.found):
            self._fail(id_, "it could not be announced")
            return False
        reach("cluster_announced", id_)
        try:
            work(sidecar.operation_id)
        except OmniGraphError as error:
            self.found.error(_FAILED[kind], address, _said(error))
            self._fail(id_, error.message)
            return False
        self.settled.append(sidecar)
        return True

    def _has(self, id_: str, schema: str) -> None:
        live = look_at(self.root, id_)
        if isinstance(live, LiveGraph) and self.draft is not None:
            self.draft.has_graph(id_, schema, live.observation)

    def _fail(self, id_: str, reason: str) -> None:
        self.failed = id_
        self._block(id_, reason)
        if self.draft is not None:
            self.draft.say(f"graph.{id_}", "error", reason)

    def _block(self, id_: str, reason: str) -> None:
        """What belongs to a graph cannot be done either, nor what is bound to it."""
        dependents = {
            dependent
            for dependent, needed in self.desired.dependencies
            if needed in (f"graph.{id_}", f"schema.{id_}")
        }
        changes = []
        for change in self.course.changes:
            is_of_it = change.graph == id_ or change.resource in dependents
            if not is_of_it or change.disposition in ("blocked", "deferred"):
                changes.append(change)
                continue
            if change.kind not in ("graph", "schema"):
                self.found.warn(
                    "apply_dependency_blocked",
                    change.resource,
                    f"left alone, since graph.{id_} is not as it is wanted: {reason}",
                )
            changes.append(change.blocked(reason))
        self.course = replace(self.course, changes=changes)

    # -- the catalog and the ledger ------------------------------------------------------

    def _write_catalog(self) -> None:
        """Queries, policies and providers; blobs that are gone are written again."""
        draft = self.draft
        if draft is None:
            return
        changes = {change.resource: change for change in self.course.changes}
        for address, resource in self.desired.resources.items():
            change = changes.get(address)
            if change is not None and change.disposition in ("blocked", "deferred"):
                continue
            if is_blob(address):
                if not write_blob(self.root, resource, self.found):
                    if change is not None:
                        changes[address] = change.blocked("its blob could not be written")
                    continue
                if change is not None:
                    draft.apply(resource)
            elif address.startswith("provider.") and change is not None:
                draft.apply(resource)
        for address, change in changes.items():
            is_gone = change.operation == "delete" and change.disposition == "applied"
            if is_gone and not change.is_gated and change.kind != "provider":
                draft.resources.pop(address, None)
        self.course = replace(self.course, changes=list(changes.values()))

    def _compose(self) -> None:
        """Graphs get what is wanted of them beside their schema, and their digests."""
        draft = self.draft
        if draft is None:
            return
        blocked = {one.graph for one in self.course.changes if one.disposition == "blocked"}
        for id_ in self.desired.document.graphs:
            address = f"graph.{id_}"
            if address in draft.resources and id_ not in blocked:
                draft.apply(self.desired.resources[address])
        for id_ in draft.graphs:
            draft.compose(id_)
        used = {one.embedding_provider for one in draft.resources.values()}
        changes = []
        for change in self.course.changes:
            if change.kind == "provider" and change.operation == "delete":
                if change.resource in used:
                    changes.append(replace(change, disposition="deferred", reason="still used"))
                    continue
                draft.resources.pop(change.resource, None)
            changes.append(change)
        self.course = replace(self.course, changes=changes)

    def _judge(self) -> None:
        """How every resource stands."""
        draft = self.draft
        if draft is None:
            return
        for address in {*draft.statuses} - {*draft.resources, *self.desired.resources}:
            del draft.statuses[address]
        changes = {change.resource: change for change in self.course.changes}
        for address in sorted({*draft.resources, *self.desired.resources}):
            change = changes.get(address)
            known = draft.statuses.get(address)
            if change is None or change.disposition in ("applied", "derived"):
                if address in draft.resources:
                    draft.say(address, "applied")
            elif change.disposition == "deferred":
                is_gated = change.reason == APPROVAL_REQUIRED
                why = "it goes when somebody approves that" if is_gated else change.reason
                draft.say(address, "pending", why, *((APPROVAL_REQUIRED,) if is_gated else ()))
            elif known is None or known.status != "error":
                draft.say(address, "blocked", change.reason)
        for id_, reason in self.blocked.items():
            draft.say(f"graph.{id_}", "blocked", reason)
        if self.is_converged:
            draft.config_digest = self.desired.digest

    @property
    def is_converged(self) -> bool:
        """Whether everything is as it is wanted."""
        is_done = all(one.disposition in ("applied", "derived") for one in self.course.changes)
        is_stuck = self.found.has_errors or self.blocked
        return self.draft is not None and is_done and not is_stuck

    def _write(self) -> None:
        """One compare-and-swap; then what the ledger knows is settled."""
        draft, held = self.draft, self.held
        if draft is None or held is None:
            return
        ledger = draft.ledger
        if ledger is not held.ledger:
            reach("cluster_state_ready")
            if not write_ledger(self.root, held, ledger, self.found):
                return
            self.is_written = True
            reach("cluster_state_written")
        for address in self.used:
            approval = self.course.approvals[address]
            consumed = msgspec.structs.replace(
                approval, consumed_at=now(), consumed_by_operation=self.operation_id
            )
            write_approval(self.root, consumed, self.found)
            reach("cluster_approval_consumed", address)
        for sidecar in self.settled:
            remove_sidecar(self.root, sidecar, self.found)
            reach("cluster_recovery_settled", sidecar.graph_id)

    def report(self, config_dir: Path) -> Applied:
        """What was done."""
        held = read_ledger(self.root, Diagnostics()) if self.is_written else self.held
        return Applied(
            config_dir=str(config_dir),
            diagnostics=self.found.found,
            actor=self.actor,
            config_digest=self.desired.digest,
            state=StateObservations.of(str(self.root.location), held, None),
            changes=self.course.changes,
            converged=self.is_converged,
            state_written=self.is_written,
            statuses={} if self.draft is None else dict(sorted(self.draft.statuses.items())),
        )


def _said(error: OmniGraphError) -> str:
    report = getattr(error, "report", None)
    return report if isinstance(report, str) else error.message
