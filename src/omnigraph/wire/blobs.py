"""Values of Blob properties: which one is meant, and what is known of it without its bytes.

Owns the names of these bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from omnigraph.wire.body import Body
from omnigraph.wire.graphs import EntityKind

if TYPE_CHECKING:
    from omnigraph.read.output.blobs import Blob


class BlobSelectorBody(Body, frozen=True):
    """One property of one entity."""

    entity: EntityKind
    type: str
    id: str
    property: str


class BlobTargetBody(Body, frozen=True, kw_only=True):
    """What was looked at, as it was named, and the commit that it was then."""

    branch: str | None = None
    snapshot: str | None = None
    resolved_snapshot: str


class BlobStatBody(Body, frozen=True, kw_only=True):
    """A value: bytes that the graph keeps, or a reference to some."""

    selector: BlobSelectorBody
    kind: Literal["managed", "external"]
    size: int | None = None
    etag: str | None = None
    uri: str | None = None
    target: BlobTargetBody

    @classmethod
    def of(cls, blob: Blob, branch: str | None, snapshot: str | None) -> BlobStatBody:
        """A value of a branch, or of a commit; of one that is kept the bytes are read once."""
        meant = blob.selector
        shown = None if snapshot is not None else branch
        return cls(
            selector=BlobSelectorBody(meant.entity, meant.type, meant.id, meant.property),
            kind=blob.kind,
            size=blob.size,
            etag=blob.etag,
            uri=blob.uri,
            target=BlobTargetBody(
                branch=shown, snapshot=snapshot, resolved_snapshot=blob.commit_id
            ),
        )
