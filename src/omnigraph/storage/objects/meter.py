"""The request meter: how many object-store requests a piece of work makes.

Owns the counters of this process: Lance counts its own requests, control
objects are counted here. The counters are global to the process, so a block
also counts what other threads do meanwhile: measure when nothing else runs.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

Operation = Literal["put", "get", "list", "head", "delete", "copy", "rename"]

# Lance's names for the same request, by how it was asked for.
_ALIASES: Mapping[str, str] = {
    "put_opts": "put",
    "put_part": "put",
    "put_multipart": "put",
    "put_multipart_opts": "put",
    "complete_multipart": "put",
    "get_opts": "get",
    "get_range": "get",
    "get_ranges": "get",
    "list_with_delimiter": "list",
    "list_with_offset": "list",
    "delete_stream": "delete",
    "copy_if_not_exists": "copy",
    "rename_if_not_exists": "rename",
}
_REQUESTS = "lance_object_store_requests_total"
_BYTES = "lance_object_store_request_bytes_total"
SPOOL = "file-object-store"
"""How files are addressed on the local disk that are on their way to an object store.

What is asked of them there is no request.
"""

_lock = threading.Lock()
_own: Counter[str] = Counter()


@dataclass(slots=True)
class RequestMeter:
    """The requests counted in a block; complete when the block has ended."""

    by_operation: Counter[str] = field(default_factory=Counter)
    bytes_read: int = 0
    """What Lance got, control objects not included."""

    @property
    def puts(self) -> int:
        """Objects written, renamed or copied into place."""
        return sum(self.by_operation[name] for name in ("put", "copy", "rename"))

    @property
    def gets(self) -> int:
        """Objects, or ranges of them, read."""
        return self.by_operation["get"]

    @property
    def lists(self) -> int:
        """Listings."""
        return self.by_operation["list"]

    @property
    def heads(self) -> int:
        """Metadata of one object asked for."""
        return self.by_operation["head"]

    @property
    def deletes(self) -> int:
        """Objects deleted."""
        return self.by_operation["delete"]

    @property
    def total(self) -> int:
        """All requests, of whatever operation."""
        return self.by_operation.total()

    def __str__(self) -> str:
        named = (f"{count} {name}" for name, count in sorted(self.by_operation.items()) if count)
        return ", ".join(named) or "no request"


def count(operation: Operation) -> None:
    """Count one request that goes past Lance."""
    with _lock:
        _own[operation] += 1


def requests_so_far() -> Counter[str]:
    """What this process has asked of its storage since requests are counted."""
    return _counted()


@contextmanager
def measure() -> Iterator[RequestMeter]:
    """Count the requests of a block."""
    meter = RequestMeter()
    before, read = _counted(), _read()
    try:
        yield meter
    finally:
        meter.by_operation.update(_counted() - before)
        meter.bytes_read = _read() - read


def _counted() -> Counter[str]:
    counted = _by_lance(_REQUESTS)
    with _lock:
        counted.update(_own)
    return counted


def _read() -> int:
    return _by_lance(_BYTES)["get"]


def _by_lance(name: str) -> Counter[str]:
    """What Lance has counted under a name, by operation."""
    from lance.lance import register_lance_metrics_recorder, snapshot_lance_metrics

    # Registering again is harmless, and Lance counts nothing before the first time.
    register_lance_metrics_recorder()
    counted: Counter[str] = Counter()
    for point in snapshot_lance_metrics():
        if point.name == name and point.attributes.get("base") != SPOOL and point.value:
            operation = point.attributes.get("operation", "unknown")
            counted[_ALIASES.get(operation, operation)] += int(point.value)
    return counted
