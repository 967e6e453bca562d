"""Blobs: the value of one property of one entity, whole or in part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from omnigraph import errors
from omnigraph.server.answers import answer, error_answer, status_of
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Header, Route
from omnigraph.server.routes.byte_ranges import Part, select
from omnigraph.server.streams import Pieces, StreamAnswer
from omnigraph.wire.errors import ErrorBody

if TYPE_CHECKING:
    from omnigraph.read.output.blobs import Blob

OCTETS = "application/octet-stream"
_OF_URIS = "%/:=&?~#+!$,;'@()*[]"
"""What a URI is written with; anything else in one could not be in a header."""


class BlobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which value is meant, on a branch as it is now or as a commit showed it."""

    entity: Literal["node", "edge"]
    type: str
    id: str
    property: str
    branch: str | None = None
    snapshot: str | None = None


async def blob(call: Call) -> Response:
    """Deliver a value; one that is kept elsewhere is pointed to and never fetched."""
    asked = call.query(BlobQuery)
    if asked.branch is not None and asked.snapshot is not None:
        raise errors.BadRequest("give a branch or a snapshot, not both")
    branch, is_head = call.branch_of(asked.branch), call.route.method == "HEAD"
    with _told_plainly():
        found = await call.read(
            lambda session: _tagged(
                session.blob(
                    asked.entity,
                    asked.type,
                    asked.id,
                    asked.property,
                    branch=branch,
                    snapshot=asked.snapshot,
                )
            )
        )
        call.commit = found.commit_id
        if found.uri is not None:
            return _elsewhere(found)
        return await _deliver(call, found, is_head=is_head)


def _tagged(found: Blob) -> Blob:
    """The value, with its tag made on the thread that reads."""
    _ = found.etag
    return found


def _elsewhere(found: Blob) -> Response:
    if found.offset or found.size is not None:
        raise errors.InternalError("a part of another file cannot be pointed to")
    headers = {
        "Location": quote(str(found.uri), safe=_OF_URIS),
        "Cache-Control": "no-store",
        "Omnigraph-Snapshot-Id": found.commit_id,
    }
    return Response(b"", 302, headers)


async def _deliver(call: Call, found: Blob, *, is_head: bool) -> Response:
    length, tag = found.size or 0, found.etag or ""
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": tag,
        "Omnigraph-Snapshot-Id": found.commit_id,
        "Cache-Control": "no-cache",
    }
    chosen = select(call.headers, length, tag, is_head=is_head)
    if not isinstance(chosen, Part):
        return _without_body(chosen, headers, length)
    if is_head:
        return _Head(200, headers, length)
    headers["Content-Length"] = str(chosen.end - chosen.start)
    if chosen.is_range:
        headers["Content-Range"] = f"bytes {chosen.start}-{chosen.end - 1}/{length}"
    pieces = Pieces(call.server.workers, found.chunks(chosen.start, chosen.end))
    await pieces.begin()
    return StreamAnswer(pieces, OCTETS, headers, status=206 if chosen.is_range else 200)


def _without_body(reason: str, headers: dict[str, str], length: int) -> Response:
    if reason == "not_modified":
        return _Head(304, headers, length)
    if reason == "precondition_failed":
        text = "precondition failed: If-Match does not name this value"
        return answer(ErrorBody(text, "conflict"), 412, headers)
    refused = error_answer(errors.BlobRangeNotSatisfiable(start=0, end=length, length=length))
    for name, value in {**headers, "Content-Range": f"bytes */{length}"}.items():
        refused.headers[name] = value
    return refused


class _Head(Response):
    """An answer without a body that says how long the body would be."""

    media_type = OCTETS

    def __init__(self, status: int, headers: dict[str, str], length: int) -> None:
        super().__init__(None, status, headers)
        # Spelled so, it is sent and not counted: there are no bytes to count.
        kept = [one for one in self.raw_headers if one[0].lower() != b"content-length"]
        self.raw_headers = [*kept, (b"Content-Length", b"%d" % length)]


@contextmanager
def _told_plainly() -> Iterator[None]:
    """What fails is told in one sentence: texts of storage name files."""
    try:
        yield
    except errors.OmniGraphError as error:
        if status_of(error) != 500:
            raise
        text = "Blob delivery failed before response headers"
        raise errors.InternalError(text) from error


_TAGS: dict[str, Any] = {"ETag": {"schema": {"type": "string"}}}
_MORE: dict[str, Any] = {
    "206": {
        "description": "A part",
        "headers": {**_TAGS, "Content-Range": {"schema": {"type": "string"}}},
        "content": {OCTETS: {"schema": {"type": "string"}}},
    },
    "302": {
        "description": "The value is elsewhere",
        "headers": {"Location": {"schema": {"type": "string"}}},
    },
    "304": {"description": "The client has it", "headers": _TAGS},
}
_CONDITIONS = (
    Header("if-match", "Tags, one of which the value has to have."),
    Header("if-none-match", "Tags of what the client has."),
)
_PART = (
    Header("range", "One range of bytes."),
    Header("if-range", "The tag of what the client has a part of."),
)

ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/blob",
        operation="getBlob",
        tag="queries",
        summary="The value of a Blob property of one entity, whole or in part.",
        handle=blob,
        query=BlobQuery,
        content=("octets",),
        more_answers=_MORE,
        fails=(412, 416),
        headers=(*_CONDITIONS, *_PART),
    ),
    Route(
        method="HEAD",
        path=f"{GRAPH}/blob",
        operation="headBlob",
        tag="queries",
        summary="What is known of it, without the value.",
        handle=blob,
        query=BlobQuery,
        content=("octets",),
        more_answers={status: _MORE[status] for status in ("302", "304")},
        fails=(412,),
        headers=_CONDITIONS,
    ),
)
