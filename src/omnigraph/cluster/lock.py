"""The lock of a cluster: one operation at a time, and a word of who holds it.

Owns `lock.json`. A process that dies leaves it behind; only somebody who names its id takes it
away. What is right does not depend on it: the ledger is swapped, not written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from omnigraph.cluster.failpoints import reach
from omnigraph.cluster.layout import LOCK, Root
from omnigraph.config.cluster.diagnostics import Diagnostics
from omnigraph.errors import StorageError
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.s3_client import require_reachable

VERSION = 1


class ClusterLock(msgspec.Struct, frozen=True):
    """Who holds it, for what, and since when."""

    version: int
    lock_id: str
    operation: str
    created_at: str
    pid: int

    @property
    def holder(self) -> str:
        """How a person would say it."""
        return f"`cluster {self.operation}` of process {self.pid} since {self.created_at}"


class _Version(msgspec.Struct, frozen=True):
    version: Any = None


def now() -> str:
    """The time, as the files of a cluster write it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_lock(root: Root, found: Diagnostics, *, is_needed: bool) -> ClusterLock | None:
    """The lock; None where there is none, or if it cannot be read.

    That is an error for somebody who needs it, and a warning for others.
    """
    try:
        data = root.objects.read(LOCK)
    except StorageError as error:
        _say(found, "state_lock_read_error", error.message, is_needed=is_needed)
        return None
    if data is None:
        return None
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version == VERSION:
            return msgspec.json.decode(data, type=ClusterLock)
        _say(
            found,
            "unsupported_state_lock_version",
            f"version {version!r:.40} is of another release of the program: use that one",
            is_needed=is_needed,
        )
    except msgspec.MsgspecError as error:
        _say(
            found,
            "invalid_state_lock",
            f"{error}: if no operation is running, remove the file by hand",
            is_needed=is_needed,
        )
    return None


def _say(found: Diagnostics, code: Any, message: str, *, is_needed: bool) -> None:
    (found.error if is_needed else found.warn)(code, LOCK, message)


@contextmanager
def locked(root: Root, operation: str, found: Diagnostics, *, locks: bool) -> Iterator[bool]:
    """Within the block, be the only operation; False, and an error, if there is another.

    Where the configuration has switched locks off, a warning says so.
    """
    if not locks:
        found.warn(
            "state_lock_disabled",
            "state.lock",
            "nothing keeps two operations apart: the later one of two finds the ledger changed",
        )
        yield True
        return
    lock = ClusterLock(VERSION, new_id(), operation, now(), os.getpid())
    data = msgspec.json.encode(lock)
    if not _taken(root, data, found):
        yield False
        return
    reach("cluster_locked", operation)
    try:
        yield True
    finally:
        reach("cluster_unlocking", operation)
        _release(root, data, found)


def _taken(root: Root, data: bytes, found: Diagnostics) -> bool:
    try:
        require_reachable(root.location)
        if not root.location.is_local:
            # A lock that a second one may have too is none.
            root.objects.require_create_only()
        if root.objects.claim(LOCK, data):
            return True
    except StorageError as error:
        found.error("state_lock_error", LOCK, error.message)
        return False
    before = len(found.found)
    held = read_lock(root, found, is_needed=True)
    if held is not None:
        found.error(
            "state_lock_held",
            LOCK,
            f"{held.holder} holds the lock {held.lock_id}: wait for it, or if that process is "
            f"dead, run `omnigraph cluster force-unlock {held.lock_id}`",
        )
    elif len(found.found) == before:
        found.error("state_lock_held", LOCK, "another operation has just ended: run it again")
    return False


def _release(root: Root, data: bytes, found: Diagnostics) -> None:
    try:
        # Somebody may have taken it away, and another one have it by now.
        if root.objects.read(LOCK) == data:
            root.objects.delete(LOCK)
    except StorageError as error:
        found.error("state_lock_error", LOCK, f"the lock could not be given back: {error.message}")


def unlock(root: Root, lock_id: str, found: Diagnostics) -> ClusterLock | None:
    """Take the lock of this very id away; None, and an error, if it is another or none."""
    held = read_lock(root, found, is_needed=True)
    if held is None:
        if not found.has_errors:
            found.error("state_lock_missing", LOCK, "there is no lock: nothing was done")
        return None
    if held.lock_id != lock_id:
        found.error(
            "state_lock_id_mismatch",
            LOCK,
            f"the lock is {held.lock_id}, of {held.holder}: nothing was done",
        )
        return None
    try:
        root.objects.delete(LOCK)
    except StorageError as error:
        found.error("state_lock_error", LOCK, error.message)
        return None
    return held
