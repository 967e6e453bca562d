"""Blobs of a served graph: one value of one commit, read in ranges of the server's answer.

Owns the headers of a value. Never holds a whole one, and never follows a reference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from omnigraph.client.connection import Ask, Connection
from omnigraph.errors import BadRequest, BlobRangeNotSatisfiable, ResourceLimit, ServerError
from omnigraph.read.output.blobs import BlobSelector
from omnigraph.storage.blobs.cells import PIECE

SNAPSHOT_ID = "omnigraph-snapshot-id"
_FOUND, _PARTIAL, _ELSEWHERE, _KNOWN = 200, 206, 302, 304


class ServedBlob:
    """The value of a Blob property, as one commit shows it."""

    def __init__(
        self,
        connection: Connection,
        selector: BlobSelector,
        status: int,
        headers: Mapping[str, str],
    ) -> None:
        self._connection = connection
        self._headers = headers
        self.selector: BlobSelector = selector
        self.commit_id: str = headers.get(SNAPSHOT_ID, "")
        self.uri: str | None = headers.get("location") if status == _ELSEWHERE else None
        self.kind: Literal["managed", "external"] = "managed" if self.uri is None else "external"
        self.offset: int = 0
        self.size: int | None = None
        self.etag: str | None = None
        if self.uri is None:
            self.etag = headers.get("etag")
            length = headers.get("content-length", "")
            if not length.isdecimal() or not self.etag or not self.commit_id:
                raise ServerError(
                    f"{connection} did not say how large {selector} is: a proxy may have taken "
                    "that away",
                    kind="bad_answer",
                )
            self.size = int(length)

    @classmethod
    def find(
        cls, connection: Connection, selector: BlobSelector, branch: str, snapshot: str | None
    ) -> ServedBlob:
        """A value of a branch or of a commit; NotFound where there is none."""
        at = ("branch", branch) if snapshot is None else ("snapshot", snapshot)
        shown = branch if snapshot is None else None
        # Whoever has any version is sent none: unlike to HEAD, a refusal comes with its reason.
        reply = connection.call(_ask(selector, at, shown, {"if-none-match": "*"}))
        return cls(connection, selector, reply.status, reply.headers)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from ``start`` up to ``end``, at most 4 MiB of them: `chunks` gives more."""
        first, last = self._within(start, end)
        if last - first > PIECE:
            raise ResourceLimit(
                f"one read gives at most {PIECE:,} bytes, and this would be {last - first:,}: "
                "read ranges, or go through .chunks()",
                details={"resource": "blob_range_bytes", "limit": PIECE, "actual": last - first},
            )
        return self._range(first, last)

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The same of any size, in pieces of at most 4 MiB."""
        first, last = self._within(start, end)
        while first < last:
            piece = self._range(first, min(first + PIECE, last))
            yield piece
            first += len(piece)

    def __iter__(self) -> Iterator[bytes]:
        """All of it, in pieces."""
        return self.chunks()

    def _within(self, start: int, end: int | None) -> tuple[int, int]:
        if self.uri is not None:
            raise BadRequest(
                f"{self.selector} is a reference to {self.uri}, which is not followed: "
                "read it there"
            )
        for given in (start, end):
            if given is not None and (type(given) is bool or not isinstance(given, int)):
                raise BadRequest(f"a range is of whole numbers, not of {given!r:.60}")
        length = self.size or 0
        last = length if end is None else end
        if not 0 <= start <= last <= length:
            raise BlobRangeNotSatisfiable(start=start, end=last, length=length)
        return start, last

    def _range(self, start: int, end: int) -> bytes:
        """One range, of the commit that was found at first."""
        if start >= end:
            return b""
        # With the tag, so that nothing else can come in its place.
        headers = {"range": f"bytes={start}-{end - 1}", "if-match": self.etag or "*"}
        ask = _ask(self.selector, ("snapshot", self.commit_id), None, headers)
        found = self._connection.call(ask)
        data = found.body[start:end] if found.status == _FOUND else found.body
        if len(data) != end - start:
            raise ServerError(
                f"{self._connection.address.base} sent {len(data)} bytes of {self.selector} where "
                f"{end - start} were asked for: ask again",
                kind="bad_answer",
            )
        return data

    def __repr__(self) -> str:
        what = f"at {self.uri}" if self.uri is not None else f"{self.size} bytes"
        return f"<Blob {self.selector}, {what}>"


def _ask(
    selector: BlobSelector, at: tuple[str, str], branch: str | None, headers: Mapping[str, str]
) -> Ask:
    names = ("entity", "type", "id", "property")
    return Ask(
        method="GET",
        parts=("blob",),
        query=(*((name, getattr(selector, name)) for name in names), at),
        headers={"accept-encoding": "identity", **headers},
        accept="application/octet-stream",
        branch=branch,
        good=frozenset({_FOUND, _PARTIAL, _ELSEWHERE, _KNOWN}),
    )
