"""The cache budget: how many bytes all caches of this process may hold together.

Owns the order in which entries go: whatever was used longest ago, in whichever cache it
is. Whatever is dropped can be loaded again, so no result ever depends on the budget. Must
never load anything itself: its lock is held for moments.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Generic, TypeVar

from omnigraph.storage.memory import memory_limit, size_of_setting

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Part = tuple[object, int]
"""A piece of memory, which entries of one cache may share: what holds it, and its bytes."""
Version = tuple[str, int]
"""A version of a table: where the table is, and which one."""

_VARIABLE = "OMNIGRAPH_CACHE_BYTES"
# Without a word from outside: so large a part of the memory, and no more than so many bytes.
DEFAULT_PART = 4
DEFAULT_MOST = 8 * 2**30
# What Lance may keep of the whole: opened indexes, and versions with the footers of files.
INDEX_SHARE = 3 / 8
METADATA_SHARE = 1 / 8
# It drops none of a version that was left behind before there is no room: some thousand footers.
METADATA_MOST = 48 * 2**20
# Of so many tables it is remembered which versions they have left behind.
MOST_REMEMBERED = 4_096
# So many versions of a table are kept at hand behind the newest: for writers that are at it.
VERSIONS_BEHIND = 8


@dataclass(frozen=True, slots=True)
class CacheUse:
    """How full a cache is, and how often it helped.

    Of its own caches Lance tells nothing but the bytes: their counts are 0.
    """

    entries: int
    bytes: int
    max_bytes: int
    hits: int
    misses: int

    def beside(self, other: CacheUse) -> CacheUse:
        """Of two caches of one kind and one bound."""
        return replace(
            self,
            entries=self.entries + other.entries,
            bytes=self.bytes + other.bytes,
            hits=self.hits + other.hits,
            misses=self.misses + other.misses,
        )


def configured_bytes() -> int:
    """What the environment allows all caches to hold, or a part of the machine's memory."""
    default = min(memory_limit() // DEFAULT_PART, DEFAULT_MOST)
    return size_of_setting(_VARIABLE, os.environ.get(_VARIABLE, ""), default)


class CacheBudget:
    """A bound over the caches that were made with it."""

    def __init__(self, max_bytes: int | None = None) -> None:
        """Bound the caches; without a number by their share of what is configured, when asked."""
        self._max_bytes = max_bytes
        # A cache that nobody has any more holds nothing.
        self._caches: weakref.WeakSet[Cache[Any, Any]] = weakref.WeakSet()
        self.lock = threading.Lock()
        self._behind: OrderedDict[str, OrderedDict[int, None]] = OrderedDict()
        self.clock = count()
        """Tells which of two entries was used later, in whichever caches they are."""

    @property
    def max_bytes(self) -> int:
        """How many bytes the caches may hold together."""
        if self._max_bytes is None:
            self._max_bytes = int(configured_bytes() * (1 - INDEX_SHARE - METADATA_SHARE))
        return self._max_bytes

    def bound(self, cache: Cache[Any, Any]) -> None:
        """Count a cache in."""
        with self.lock:
            self._caches.add(cache)

    def uses(self) -> Mapping[str, CacheUse]:
        """How full each cache is, by name, all at one moment."""
        whole = self.max_bytes
        with self.lock:
            uses: dict[str, CacheUse] = {}
            for cache in sorted(self._caches, key=lambda cache: cache.name):
                use, known = cache.use_of(whole), uses.get(cache.name)
                uses[cache.name] = use if known is None else known.beside(use)
            return uses

    def clear(self) -> None:
        """Forget everything that the caches hold."""
        for cache in list(self._caches):
            cache.clear()

    def supersede(self, versions: Iterable[Version]) -> None:
        """Tell of versions that the head of a branch has left behind.

        What is kept of them goes, since only readers of the past would ask for it; not at once,
        but when the table has left some others behind. Another branch may show one of them
        still: then it is loaded once more, and stays.
        """
        gone: list[Version] = []
        with self.lock:
            for table, version in versions:
                behind = self._behind.setdefault(table, OrderedDict())
                self._behind.move_to_end(table)
                behind[version] = None
                if len(behind) > VERSIONS_BEHIND:
                    gone.append((table, behind.popitem(last=False)[0]))
            while len(self._behind) > MOST_REMEMBERED:
                self._behind.popitem(last=False)
            caches = list(self._caches)
        for cache in caches:
            for left in gone:
                cache.forget_version(left)

    def make_room(self) -> list[object]:
        """Drop what was used longest ago until the rest fits; the lock is held.

        Returns what was dropped, for the caller to let go of without the lock.
        """
        dropped: list[object] = []
        caches = list(self._caches)
        while sum(cache.bytes for cache in caches) > self.max_bytes:
            oldest = min(filter(len, caches), key=lambda cache: cache.oldest)
            dropped.append(oldest.drop_oldest())
        return dropped


class _Entry(Generic[Value]):
    __slots__ = ("parts", "used", "value")

    def __init__(self, value: Value, parts: tuple[Part, ...]) -> None:
        self.value = value
        self.parts = parts
        self.used = 0

    @property
    def bytes(self) -> int:
        return sum(size for _, size in self.parts)


class Cache(Generic[Key, Value]):
    """One cache within a budget; ``share`` is the part of the budget it may take.

    ``parts`` tells what a value holds. A part that several entries hold counts once. ``version``
    tells of which version of a table an entry is: it goes when that is superseded, unless it is
    the last of its ``line``, from which those of later versions are made.
    """

    def __init__(
        self,
        name: str,
        parts: Callable[[Value], Iterable[Part]],
        budget: CacheBudget,
        share: Callable[[int], int] = lambda whole: whole,
        *,
        version: Callable[[Key], Version] | None = None,
        line: Callable[[Key], Hashable | None] = lambda _: None,
    ) -> None:
        self.name = name
        self.budget = budget
        self._lock = budget.lock
        self._clock = budget.clock
        self._parts_of = parts
        self._share = share
        self._entries: OrderedDict[Key, _Entry[Value]] = OrderedDict()
        # How many entries hold a part, and its bytes, by its identity: entries keep it alive.
        self._held: dict[int, list[int]] = {}
        self._version_of = version
        self._line_of = line
        self._versions: dict[Version, dict[Key, None]] = {}
        self._lines: dict[Hashable, int] = {}
        self._bytes = 0
        self._hits = 0
        self._misses = 0
        budget.bound(self)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Bytes held."""
        return self._bytes

    @property
    def max_bytes(self) -> int:
        """How many bytes it may hold while the others hold nothing."""
        whole = self.budget.max_bytes
        return min(whole, self._share(whole))

    # -- asking ----------------------------------------------------------------------

    def get(self, key: Key) -> Value | None:
        """The value of a key if it is at hand, which is a use of it."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            entry.used = next(self._clock)
            self._hits += 1
            return entry.value

    def look(self, key: Key) -> Value | None:
        """The same, but asking is no use of it."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def newest(self, where: Callable[[Key], bool]) -> list[tuple[Key, Value]]:
        """The entries whose keys pass, the one used last first."""
        with self._lock:
            found = [(key, entry.value) for key, entry in self._entries.items() if where(key)]
        return found[::-1]

    def missed(self) -> None:
        """Count that something had to be loaded."""
        with self._lock:
            self._misses += 1

    def use(self) -> CacheUse:
        """How full it is."""
        whole = self.budget.max_bytes
        with self._lock:
            return self.use_of(whole)

    def use_of(self, whole: int) -> CacheUse:
        """The same within a whole budget of so many bytes; the lock is held."""
        most = min(whole, self._share(whole))
        return CacheUse(len(self._entries), self._bytes, most, self._hits, self._misses)

    # -- keeping ---------------------------------------------------------------------

    def keep(self, key: Key, value: Value) -> None:
        """Keep a value in place of what the key had; one too large for the budget is not kept."""
        entry = _Entry(value, tuple(self._parts_of(value)))
        self._put(key, entry, replaces=True)

    def keep_first(self, key: Key, value: Value) -> Value:
        """Keep a value unless the key has one; returns the one that stays."""
        entry = _Entry(value, tuple(self._parts_of(value)))
        return self._put(key, entry, replaces=False)

    def grow(self, key: Key, part: Part, is_it: Callable[[Value], bool]) -> None:
        """Count a part that the value of a key has come to hold, if it is still the one."""
        most = self.budget.max_bytes
        with self._lock:
            entry = self._entries.get(key)
            if entry is None or not is_it(entry.value):
                return
            self._count([part])
            entry.parts = (*entry.parts, part)
            dropped = self._trim(key, entry, most)
        del dropped

    def forget(self, key: Key) -> None:
        """Drop one entry, if it is there."""
        with self._lock:
            dropped = self._pop(key) if key in self._entries else None
        del dropped

    def forget_all(self, where: Callable[[Key], bool] = lambda _: True) -> None:
        """Drop the entries whose keys pass."""
        with self._lock:
            dropped = [self._pop(key) for key in [key for key in self._entries if where(key)]]
        del dropped

    clear = forget_all

    def forget_version(self, version: Version) -> None:
        """Drop the entries of a version that was superseded."""
        with self._lock:
            keys = list(self._versions.get(version, ()))
            dropped = [self._pop(key) for key in keys if self._lines.get(self._line_of(key)) != 1]
        del dropped

    def keep_newest(self, entries: int) -> None:
        """Drop all but so many entries, those used longest ago first."""
        with self._lock:
            dropped = [self.drop_oldest() for _ in range(len(self._entries) - entries)]
        del dropped

    def _put(self, key: Key, entry: _Entry[Value], *, replaces: bool) -> Value:
        most = self.budget.max_bytes
        with self._lock:
            known = self._entries.get(key)
            if known is not None and not replaces:
                entry = known
            elif entry.bytes <= most:
                # Counted before the old one is let go: they may share most of what they hold.
                self._count(entry.parts)
                if known is not None:
                    self._pop(key)
                self._entries[key] = entry
                self._list(key)
            else:
                if known is not None:
                    self._pop(key)
                return entry.value
            self._entries.move_to_end(key)
            entry.used = next(self._clock)
            dropped = self._trim(key, entry, most)
        # Letting go of something large takes a while: not under the lock.
        del dropped, known
        return entry.value

    def _trim(self, key: Key, newest: _Entry[Value], most: int) -> list[object]:
        """Drop what is too much, here and then anywhere; under the lock."""
        dropped: list[object] = []
        if newest.bytes > most:
            dropped.append(self._pop(key))
        share = self._share(most)
        while self._bytes > share and len(self._entries) > 1:
            dropped.append(self.drop_oldest())
        return [*dropped, *self.budget.make_room()]

    # -- counting, under the lock ----------------------------------------------------

    @property
    def oldest(self) -> int:
        """When the entry was used that was used longest ago."""
        return next(iter(self._entries.values())).used

    def drop_oldest(self) -> Value:
        """Drop that entry."""
        return self._pop(next(iter(self._entries)))

    def _list(self, key: Key) -> None:
        """Note the version of a new entry, and the line it belongs to."""
        line = self._line_of(key)
        if line is not None:
            self._lines[line] = self._lines.get(line, 0) + 1
        if self._version_of is not None:
            self._versions.setdefault(self._version_of(key), {})[key] = None

    def _unlist(self, key: Key) -> None:
        line = self._line_of(key)
        if line is not None:
            self._lines[line] -= 1
            if not self._lines[line]:
                del self._lines[line]
        if self._version_of is not None:
            version = self._version_of(key)
            del self._versions[version][key]
            if not self._versions[version]:
                del self._versions[version]

    def _pop(self, key: Key) -> Value:
        entry = self._entries.pop(key)
        self._unlist(key)
        for held, _ in entry.parts:
            known = self._held[id(held)]
            known[0] -= 1
            if not known[0]:
                del self._held[id(held)]
                self._bytes -= known[1]
        return entry.value

    def _count(self, parts: Iterable[Part]) -> None:
        for held, size in parts:
            known = self._held.get(id(held))
            if known is None:
                self._held[id(held)] = [1, size]
                self._bytes += size
            else:
                known[0] += 1


budget = CacheBudget()
"""The one of this process."""
