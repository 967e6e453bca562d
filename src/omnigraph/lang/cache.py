"""A small cache of compiled things, bounded by how many it holds.

Owns eviction (least recently used goes first) and is safe to share between
threads. Never caches a failure: a raised error is raised again next time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Maps keys to values that are computed once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The cached value of a key, computed outside the lock if it is not there yet."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        value = compute()
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return value

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
