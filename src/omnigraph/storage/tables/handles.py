"""The Lance session of this process, and the handles of opened versions.

Owns what Lance may keep, and what an opened version weighs. A version never changes, so a
handle is good for ever and may be shared by threads. Must never be used in a forked child:
Lance's threads do not survive a fork, so processes are spawned.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from omnigraph.storage.cache_budget import (
    INDEX_SHARE,
    METADATA_MOST,
    METADATA_SHARE,
    Cache,
    CacheBudget,
    CacheUse,
    Part,
    budget,
    configured_bytes,
)
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.processes import require_usable

if TYPE_CHECKING:
    import lance
    from lance.lance import _Session as Session

# What a handle holds: itself, the fragments as Lance unpacks them, and texts and row ids as
# they stand in the file of the version.
HANDLE_BYTES = 32 * 2**10
FRAGMENT_BYTES = 750
# Old versions are seldom opened again, so handles take a small part, or enough for a few.
HANDLES_PART = 16
FEW_HANDLES = 32 * 2**20

_lock = threading.Lock()
_session: Session | None = None

# What a look at storage itself may keep meanwhile.
FRESH_BYTES = 64 * 2**20
_fresh: ContextVar[Session | None] = ContextVar("fresh", default=None)


@contextmanager
def reading_storage() -> Iterator[None]:
    """Within the block nothing is answered from what this process remembers of versions.

    For whoever wants to know whether files are still what they were. Threads take part in it
    that run in a copy of the context.
    """
    from lance.lance import _Session

    require_usable()
    token = _fresh.set(
        _Session(index_cache_size_bytes=FRESH_BYTES, metadata_cache_size_bytes=FRESH_BYTES)
    )
    try:
        yield
    finally:
        _fresh.reset(token)


def shared_session() -> Session:
    """The one session that every dataset of this process is opened with."""
    global _session  # noqa: PLW0603 - one per process is what it is for
    require_usable()
    fresh = _fresh.get()
    if fresh is not None:
        return fresh
    with _lock:
        if _session is None:
            from lance.lance import _Session  # exported as lance.Session, but not to type checkers

            allowed = configured_bytes()
            _session = _Session(
                index_cache_size_bytes=int(allowed * INDEX_SHARE),
                metadata_cache_size_bytes=_metadata_bytes(allowed),
            )
        return _session


def _metadata_bytes(allowed: int) -> int:
    return min(int(allowed * METADATA_SHARE), METADATA_MOST)


def cache_uses() -> Mapping[str, CacheUse]:
    """How full every cache of this process is, by name, those of Lance included."""
    allowed = configured_bytes()
    indexes = metadata = 0
    if _session is not None:
        indexes = _session.index_cache_size_bytes()
        metadata = max(0, _session.size_bytes() - indexes)
    return {
        **budget.uses(),
        "storage_indexes": CacheUse(0, indexes, int(allowed * INDEX_SHARE), 0, 0),
        "storage_metadata": CacheUse(0, metadata, _metadata_bytes(allowed), 0, 0),
    }


HandleKey = tuple[str, int, int | None]


class TableHandles:
    """Opened versions, the least recently used dropped first."""

    def __init__(self, budget: CacheBudget = budget) -> None:
        self._handles: Cache[HandleKey, lance.LanceDataset] = Cache(
            "handles",
            _weight,
            budget,
            lambda whole: max(whole // HANDLES_PART, FEW_HANDLES),
            version=lambda key: key[:2],
        )

    def open(self, location: Location, version: int, gap: int | None = None) -> lance.LanceDataset:
        """The dataset at a version id; two threads may open it twice, and one handle stays."""
        session = shared_session()
        known = self._handles.get((location.uri, version, gap))
        if known is not None:
            return known
        self._handles.missed()
        return self.keep(location, _open(location, version, session, gap), gap)

    def keep(
        self, location: Location, dataset: lance.LanceDataset, gap: int | None = None
    ) -> lance.LanceDataset:
        """Remember a handle, for example the one a commit returned, and give back the kept one."""
        return self._handles.keep_first((location.uri, dataset.version, gap), dataset)

    def forget(self, location: Location, versions: Container[int] | None = None) -> None:
        """Drop the handles of one table, or of some of its versions, which nobody will need."""
        self._handles.forget_all(
            lambda key: key[0] == location.uri and (versions is None or key[1] in versions)
        )

    def forget_lost(self, location: Location, version: int) -> None:
        """Drop the handles of a version that nobody can ever be told of."""
        self._handles.forget_version((location.uri, version))

    def forget_below(self, root: Location) -> None:
        """Drop the handles of all tables below a place."""
        self._handles.forget_all(lambda key: key[0].startswith(f"{root.uri}/"))

    def use(self) -> CacheUse:
        """How full it is."""
        return self._handles.use()

    def clear(self) -> None:
        """Drop all handles."""
        self._handles.clear()

    def __len__(self) -> int:
        return len(self._handles)


def _weight(dataset: lance.LanceDataset) -> list[Part]:
    """About what an opened version holds in memory; one that a commit returned holds less."""
    fragments = len(dataset.fragment_ids())
    # Row ids of rows that were moved stand in it one by one, so counting fragments is not enough.
    packed = len(dataset._ds.serialized_manifest())  # noqa: SLF001 - offered nowhere else
    return [(dataset, HANDLE_BYTES + FRAGMENT_BYTES * fragments + packed)]


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
    if _fresh.get() is not None:
        return _open(location, version, shared_session(), gap)
    return handles.open(location, version, gap)
