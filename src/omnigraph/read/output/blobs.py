"""Blobs as a reader has them: one value of one entity, of a fixed size, read piece by piece.

Owns what can be asked of a value, and which ranges of it there are. A value is of one commit for
as long as anybody holds it. Never holds a whole one, and never opens what a reference names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

from omnigraph.errors import (
    BadRequest,
    BlobRangeNotSatisfiable,
    NotFound,
    ResourceLimit,
    StorageError,
)
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.lang.schema.catalog import Catalog, unknown_type
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.blobs.cells import PIECE, BlobCell, find_blob

TAG_BYTES = 16
"""So much of the digest tells one content from another."""

Missing = Callable[[], object]
"""Raises, if a commit is gone, what is to be said of that."""


@dataclass(frozen=True, slots=True)
class BlobSelector:
    """Which value is meant: a property of one entity."""

    entity: Literal["node", "edge"]
    type: str
    id: str
    property: str

    def __str__(self) -> str:
        return f"{self.property} of {self.entity} {self.type} '{self.id}'"


class Blob:
    """The value of a Blob property, as one commit shows it.

    It is kept in the graph, then it has a ``size`` and an ``etag`` and can be read; or it is a
    reference, then it has a ``uri``, which nobody follows for you.
    """

    def __init__(
        self, selector: BlobSelector, commit_id: str, cell: BlobCell, require_kept: Missing
    ) -> None:
        self.selector: BlobSelector = selector
        self.commit_id: str = commit_id
        """The commit that it is read of."""
        self._cell = cell
        self._require_kept = require_kept

    @property
    def kind(self) -> Literal["managed", "external"]:
        """Whether the graph keeps the bytes, or where they are."""
        return "managed" if self._cell.uri is None else "external"

    @property
    def uri(self) -> str | None:
        """Where the bytes are, of a reference."""
        return self._cell.uri

    @property
    def offset(self) -> int:
        """Where they begin there."""
        return self._cell.offset

    @property
    def size(self) -> int | None:
        """How many bytes it has; of a reference only known if it says so."""
        return self._cell.size

    @property
    def etag(self) -> str | None:
        """A strong validator: equal for equal bytes, whatever became of their row or their file.

        It is made from all of them; the first time that it is asked for, they are read.
        """
        if self._cell.uri is not None:
            return None
        try:
            return f'"{self._cell.digest()[:TAG_BYTES].hex()}"'
        except StorageError as error:
            self._fail(error)

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from ``start`` up to ``end``, at most 4 MiB of them: `chunks` gives more.

        >>> posters = og.init("posters.omni", "node Film { title: String @key  poster: Blob? }")
        >>> row = {"type": "Film", "data": {"title": "Speed", "poster": "base64:aGVsbG8="}}
        >>> done = posters.load([row], mode="append")
        >>> posters.blob("node", "Film", "Speed", "poster").read(1, 4)
        b'ell'
        """
        first, last = self._within(start, end)
        if last - first > PIECE:
            raise ResourceLimit(
                f"one read gives at most {PIECE:,} bytes, and this would be {last - first:,}: "
                "read ranges, or go through .chunks()",
                details={"resource": "blob_range_bytes", "limit": PIECE, "actual": last - first},
            )
        return b"".join(self._pieces(first, last))

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The same of any size, in pieces of at most 4 MiB.

        >>> posters = og.init("posters.omni", "node Film { title: String @key  poster: Blob? }")
        >>> row = {"type": "Film", "data": {"title": "Speed", "poster": "base64:aGVsbG8="}}
        >>> done = posters.load([row], mode="append")
        >>> b"".join(posters.blob("node", "Film", "Speed", "poster").chunks())
        b'hello'
        """
        yield from self._pieces(*self._within(start, end))

    def __iter__(self) -> Iterator[bytes]:
        """All of it, in pieces."""
        return self.chunks()

    def _within(self, start: int, end: int | None) -> tuple[int, int]:
        if self._cell.uri is not None:
            raise BadRequest(
                f"{self.selector} is a reference to {self._cell.uri}, which is not followed: "
                "read it there"
            )
        for given in (start, end):
            if given is not None and (type(given) is bool or not isinstance(given, int)):
                raise BadRequest(f"a range is of whole numbers, not of {given!r:.60}")
        length = self._cell.size or 0
        last = length if end is None else end
        if not 0 <= start <= last <= length:
            raise BlobRangeNotSatisfiable(start=start, end=last, length=length)
        return start, last

    def _pieces(self, start: int, end: int) -> Iterator[bytes]:
        try:
            yield from self._cell.pieces(start, end)
        except StorageError as error:
            self._fail(error)

    def _fail(self, error: StorageError) -> NoReturn:
        """Of a commit that cleanup has reclaimed meanwhile, say that."""
        if error.kind == "not_found":
            self._require_kept()
        raise error

    def __repr__(self) -> str:
        what = f"at {self.uri}" if self.uri is not None else f"{self.size} bytes"
        return f"<Blob {self.selector}, {what}>"


def find_value(
    shown: Snapshot, catalog: Catalog, selector: BlobSelector, require_kept: Missing
) -> Blob:
    """One value as a snapshot shows it; NotFound where there is none."""
    types = catalog.nodes if selector.entity == "node" else catalog.edges
    type_ = types.get(selector.type)
    if type_ is None:
        refused = unknown_type(selector.type, types)
        raise BadRequest(refused.message, details=refused.details)
    property_ = type_.properties.get(selector.property)
    if property_ is None:
        blobs = sorted(name for name, one in type_.properties.items() if one.type.is_blob)
        listed = f"its Blobs are {', '.join(blobs)}" if blobs else "it has no Blobs"
        hint = did_you_mean(selector.property, sorted(type_.properties)) or listed
        raise BadRequest(f"{selector.type} has no property {selector.property}: {hint}")
    if not property_.type.is_blob:
        raise BadRequest(
            f"{selector.type}.{selector.property} is {property_.type}, not a Blob: query it instead"
        )
    table = shown.table(selector.entity, selector.type).pinned
    cell = find_blob(table, selector.id, selector.property)
    if cell is None:
        raise NotFound(f"there is no {selector} at commit {shown.commit_id}")
    return Blob(selector, shown.commit_id, cell, require_kept)
