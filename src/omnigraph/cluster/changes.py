"""What is different between what is wanted and what is applied, and what becomes of it.

Owns the difference, who is affected by it, and which changes need somebody's approval. Looks at
nothing but both sides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from omnigraph.cluster.desired import Desired, Resource
from omnigraph.cluster.ledger import AppliedResource, Ledger
from omnigraph.cluster.sidecars import Approval
from omnigraph.config.cluster.diagnostics import Diagnostics

Operation = Literal["create", "update", "delete"]
Disposition = Literal["applied", "derived", "deferred", "blocked"]
APPROVAL_REQUIRED = "approval_required"


@dataclass(frozen=True, slots=True)
class Change:
    """One resource that is to be another, and what an apply does about it."""

    resource: str
    operation: Operation
    before_digest: str | None
    after_digest: str | None
    disposition: Disposition
    reason: str | None = None
    binding_change: Mapping[str, list[str]] | None = None
    metadata_change: Literal["policy_bindings", "embedding_profile"] | None = None
    migration: Mapping[str, Any] | None = None
    described: str = ""
    """The migration in words."""

    @property
    def kind(self) -> str:
        """What it is a change of."""
        return self.resource.partition(".")[0]

    @property
    def graph(self) -> str | None:
        """The graph that it is about, if it is about one."""
        kind, _, rest = self.resource.partition(".")
        return rest.partition(".")[0] if kind in ("graph", "schema", "query") else None

    @property
    def is_gated(self) -> bool:
        """Whether it destroys something, so that somebody has to agree first."""
        return self.kind == "graph" and self.operation == "delete"

    def blocked(self, reason: str) -> Change:
        """The same, which cannot be done now."""
        return replace(self, disposition="blocked", reason=reason)


@dataclass(frozen=True, slots=True)
class Needed:
    """An approval that a change needs, and whether there is one that fits."""

    resource: str
    reason: str
    satisfied: bool


def differences(desired: Desired, ledger: Ledger) -> list[Change]:
    """Every resource that is wanted otherwise than it is applied, by address."""
    wanted, applied = desired.resources, ledger.resources
    found = []
    for address in sorted({*wanted, *applied}):
        change = _change(address, wanted.get(address), applied.get(address))
        if change is not None:
            found.append(change)
    return found


def _change(
    address: str,
    wanted: Resource | None,
    applied: AppliedResource | None,
) -> Change | None:
    kind, _, rest = address.partition(".")
    before = None if applied is None else applied.digest
    after = None if wanted is None else wanted.digest
    if wanted is None:
        owner = f"graph.{rest.partition('.')[0]}"
        # What belongs to a graph goes with it; whether it may go is decided there.
        return Change(
            address,
            "delete",
            before,
            None,
            "derived" if kind == "schema" else "applied",
            None if kind != "schema" else f"goes with {owner}",
        )
    if applied is None:
        if kind == "schema":
            return Change(address, "create", None, after, "derived", "made with its graph")
        return Change(address, "create", None, after, "applied")
    bindings = _bindings(wanted, applied)
    if before == after and bindings is None:
        return None
    if kind == "policy":
        metadata: Any = "policy_bindings" if bindings else None
        return Change(
            address, "update", before, after, "applied", None, bindings, metadata_change=metadata
        )
    if kind == "graph":
        provider = wanted.metadata.get("embedding_provider")
        same = provider == applied.embedding_provider
        return Change(
            address,
            "update",
            before,
            after,
            "derived",
            "what it is made up of changes",
            metadata_change=None if same else "embedding_profile",
        )
    profile: Any = "embedding_profile" if kind == "provider" else None
    return Change(address, "update", before, after, "applied", metadata_change=profile)


def _bindings(wanted: Resource, applied: AppliedResource) -> dict[str, list[str]] | None:
    listed: Any = wanted.metadata.get("applies_to", [])
    before, after = sorted(applied.applies_to), sorted(listed)
    return None if before == after else {"before": before, "after": after}


def decided(
    changes: Iterable[Change],
    approved: Collection[str],
    blocked: Mapping[str, str],
) -> list[Change]:
    """The changes with what becomes of them.

    ``approved`` are the addresses that somebody has agreed to lose, ``blocked`` the graphs on
    which nothing can be done, each with the reason.
    """
    found = list(changes)
    going = {one.graph for one in found if one.is_gated}
    kept = {one.graph for one in found if one.is_gated and one.resource not in approved}
    result = []
    for change in found:
        graph = change.graph
        if graph in blocked:
            result.append(change.blocked(blocked[graph or ""]))
        elif graph in kept and graph in going:
            # Nothing of a graph goes before it does.
            result.append(replace(change, disposition="deferred", reason=APPROVAL_REQUIRED))
        elif graph in going and change.operation == "delete" and not change.is_gated:
            result.append(replace(change, disposition="derived", reason=f"goes with graph.{graph}"))
        else:
            result.append(change)
    return result


def needed_approvals(changes: Iterable[Change], approved: Collection[str]) -> list[Needed]:
    """The approvals that changes need."""
    reason = "deleting a graph deletes everything in it"
    return [
        Needed(change.resource, reason, change.resource in approved)
        for change in changes
        if change.is_gated
    ]


def fitting_approvals(
    approvals: Iterable[Approval],
    changes: Iterable[Change],
    ledger: Ledger,
    config_digest: str,
    found: Diagnostics,
) -> dict[str, Approval]:
    """The approvals that still fit, by the address they are for; of the others it is said."""
    gated = {change.resource for change in changes if change.is_gated}
    fitting: dict[str, Approval] = {}
    stale: dict[str, Approval] = {}
    for approval in approvals:
        if approval.resource not in gated:
            continue
        if approval.fits(ledger, config_digest):
            fitting[approval.resource] = approval
        elif approval.consumed_at is None and approval.approval_id not in ledger.approval_records:
            stale[approval.resource] = approval
    for address, approval in stale.items():
        if address not in fitting:
            found.warn(
                "approval_stale",
                address,
                f"the approval {approval.approval_id} was given for another state or another "
                f"configuration: look at the plan, and run `omnigraph cluster approve {address}` "
                "again if it is still right",
            )
    return fitting


def blast_radius(
    changes: Iterable[Change], dependencies: Iterable[tuple[str, str]]
) -> list[tuple[str, list[str]]]:
    """Who is affected by each change: all that needs the resource, and what needs that."""
    needed_by: dict[str, set[str]] = {}
    for dependent, needed in dependencies:
        needed_by.setdefault(needed, set()).add(dependent)
    return [(one.resource, sorted(_reached(one.resource, needed_by))) for one in changes]


def _reached(address: str, needed_by: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [address]
    while waiting:
        for dependent in needed_by.get(waiting.pop(), ()):
            if dependent not in found:
                found.add(dependent)
                waiting.append(dependent)
    return found - {address}
