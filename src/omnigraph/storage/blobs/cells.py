"""Blobs of single cells: where one lies, pieces of its bytes, and the digest of all of them.

Owns reading a value in pieces, so that none is ever in memory as a whole, and what is remembered
of digests: files never change, so that of a row in them is asked once. Never opens what a
reference names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.lang.structural import ID
from omnigraph.storage.cache_budget import Cache, budget
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.row_address import fragments_of, rows_of
from omnigraph.storage.tables.row_lookup import find_rows
from omnigraph.storage.tables.table import ROW_ADDRESS, Table

PIECE = 4 << 20
"""So many bytes are read at once, at the most."""
# What Lance writes into a description for a blob that is a reference.
EXTERNAL = 3
# What a digest takes, with the names of the files it is of.
DIGEST_BYTES = 600

DigestKey = tuple[str, tuple[str, ...], str, int]

_digests: Cache[DigestKey, bytes] = Cache(
    "blob_digests", lambda found: [(found, DIGEST_BYTES)], budget
)


@dataclass(frozen=True, slots=True)
class BlobCell:
    """A blob of one row of a pinned table: bytes that are kept, or a reference to some.

    Of a reference ``size`` is None where all that lies there is meant, from ``offset`` on.
    """

    table: Table
    column: str
    address: int
    size: int | None
    uri: str | None = None
    offset: int = 0

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        """The bytes from one place to another, in pieces of at most `PIECE`."""
        if start >= end:
            return
        file = self._open()
        while start < end:
            size = min(PIECE, end - start)
            with storage_errors(f"reading a blob of {self.table.location}"):
                piece: bytes = file.read_range(start, size)
            yield piece
            start += size

    def digest(self) -> bytes:
        """The SHA-256 of the content; reads all of it, the first time that it is asked for."""
        key = self._files()
        known = _digests.get(key)
        if known is None:
            _digests.missed()
            digest = sha256()
            for piece in self.pieces(0, self.size or 0):
                digest.update(piece)
            known = _digests.keep_first(key, digest.digest())
        return known

    def _open(self) -> Any:
        with storage_errors(f"opening a blob of {self.table.location}"):
            [file] = self.table.dataset().take_blobs(self.column, addresses=[self.address])
        return file

    def _files(self) -> DigestKey:
        """The files that hold the row, and its place there: whoever has these has the content."""
        where = np.array([self.address], dtype=np.uint64)
        [number], [row] = fragments_of(where).tolist(), rows_of(where).tolist()
        with storage_errors(f"looking at the files of {self.table.location}"):
            fragment = self.table.dataset().get_fragment(number)
        # Not by `path`: for every path that it hands out, Lance makes a class.
        files = () if fragment is None else fragment.metadata.files
        paths = tuple(file._path for file in files)  # noqa: SLF001
        return self.table.location.uri, paths, self.column, row


def find_blob(table: Table, entity_id: str, name: str) -> BlobCell | None:
    """The blob of a row, by the row's id; None where there is no such row, or no value in it."""
    rows = find_rows(table, ID, pa.array([entity_id]), [name])
    table = table.stored  # of the row that was found
    if not rows.num_rows:
        return None
    described = rows.column(name)[0].as_py()
    if described is None:
        return None
    column, address = table.columns.of(name), rows.column(ROW_ADDRESS)[0].as_py()
    if described["kind"] != EXTERNAL:
        return BlobCell(table, column, address, described["size"])
    # A reference without a size means all that lies there.
    size, offset = described["size"] or None, described["position"]
    return BlobCell(table, column, address, size, described["blob_uri"], offset)
