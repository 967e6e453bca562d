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
from dataclasses import dataclass
from itertools import count
from typing import Any, Generic, TypeVar

from omnigraph.storage.memory import configured_size, memory_limit

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

Part = tuple[object, int]
"""A piece of memory, which entries of one cache may share: what holds it, and its bytes."""

# Without a word from outside: so large a part of the memory, and no more than so many bytes.
DEFAULT_PART = 4
DEFAULT_MOST = 8 * 2**30
# What Lance may keep of the whole: opened indexes, and versions with the footers of files.
INDEX_SHARE = 3 / 8
METADATA_SHARE = 1 / 8
# Of so many versions it is remembered that they were given up.
MOST_REMEMBERED = 4_096


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


def configured_bytes() -> int:
    """What the environment allows all caches to hold, or a part of the machine's memory."""
    given = configured_size("OMNIGRAPH_CACHE_BYTES", os.environ.get("OMNIGRAPH_CACHE_BYTES", ""))
    return min(memory_limit() // DEFAULT_PART, DEFAULT_MOST) if given is None else given


class CacheBudget:
    """A bound over the caches that were made with it."""

    def __init__(self, max_bytes: int | None = None) -> None:
        """Bound the caches; without a number by their share of what is configured, when asked."""
        self._max_bytes = max_bytes
        # A cache that nobody has any more holds nothing.
        self._caches: weakref.WeakSet[Cache[Any, Any]] = weakref.WeakSet()
        self.lock = threading.Lock()
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
            caches = sorted(self._caches, key=lambda cache: cache.name)
            return {cache.name: cache.use_of(whole) for cache in caches}

    def clear(self) -> None:
        """Forget everything that the caches hold."""
        for cache in list(self._caches):
            cache.clear()

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

    ``parts`` tells what a value holds. A part that several entries hold counts once.
    """

    def __init__(
        self,
        name: str,
        parts: Callable[[Value], Iterable[Part]],
        budget: CacheBudget,
        share: Callable[[int], int] = lambda whole: whole,
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

    def _pop(self, key: Key) -> Value:
        entry = self._entries.pop(key)
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


class Replaced:
    """Versions that were given up because a later one shares nothing with them.

    One that is asked for again lives on, as that of another branch say: it is given up no more.
    """

    def __init__(self) -> None:
        self._given_up: set[Hashable] = set()
        self._alive: set[Hashable] = set()

    def gives_up(self, version: Hashable) -> bool:
        """Give a version up, unless somebody has missed it before."""
        if version in self._alive:
            return False
        if len(self._given_up) > MOST_REMEMBERED:
            self._given_up.clear()
        self._given_up.add(version)
        return True

    def missed(self, version: Hashable) -> None:
        """Tell that a version had to be loaded."""
        if version in self._given_up:
            if len(self._alive) > MOST_REMEMBERED:
                self._alive.clear()
            self._alive.add(version)


budget = CacheBudget()
"""The one of this process."""
