"""Names: which branch each name means, kept as one small object with versions of its own.

Owns the compare-and-swap over names: a version is an object that is created at most once, so
of two changes of one version one comes first, and a change counts when the newest version is
proven to have it. Knows nothing of what a branch holds.
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Literal

import msgspec

from omnigraph.errors import BranchNotFound, Conflict, StorageError, UnsupportedFormat
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.entries import MAIN
from omnigraph.storage.objects.control_objects import ControlObjects, StoredObject
from omnigraph.storage.objects.location import Location

DIRECTORY = "__refs"
FORMAT = 1
ATTEMPTS = 64
_CHECKSUM = b',"checksum":'
KEPT, MANY = 8, 32
"""Once there are many versions, only so many of the newest are kept."""

RefKind = Literal["branch", "tag"]


class Ref(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a name means: a branch, by an id that no other ever has; a tag is one nobody writes to.

    ``former`` is what a branch was called whose new name it does not say itself yet.
    """

    id: str
    parent_id: str
    parent: str
    actor: str | None
    created_at: int
    kind: RefKind = "branch"
    former: str | None = None


@dataclass(frozen=True, slots=True)
class Refs:
    """All names at one version; main is always there and is not among them.

    ``epoch`` counts the collections: a branch that was being made under one is not named
    under another. Identities of schemas below ``next_identity`` were given out, on whichever
    branch; 0 while none were but by the first schema.
    """

    version: int = 0
    epoch: int = 0
    names: Mapping[str, Ref] = field(default_factory=dict)
    next_identity: int = 0

    def of_kind(self, kind: RefKind) -> list[str]:
        """The names of that kind, sorted."""
        return sorted(name for name, ref in self.names.items() if ref.kind == kind)


class _Stored(msgspec.Struct, frozen=True, omit_defaults=True):
    format: int
    epoch: int
    names: dict[str, Ref]
    next_identity: int = 0
    checksum: int | None = None


class _Format(msgspec.Struct, frozen=True):
    format: int


Step = Callable[[Refs], Refs | None]
"""From the names as they are to those wanted; None when they are so already."""


class RefStore:
    """The names of one graph."""

    def __init__(self, root: Location, verify: Callable[[], object] = object) -> None:
        """``verify`` is called when the names are not what they can have become."""
        self.objects = ControlObjects(root)
        self._verify = verify
        self._known = Refs()
        self._stored: StoredObject | None = None
        self._is_read = False
        self._lock = Lock()

    @property
    def known(self) -> Refs:
        """The newest names seen, which may be out of date."""
        return self._known

    def seen(self) -> Refs:
        """The newest names seen, read if none were: for a change that finds out what is stale."""
        return self._known if self._is_read else self.read()

    def read(self) -> Refs:
        """The names as they are: one request when nothing has changed."""
        for _ in range(ATTEMPTS):
            known, stored = self._known, self._stored
            versions = self._versions()
            self._is_read = True
            newest = max(versions, default=0)
            if newest == known.version and versions.get(newest) == stored:
                return known
            if newest <= known.version:
                # Versions only grow, and are never written again.
                self._verify()
            if not versions:
                return Refs()
            data = self.objects.read(_name(newest))
            if data is not None:
                return self._remember(_parsed(newest, data), versions[newest])
            # So many changes since the listing that this one is gone already.
        raise _busy(self.objects.location)

    def change(self, step: Step, seen: Refs | None = None) -> Refs:
        """Change the names in one step; ``step`` says what, and is asked again after a race.

        It has to recognise its own effect: whoever does not learn what became of an attempt
        asks it once more. The first attempt is made on the names that the caller has ``seen``.
        """
        for attempt in range(ATTEMPTS):
            refs = seen if seen is not None and attempt == 0 else self.read()
            wanted = step(refs)
            if wanted is None:
                return refs
            version = refs.version + 1
            data = _text(wanted)
            try:
                is_first = self.objects.create(_name(version), data)
            except StorageError as error:
                if error.kind not in {"transient", "unknown"}:
                    raise
                is_first = False
            # A version may be missing because it was removed: then what was created there
            # lies behind the newest and means nothing.
            versions = self._versions() if is_first else {}
            if versions and max(versions) == version:
                self._prune(sorted(versions))
                return self._remember(replace(wanted, version=version), versions[version])
            if attempt:
                time.sleep(random.uniform(0, 0.002 * min(attempt, 10)))  # noqa: S311 - jitter
        raise _busy(self.objects.location)

    def reserve_identities(self, count: int, first: int) -> int:
        """Give out so many identities of schemas, from ``first`` on at the earliest.

        The first of them; no branch is ever given one of them again. What is reserved by
        somebody who does not come to use it is lost, which costs nothing.
        """
        reserved = 0

        def reserve(refs: Refs) -> Refs:
            nonlocal reserved
            reserved = max(refs.next_identity, first)
            return replace(refs, next_identity=reserved + count)

        self.change(reserve)
        return reserved

    def _remember(self, refs: Refs, stored: StoredObject) -> Refs:
        with self._lock:
            if refs.version >= self._known.version:
                self._known, self._stored = refs, stored
        return refs

    def _versions(self) -> dict[int, StoredObject]:
        return {
            int(stem): entry
            for entry in self.objects.entries(DIRECTORY)
            if (stem := entry.name.removeprefix(f"{DIRECTORY}/").removesuffix(".json")).isdecimal()
        }

    def _prune(self, versions: list[int]) -> None:
        """Remove old versions now and then: nobody reads any but the newest."""
        if len(versions) > MANY:
            try:
                self.objects.delete_all([_name(version) for version in versions[:-KEPT]])
            except StorageError:
                return  # the change has happened, and the next one tries again


def _name(version: int) -> str:
    return f"{DIRECTORY}/{version:020d}.json"


def _text(refs: Refs) -> bytes:
    """The names as they are stored, with a checksum of all that is before it."""
    stored = _Stored(FORMAT, refs.epoch, dict(refs.names), refs.next_identity)
    data = msgspec.json.encode(stored)[:-1] + _CHECKSUM
    return data + b"%d}" % zlib.crc32(data)


def _is_as_written(data: bytes, checksum: int | None) -> bool:
    """Whether names are what their checksum says, if they have one."""
    end = data.rfind(_CHECKSUM)
    if checksum is None or end < 0:
        return checksum is None and end < 0
    return zlib.crc32(data[: end + len(_CHECKSUM)]) == checksum


def _parsed(version: int, data: bytes) -> Refs:
    name = _name(version)
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found > FORMAT:
            raise UnsupportedFormat(
                f"{name} has format {found} and this program reads up to {FORMAT}: upgrade the "
                "program",
                details={"found": found, "supported": FORMAT},
            )
        stored = msgspec.json.decode(data, type=_Stored)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StorageError(f"{name} cannot be read: {error}", kind="permanent") from error
    if not _is_as_written(data, stored.checksum):
        raise StorageError(f"{name} cannot be read: it is not what was written", kind="permanent")
    return Refs(version, stored.epoch, stored.names, stored.next_identity)


def _busy(location: Location) -> Conflict:
    return Conflict(
        f"the names of branches in {location} change too fast: retry",
        details={"attempts": ATTEMPTS},
    )


def missing(branch: str, names: Iterable[str] = ()) -> BranchNotFound:
    """What is told of a name that means no branch, beside those that do."""
    hint = did_you_mean(branch, [MAIN, *names])
    tail = f": {hint}" if hint else ""
    return BranchNotFound(f"there is no branch {branch}{tail}", details={"branch": branch})
