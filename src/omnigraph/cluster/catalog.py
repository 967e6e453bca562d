"""The catalog: the queries and policies that are applied, by address and digest.

Owns writing them before the ledger names them, and reading them back only if they are what it
names. Never removes one: an older revision may name it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from omnigraph.cluster.desired import Resource
from omnigraph.cluster.failpoints import reach
from omnigraph.cluster.layout import Root, blob_name
from omnigraph.cluster.ledger import AppliedResource
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.config.cluster.digests import digest_of
from omnigraph.errors import StorageError

KINDS = ("query", "policy")
BlobState = Literal["good", "missing", "other", "unreadable"]


def is_blob(address: str) -> bool:
    """Whether a resource has a blob."""
    return address.partition(".")[0] in KINDS


def look(root: Root, address: str, digest: str) -> tuple[BlobState, str]:
    """What became of the blob of a resource, and what is said of it."""
    name = blob_name(address, digest)
    try:
        content = root.objects.read(name)
    except StorageError as error:
        return "unreadable", error.message
    if content is None:
        return "missing", f"{name} is gone: `omnigraph cluster apply` writes it again"
    if digest_of(content) != digest:
        return "other", f"{name} is not what was applied: `omnigraph cluster apply` writes it again"
    return "good", ""


def write_blob(root: Root, resource: Resource, found: Diagnostics) -> bool:
    """Make sure that the blob of a resource is there, whatever is there now."""
    state, _ = look(root, resource.address, resource.digest)
    if state == "good":
        return True
    name = blob_name(resource.address, resource.digest)
    try:
        root.objects.replace(name, resource.content)
    except StorageError as error:
        found.error("resource_payload_write_error", resource.address, error.message)
        return False
    reach("cluster_blob_written", resource.address)
    return True


def verify(
    root: Root, resources: Mapping[str, AppliedResource], found: Diagnostics
) -> dict[str, str]:
    """What is wrong with the blobs of all resources, by address; warnings say it."""
    wrong = {}
    for address, applied in sorted(resources.items()):
        if not is_blob(address):
            continue
        state, message = look(root, address, applied.digest)
        if state == "good":
            continue
        wrong[address] = message
        if state == "missing":
            found.warn("catalog_payload_missing", address, message)
        else:
            found.warn("catalog_payload_mismatch", address, message)
    return wrong


def read_blob(root: Root, address: str, digest: str, found: Diagnostics) -> str | None:
    """The text of a resource that is to be served; None, and an error, if it is not as applied."""
    name = blob_name(address, digest)
    try:
        content = root.objects.read(name)
        if content is None:
            found.error("catalog_payload_missing", address, f"{name} is gone: apply again")
            return None
        if digest_of(content) != digest:
            found.error(
                "catalog_payload_digest_mismatch",
                address,
                f"{name} is not what was applied: find out who has changed it, then apply again",
            )
            return None
        return content.decode("utf-8-sig")
    except (StorageError, UnicodeDecodeError) as error:
        found.error("catalog_payload_read_error", address, str(error))
        return None
