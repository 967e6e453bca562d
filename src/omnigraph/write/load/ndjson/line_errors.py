"""Line errors: what is wrong with lines, put back into the order of the lines.

Owns collecting them type by type and joining them into one error. Never decides
what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from omnigraph.errors import Rule
from omnigraph.write.load.ndjson.lines import LineIndex
from omnigraph.write.rules.violations import SHOWN, SourceLocation, Violation, Violations

_LAST = 1 << 62


class LineErrors:
    """The problems of some lines, reported in their order: the first kept, all counted."""

    def __init__(self, where: LineIndex, shown: int = SHOWN) -> None:
        self._where = where
        self._shown = shown
        self.kept: list[tuple[int, int, Violation]] = []
        self.total = 0

    @property
    def full(self) -> bool:
        """Whether the next ones are only counted, so that nothing need be said about them."""
        return len(self.kept) >= self._shown

    def add(
        self,
        ordinal: int,
        rule: Rule,
        text: str,
        *,
        column: int | None = None,
        type_key: str | None = None,
        property_: str | None = None,
        entity_id: str | None = None,
    ) -> None:
        """Count a problem of a line, and keep it if there is room."""
        self.total += 1
        if self.full:
            return
        source, number = self._where.find(ordinal)
        place = SourceLocation(source.name, number, column)
        violation = Violation(rule, text, type_key, property_, entity_id, place)
        # What has no column, being absent, comes after what has one.
        self.kept.append((ordinal, column or _LAST, violation))


def first_of_each(found: Iterable[LineErrors]) -> dict[int, Violation]:
    """The first problem of every line that has one, by the ordinal of the line."""
    kept = sorted((problem for one in found for problem in one.kept), key=itemgetter(0, 1))
    return {ordinal: violation for ordinal, _, violation in reversed(kept)}


def raise_together(found: Iterable[LineErrors]) -> None:
    """One error for the problems of all types, in the order of the lines."""
    every = list(found)
    kept = sorted((problem for one in every for problem in one.kept), key=itemgetter(0, 1))
    violations = Violations()
    total = sum(one.total for one in every)
    violations.add_all(total, (violation for _, _, violation in kept))
    violations.raise_if_any()
