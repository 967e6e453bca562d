"""A small cache of compiled things, bounded by how many it holds and by what they weigh.

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
    """Maps keys to values that are computed once.

    ``weight`` is what a key stands for, such as the length of a text; what weighs more than
    ``most`` is not kept, and all together weigh no more.
    """

    def __init__(
        self, limit: int, weight: Callable[[Key], int] = lambda _: 0, most: int = 0
    ) -> None:
        self._limit = limit
        self._weight = weight
        self._most = most
        self._weighs = 0
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The cached value of a key, computed outside the lock if it is not there yet."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        value = compute()
        if self._weight(key) > self._most:
            return value
        with self._lock:
            if key not in self._entries:
                self._weighs += self._weight(key)
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._limit or self._weighs > self._most:
                oldest, _ = self._entries.popitem(last=False)
                self._weighs -= self._weight(oldest)
        return value

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._weighs = 0
