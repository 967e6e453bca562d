"""The ledger of a cluster: which revision is applied, and how every resource stands.

Owns `state.json` and its one writer, a compare-and-swap. What stands in it is what is served,
whatever the working tree says.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import msgspec

from omnigraph.cluster.layout import STATE, Root
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.errors import StorageError
from omnigraph.storage.objects.s3_client import require_reachable
from omnigraph.storage.objects.swapped_object import Seen, SwappedObject

VERSION = 1
Status = Literal["pending", "planned", "applying", "applied", "drifted", "blocked", "error"]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What stands in the ledger has no fields that nobody knows."""


class AppliedResource(_Strict, frozen=True):
    """A resource as it was applied."""

    digest: str
    applies_to: tuple[str, ...] = ()
    embedding_provider: str | None = None
    embedding_profile: dict[str, str] | None = None
    external_blob_policy: list[dict[str, str]] | None = None


class AppliedRevision(_Strict, frozen=True):
    """What is applied: the digest of its configuration, and every resource."""

    config_digest: str | None = None
    resources: dict[str, AppliedResource] = {}


class ResourceStatus(_Strict, frozen=True):
    """How a resource stands."""

    status: Status
    conditions: tuple[str, ...] = ()
    message: str | None = None


class Observation(_Strict, frozen=True):
    """What a graph was when somebody last looked at it."""

    manifest_version: int
    schema_digest: str


class Ledger(_Strict, frozen=True, omit_defaults=False):
    """The whole of it."""

    version: int
    state_revision: int
    applied_revision: AppliedRevision = AppliedRevision()
    resource_statuses: dict[str, ResourceStatus] = {}
    approval_records: dict[str, str] = {}
    """The operations that have used approvals up, by the ids of those."""
    recovery_records: dict[str, str] = {}
    """What became of operations that died, by their ids."""
    observations: dict[str, Observation] = {}

    @property
    def resources(self) -> dict[str, AppliedResource]:
        """Every applied resource by its address."""
        return self.applied_revision.resources

    @property
    def graphs(self) -> list[str]:
        """The ids of the applied graphs."""
        return [one.partition(".")[2] for one in sorted(self.resources) if one.startswith("graph.")]


EMPTY = Ledger(VERSION, 0)


@dataclass(frozen=True, slots=True)
class HeldLedger:
    """A ledger as it was read, with what its replacement has to be held against."""

    ledger: Ledger
    seen: Seen

    @property
    def cas(self) -> str:
        """What tells this state from any other."""
        return f"sha256:{sha256(self.seen.data).hexdigest()}"


class _Version(msgspec.Struct, frozen=True):
    version: Any = None


def read_ledger(root: Root, found: Diagnostics) -> HeldLedger | None:
    """The ledger; None where there is none, and None with errors if it cannot be used."""
    try:
        require_reachable(root.location)
        seen = SwappedObject(root.objects, STATE).read()
    except StorageError as error:
        found.error("state_read_error", STATE, error.message)
        return None
    if seen is None:
        return None
    ledger = _decoded(seen.data, found)
    return None if ledger is None else HeldLedger(ledger, seen)


def _decoded(data: bytes, found: Diagnostics) -> Ledger | None:
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            found.error(
                "unsupported_state_version",
                STATE,
                f"version {version!r:.40} is of another release of the program: use that one",
            )
            return None
        return msgspec.json.decode(data, type=Ledger)
    except (msgspec.MsgspecError, RecursionError) as error:
        found.error(
            "invalid_state_json",
            STATE,
            f"{error}: restore it from a copy, or move it away and run `cluster import`",
        )
        return None


def write_ledger(root: Root, held: HeldLedger | None, ledger: Ledger, found: Diagnostics) -> bool:
    """Replace the ledger that was read, unless somebody else has meanwhile."""
    data = msgspec.json.format(msgspec.json.encode(ledger, order="sorted"), indent=2) + b"\n"
    try:
        if SwappedObject(root.objects, STATE).swap(None if held is None else held.seen, data):
            return True
    except StorageError as error:
        found.error("state_write_error", STATE, error.message)
        return False
    if held is None:
        found.error("state_already_exists", STATE, "somebody else has just made the ledger")
    else:
        found.error(
            "state_cas_mismatch",
            STATE,
            "somebody else has changed the ledger meanwhile: run the command again, it goes on "
            "from what is there",
        )
    return False
