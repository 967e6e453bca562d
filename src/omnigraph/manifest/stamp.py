"""The format stamp: which storage format a graph was written in.

Owns the one number and both refusals. There is no migration in place: an older
graph is rebuilt by export and import.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from omnigraph.errors import UnsupportedFormat
from omnigraph.manifest.rows import FORMAT_KEY
from omnigraph.version import INTERNAL_SCHEMA

_RELEASES = {
    1: "0.3.1 or older",
    2: "0.4.1 to 0.6.1",
    3: "0.6.2 to 0.7.2",
    4: "0.8",
    5: "unreleased",
    6: "0.1.0 before branches were datasets of their own",
    7: "0.1.0 while heads carried their generation",
}


def stamped(rows: pa.Table) -> pa.Table:
    """The rows of a new manifest, with the format they are written in."""
    return rows.replace_schema_metadata({FORMAT_KEY: str(INTERNAL_SCHEMA).encode()})


def check_stamp(metadata: Mapping[bytes, bytes]) -> None:
    """Refuse a manifest of another format."""
    found = metadata.get(FORMAT_KEY, b"").decode(errors="replace")
    if found == str(INTERNAL_SCHEMA):
        return
    details = {"found": found, "supported": INTERNAL_SCHEMA}
    if not (found.isascii() and found.isdigit()):
        raise UnsupportedFormat(
            "this manifest carries no format stamp: it was not written by OmniGraph",
            details=details,
        )
    number = int(found)
    if number > INTERNAL_SCHEMA:
        raise UnsupportedFormat(
            f"this graph has storage format {number}, newer than the {INTERNAL_SCHEMA} this "
            "program knows: upgrade the program",
            details=details,
        )
    release = _RELEASES.get(number, "unknown")
    raise UnsupportedFormat(
        f"this graph has storage format {number} (release {release}): export it with that "
        "release and import it into a new graph",
        details=details,
    )
