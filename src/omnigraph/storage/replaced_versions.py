"""Replaced versions: those that a cache has given up for a later one.

Owns the memory of them, so that one which is asked for again lives on. Knows nothing of what the
cache held.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

MOST_REMEMBERED: Final = 4_096
"""Of so many versions it is remembered that they were given up."""


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
