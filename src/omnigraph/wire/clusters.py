"""What the commands of a cluster answer: configurations, plans, what was applied, what is there.

Owns the names of these bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import convert, field

from omnigraph.wire.body import Body

if TYPE_CHECKING:
    from omnigraph.cluster.reports import (
        Applied,
        Approved,
        Observed,
        Planned,
        Report,
        Unlocked,
        Validated,
    )


class ClusterDiagnosticBody(Body, frozen=True):
    """One thing that is wrong with a cluster, or worth knowing."""

    code: str
    severity: str
    path: str
    message: str


class ClusterResourceBody(Body, frozen=True):
    """A declared resource."""

    address: str
    kind: str
    digest: str
    path: str | None = None


class DependencyBody(Body, frozen=True):
    """One resource that needs another."""

    from_: str = field(name="from")
    to: str


class ValidatedBody(Body, frozen=True):
    """Whether a configuration is sound."""

    ok: bool
    config_dir: str
    config_file: str
    resource_digests: dict[str, str]
    resources: list[ClusterResourceBody]
    dependencies: list[DependencyBody]
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Validated) -> ValidatedBody:
        """What validating has found."""
        return cls(
            found.ok,
            found.config_dir,
            found.config_file,
            dict(found.resource_digests),
            convert(found.resources, list[ClusterResourceBody], from_attributes=True),
            _dependencies(found.dependencies),
            _diagnostics(found),
        )


class DesiredRevisionBody(Body, frozen=True):
    """The configuration that is wanted."""

    config_digest: str | None = None


class LockBody(Body, frozen=True):
    """Who holds the lock."""

    lock_id: str
    operation: str
    created_at: str
    pid: int


class StateObservationsBody(Body, frozen=True):
    """What was seen of the state."""

    root: str
    found: bool
    state_revision: int | None
    state_cas: str | None
    resource_count: int
    lock: LockBody | None


class ClusterChangeBody(Body, frozen=True):
    """One resource that is to be another, and what becomes of it."""

    resource: str
    operation: str
    before_digest: str | None = None
    after_digest: str | None = None
    disposition: str = ""
    reason: str | None = None
    binding_change: dict[str, list[str]] | None = None
    metadata_change: str | None = None
    migration: dict[str, Any] | None = None


class BlastRadiusBody(Body, frozen=True):
    """Who is affected by a change."""

    resource: str
    affected: list[str]


class NeededApprovalBody(Body, frozen=True):
    """An approval that a change needs."""

    resource: str
    reason: str
    satisfied: bool


class ClusterPlanBody(Body, frozen=True):
    """What an apply would do."""

    ok: bool
    config_dir: str
    desired_revision: DesiredRevisionBody
    resource_digests: dict[str, str]
    dependencies: list[DependencyBody]
    state_observations: StateObservationsBody
    changes: list[ClusterChangeBody]
    blast_radius: list[BlastRadiusBody]
    approvals_required: list[NeededApprovalBody]
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Planned) -> ClusterPlanBody:
        """A plan."""
        return cls(
            found.ok,
            found.config_dir,
            DesiredRevisionBody(found.config_digest),
            dict(found.resource_digests),
            _dependencies(found.dependencies),
            convert(found.state, StateObservationsBody, from_attributes=True),
            convert(found.changes, list[ClusterChangeBody], from_attributes=True),
            [BlastRadiusBody(resource, affected) for resource, affected in found.blast_radius],
            convert(found.approvals, list[NeededApprovalBody], from_attributes=True),
            _diagnostics(found),
        )


class ResourceStatusBody(Body, frozen=True):
    """How a resource stands."""

    status: str
    conditions: tuple[str, ...] = ()
    message: str | None = None


class ClusterAppliedBody(Body, frozen=True):
    """What an apply has done."""

    ok: bool
    config_dir: str
    actor: str | None
    desired_revision: DesiredRevisionBody
    state_observations: StateObservationsBody
    changes: list[ClusterChangeBody]
    applied_count: int
    deferred_count: int
    converged: bool
    state_written: bool
    resource_statuses: dict[str, ResourceStatusBody]
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Applied) -> ClusterAppliedBody:
        """What was applied."""
        return cls(
            found.ok,
            found.config_dir,
            found.actor,
            DesiredRevisionBody(found.config_digest),
            convert(found.state, StateObservationsBody, from_attributes=True),
            convert(found.changes, list[ClusterChangeBody], from_attributes=True),
            found.applied_count,
            found.deferred_count,
            found.converged,
            found.state_written,
            convert(dict(found.statuses), dict[str, ResourceStatusBody], from_attributes=True),
            _diagnostics(found),
        )


class ApprovedBody(Body, frozen=True):
    """What somebody has agreed to; without an id to nothing."""

    ok: bool
    config_dir: str
    resource: str
    approval_id: str | None
    approved_by: str
    bound_config_digest: str | None
    bound_before_digest: str | None
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Approved) -> ApprovedBody:
        """An approval."""
        return cls(
            found.ok,
            found.config_dir,
            found.resource,
            found.approval_id,
            found.approved_by,
            found.bound_config_digest,
            found.bound_before_digest,
            _diagnostics(found),
        )


class ObservationBody(Body, frozen=True):
    """What a graph was when somebody last looked at it."""

    manifest_version: int
    schema_digest: str


class ClusterStatusBody(Body, frozen=True):
    """What a cluster is."""

    ok: bool
    config_dir: str
    operation: str
    state_observations: StateObservationsBody
    resource_digests: dict[str, str]
    resource_statuses: dict[str, ResourceStatusBody]
    observations: dict[str, ObservationBody]
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Observed) -> ClusterStatusBody:
        """What was seen."""
        return cls(
            found.ok,
            found.config_dir,
            found.operation,
            convert(found.state, StateObservationsBody, from_attributes=True),
            dict(found.resource_digests),
            convert(dict(found.statuses), dict[str, ResourceStatusBody], from_attributes=True),
            convert(dict(found.observations), dict[str, ObservationBody], from_attributes=True),
            _diagnostics(found),
        )


class UnlockedBody(Body, frozen=True):
    """Whose lock was taken away."""

    ok: bool
    config_dir: str
    lock_id: str
    operation: str | None
    diagnostics: list[ClusterDiagnosticBody]

    @classmethod
    def of(cls, found: Unlocked) -> UnlockedBody:
        """What became of the lock."""
        return cls(found.ok, found.config_dir, found.lock_id, found.operation, _diagnostics(found))


def _dependencies(found: list[tuple[str, str]]) -> list[DependencyBody]:
    return [DependencyBody(dependent, needed) for dependent, needed in found]


def _diagnostics(found: Report) -> list[ClusterDiagnosticBody]:
    return convert(found.diagnostics, list[ClusterDiagnosticBody], from_attributes=True)
