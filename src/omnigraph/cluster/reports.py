"""What the commands of a cluster answer.

Owns the shapes; how they look as JSON is another matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.cluster.changes import Change, Needed
from omnigraph.cluster.ledger import HeldLedger, Observation, ResourceStatus
from omnigraph.cluster.lock import ClusterLock
from omnigraph.config.cluster.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class StateObservations:
    """What a command has seen of the state."""

    root: str
    found: bool = False
    state_revision: int | None = None
    state_cas: str | None = None
    resource_count: int = 0
    lock: ClusterLock | None = None

    @classmethod
    def of(cls, root: str, held: HeldLedger | None, lock: ClusterLock | None) -> StateObservations:
        """What there is to say of a ledger."""
        if held is None:
            return cls(root, lock=lock)
        ledger = held.ledger
        return cls(
            root,
            found=True,
            state_revision=ledger.state_revision,
            state_cas=held.cas,
            resource_count=len(ledger.resources),
            lock=lock,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What every command answers."""

    config_dir: str
    diagnostics: list[Diagnostic]

    @property
    def ok(self) -> bool:
        """Whether nothing stands in the way."""
        return all(one.severity != "error" for one in self.diagnostics)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResource:
    """A declared resource."""

    address: str
    kind: str
    digest: str
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Report):
    """Whether a configuration is sound."""

    config_file: str
    resource_digests: Mapping[str, str] = field(default_factory=dict)
    resources: list[ShownResource] = field(default_factory=list)
    dependencies: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Report):
    """What an apply would do."""

    config_digest: str | None = None
    resource_digests: Mapping[str, str] = field(default_factory=dict)
    dependencies: list[tuple[str, str]] = field(default_factory=list)
    state: StateObservations
    changes: list[Change] = field(default_factory=list)
    blast_radius: list[tuple[str, list[str]]] = field(default_factory=list)
    approvals: list[Needed] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied(Report):
    """What an apply has done."""

    actor: str | None = None
    config_digest: str | None = None
    state: StateObservations
    changes: list[Change] = field(default_factory=list)
    converged: bool = False
    state_written: bool = False
    statuses: Mapping[str, ResourceStatus] = field(default_factory=dict)

    @property
    def applied_count(self) -> int:
        """How many changes were made."""
        return sum(one.disposition in ("applied", "derived") for one in self.changes)

    @property
    def deferred_count(self) -> int:
        """How many were not."""
        return len(self.changes) - self.applied_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(Report):
    """What somebody has agreed to."""

    resource: str
    approval_id: str | None = None
    approved_by: str
    bound_config_digest: str | None = None
    bound_before_digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Report):
    """What a cluster is: its ledger, and what was seen of it."""

    operation: str
    state: StateObservations
    resource_digests: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[str, ResourceStatus] = field(default_factory=dict)
    observations: Mapping[str, Observation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlocked(Report):
    """Whose lock was taken away."""

    lock_id: str
    operation: str | None = None
