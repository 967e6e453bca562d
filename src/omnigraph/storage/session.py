"""The Lance session of this process, and the handles of opened versions.

Owns the caches. A version never changes, so a handle is good for ever and may
be shared by threads. Must never be used in a forked child: Lance's threads do
not survive a fork, so processes are spawned.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from omnigraph.errors import StorageError
from omnigraph.storage.failures import storage_errors
from omnigraph.storage.location import Location

if TYPE_CHECKING:
    import lance
    from lance.lance import _Session as Session

# A handle is a manifest in memory: some kilobytes, more with many fragments.
MAX_HANDLES = 512

_lock = threading.Lock()
_session: Session | None = None
_session_pid = 0


def shared_session() -> Session:
    """The one session that every dataset of this process is opened with."""
    global _session, _session_pid  # noqa: PLW0603 - one per process is what it is for
    with _lock:
        if _session is None:
            from lance.lance import _Session  # exported as lance.Session, but not to type checkers

            _session = _Session()
            _session_pid = os.getpid()
        elif _session_pid != os.getpid():
            raise StorageError(
                "this process was forked from one that had opened tables: "
                'start it with the "spawn" method instead',
                kind="configuration",
            )
        return _session


class TableHandles:
    """Opened versions, the least recently used dropped first."""

    def __init__(self, capacity: int = MAX_HANDLES) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._handles: OrderedDict[tuple[str, int, int | None], lance.LanceDataset] = OrderedDict()

    def open(self, location: Location, version: int, gap: int | None = None) -> lance.LanceDataset:
        """The dataset at a version id; two threads may open it twice, and one handle stays."""
        key = (location.uri, version, gap)
        session = shared_session()
        with self._lock:
            if (known := self._handles.get(key)) is not None:
                self._handles.move_to_end(key)
                return known
        return self.keep(location, _open(location, version, session, gap), gap)

    def keep(
        self, location: Location, dataset: lance.LanceDataset, gap: int | None = None
    ) -> lance.LanceDataset:
        """Remember a handle, for example the one a commit returned, and give back the kept one."""
        key = (location.uri, dataset.version, gap)
        with self._lock:
            kept = self._handles.setdefault(key, dataset)
            self._handles.move_to_end(key)
            while len(self._handles) > self._capacity:
                self._handles.popitem(last=False)
        return kept

    def forget(self, location: Location) -> None:
        """Drop the handles of one table, whose directory is about to be removed."""
        with self._lock:
            for key in [key for key in self._handles if key[0] == location.uri]:
                del self._handles[key]

    def __len__(self) -> int:
        return len(self._handles)


handles = TableHandles()


def _open(
    location: Location, version: int, session: Session, gap: int | None = None
) -> lance.LanceDataset:
    import lance

    with storage_errors(f"opening {location} at version {version}"):
        return lance.dataset(
            location.uri,
            version=version,
            storage_options=location.storage_options or None,
            session=session,
            block_size=gap,
        )


def open_alone(location: Location, version: int) -> lance.LanceDataset:
    """The dataset at a version id on a handle that nobody else has.

    For the few calls that Lance lets one thread make at a time.
    """
    return _open(location, version, shared_session())


def open_pin(location: Location, version: int, gap: int | None = None) -> lance.LanceDataset:
    """The dataset at a version id, from the shared handles; opens without listing.

    What lies no further apart in a file than the ``gap``, in bytes, is read by one request;
    without one, Lance's own measure is taken, which is made for reads of a few rows.
    """
    return handles.open(location, version, gap)
