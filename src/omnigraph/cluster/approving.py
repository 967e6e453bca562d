"""Approving: somebody agrees to lose one graph, as it is and as the configuration is now.

Owns what an approval is bound to. Deletes nothing.
"""

from __future__ import annotations

from pathlib import Path

from omnigraph.cluster.changes import differences
from omnigraph.cluster.desired import read_desired
from omnigraph.cluster.layout import STATE, Root
from omnigraph.cluster.ledger import HeldLedger, read_ledger
from omnigraph.cluster.lock import locked, now
from omnigraph.cluster.reports import Approved
from omnigraph.cluster.sidecars import VERSION, Approval, read_approvals, write_approval
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.errors import Conflict
from omnigraph.lang.diagnostics import name_hint
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.swapped_object import SwappedObject


def approve(config_dir: Path, resource: str, actor: str) -> Approved:
    """Agree to one change that needs it."""
    found = Diagnostics()
    approval = _approval(config_dir, resource, actor, found)
    return Approved(
        config_dir=str(config_dir),
        diagnostics=found.found,
        resource=resource,
        approval_id=None if approval is None else approval.approval_id,
        approved_by=actor,
        bound_config_digest=None if approval is None else approval.bound_config_digest,
        bound_before_digest=None if approval is None else approval.bound_before_digest,
    )


def _approval(config_dir: Path, resource: str, actor: str, found: Diagnostics) -> Approval | None:
    desired = read_desired(config_dir, found)
    if desired is None or found.has_errors:
        return None
    root = Root(desired.storage)
    with locked(root, "approve", found, locks=desired.document.locks) as is_free:
        held = read_ledger(root, found) if is_free else None
        if held is None:
            if not found.has_errors:
                found.error("state_missing", STATE, "nothing was applied here: nothing to approve")
            return None
        gated = {one.resource: one for one in differences(desired, held.ledger) if one.is_gated}
        change = gated.get(resource)
        if change is None:
            hint = name_hint(resource, gated) if gated else "nothing does now"
            found.error(
                "approval_not_required", resource, f"no change of it needs an approval; {hint}"
            )
            return None
        approval = Approval(
            schema_version=VERSION,
            approval_id=new_id(),
            resource=resource,
            operation=change.operation,
            reason="deleting a graph deletes everything in it",
            bound_config_digest=desired.digest,
            bound_before_digest=change.before_digest,
            bound_after_digest=change.after_digest,
            approved_by=actor,
            created_at=now(),
        )
        return approval if write_approval(root, approval, found) else None


def require_still_approved(
    root: Root,
    approval: Approval,
    held: HeldLedger | None,
    config_digest: str,
    found: Diagnostics,
) -> None:
    """Look once more before something is deleted: somebody may have decided otherwise meanwhile."""
    there = SwappedObject(root.objects, STATE).read()
    if held is None or there is None or there.data != held.seen.data:
        raise Conflict("somebody else has changed the ledger meanwhile: nothing was deleted")
    fits = approval.fits(held.ledger, config_digest)
    if not fits or approval not in read_approvals(root, found):
        raise Conflict("its approval was withdrawn meanwhile: nothing was deleted")
