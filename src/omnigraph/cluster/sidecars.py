"""Recovery sidecars and approvals: what an apply is about to do, and what somebody agreed to.

Owns their files. A sidecar is written before a graph is touched and removed when the ledger
knows what became of it; an approval is bound to the digests that it was given for.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from omnigraph.cluster.layout import APPROVALS, RECOVERIES, Root
from omnigraph.cluster.ledger import Ledger
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.errors import StorageError

VERSION = 1
SidecarKind = Literal["graph_create", "schema_apply", "graph_delete"]


class Sidecar(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What an apply is about to do to a graph."""

    schema_version: int = msgspec.field(default=0)
    operation_id: str
    started_at: str
    actor: str | None = None
    kind: SidecarKind
    graph_id: str
    graph_uri: str
    observed_manifest_version: int | None = None
    expected_manifest_version: int | None = None
    desired_schema_digest: str | None
    state_cas_base: str | None = None
    approval_id: str | None = None

    @property
    def name(self) -> str:
        """The object that holds it."""
        return f"{RECOVERIES}/{self.operation_id}.json"


class Approval(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """That somebody agrees to one change, as it was when they saw it."""

    schema_version: int = msgspec.field(default=0)
    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    bound_before_digest: str | None = None
    bound_after_digest: str | None = None
    approved_by: str
    created_at: str
    consumed_at: str | None = None
    consumed_by_operation: str | None = None

    @property
    def name(self) -> str:
        """The object that holds it."""
        return f"{APPROVALS}/{self.approval_id}.json"

    def fits(self, ledger: Ledger, config_digest: str) -> bool:
        """Whether it still is about what is there and what is wanted."""
        applied = ledger.resources.get(self.resource)
        return (
            self.consumed_at is None
            and self.approval_id not in ledger.approval_records
            and self.bound_config_digest == config_digest
            and self.bound_before_digest == (None if applied is None else applied.digest)
            and self.bound_after_digest is None
        )


def write_sidecar(root: Root, sidecar: Sidecar, found: Diagnostics) -> bool:
    """Announce what is about to be done; nothing is done without."""
    try:
        root.objects.replace(sidecar.name, msgspec.json.encode(sidecar))
    except StorageError as error:
        found.error("recovery_sidecar_write_error", f"graph.{sidecar.graph_id}", error.message)
        return False
    return True


def read_sidecars(root: Root, found: Diagnostics) -> list[Sidecar]:
    """What was announced and never settled, oldest first."""
    return _read_all(root, RECOVERIES, Sidecar, found)


def remove_sidecar(root: Root, sidecar: Sidecar, found: Diagnostics) -> None:
    """The ledger knows what became of it."""
    try:
        root.objects.delete(sidecar.name)
    except StorageError as error:
        found.warn(
            "recovery_sidecar_cleanup_failed",
            sidecar.name,
            f"{error.message}: the next apply settles it once more, which changes nothing",
        )


def write_approval(root: Root, approval: Approval, found: Diagnostics) -> bool:
    """Keep an approval."""
    try:
        root.objects.replace(approval.name, msgspec.json.encode(approval))
    except StorageError as error:
        found.error("approval_write_error", approval.resource, error.message)
        return False
    return True


def read_approvals(root: Root, found: Diagnostics) -> list[Approval]:
    """Every approval that was ever given, oldest first."""
    return _read_all(root, APPROVALS, Approval, found)


T = TypeVar("T", Sidecar, Approval)


def _read_all(root: Root, directory: str, kind: type[T], found: Diagnostics) -> list[T]:
    read: list[T] = []
    try:
        names = root.objects.list(directory)
    except StorageError as error:
        found.error("state_read_error", directory, error.message)
        return read
    for name in names:
        try:
            data = root.objects.read(name)
            if data is not None:
                read.append(msgspec.json.decode(data, type=kind))
        except (StorageError, msgspec.MsgspecError) as error:
            found.warn(
                "recovery_sidecar_read_error",
                name,
                f"{error}: it is passed over; `omnigraph cluster refresh` looks at every graph "
                "itself, then remove the file by hand",
            )
    return read
