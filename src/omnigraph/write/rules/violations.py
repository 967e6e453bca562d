"""Violations: what is wrong with the rows of a write, and where each of them came from.

Owns collecting them, so that a person sees every problem of a batch at once,
and the one error they become. Never decides what is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from omnigraph.errors import Rule, ValidationError

SHOWN = 100


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """Where a value was written: a file or frame, a line or row, a column; counted from 1.

    ``row`` is the row of the batch it became, counted from 0, where it became one.
    """

    source: str | None
    line: int
    column: int | None = None
    row: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.source is None:
            where = f"line {self.line}"
            return where if self.column is None else f"{where}, column {self.column}"
        where = f"{self.source}:{self.line}"
        return where if self.column is None else f"{where}:{self.column}"


class SourceMap(Protocol):
    """Finds where the rows of a batch came from; asked only about rows that are wrong."""

    def place(self, row: int, member: str | None) -> SourceLocation | None:
        """The place of a row, or of one member of it (`age`, `id`, `from`, `to`)."""


class NoSource:
    """The places of rows that no input was written for."""

    def place(self, row: int, member: str | None) -> SourceLocation | None:  # noqa: ARG002 - the protocol
        """Always None."""
        return None


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong."""

    rule: Rule
    text: str
    type_key: str | None = None
    property: str | None = None
    entity_id: str | None = None
    place: SourceLocation | None = None

    def __str__(self) -> str:
        return self.text if self.place is None else f"{self.place}: {self.text}"

    def body(self) -> dict[str, Any]:
        """The violation as data."""
        place = self.place
        return {
            "rule": self.rule,
            "message": self.text,
            "type_key": self.type_key,
            "property": self.property,
            "entity_id": self.entity_id,
            "source": place.source if place else None,
            "line": place.line if place else None,
            "column": place.column if place else None,
        }


class Violations:
    """The violations of one write: the first ones kept, all of them counted."""

    def __init__(self, shown: int = SHOWN) -> None:
        self._shown = shown
        self.kept: list[Violation] = []
        self.total = 0

    @property
    def room(self) -> int:
        """How many more will be kept; the text of the others need not be made."""
        return max(self._shown - len(self.kept), 0)

    def add(self, violation: Violation) -> None:
        """Count a violation, and keep it if there is room."""
        self.add_all(1, (violation,))

    def add_all(self, count: int, found: Iterable[Violation]) -> None:
        """Count ``count`` violations and keep as many of ``found`` as there is room for."""
        self.total += count
        for violation, _ in zip(found, range(self.room), strict=False):
            self.kept.append(violation)

    def __bool__(self) -> bool:
        return self.total > 0

    def raise_if_any(self) -> None:
        """One error for all of them; its message is the first."""
        if not self.total:
            return
        first = self.kept[0]
        raise ValidationError(
            self._report(),
            rule=first.rule,
            details={
                "total": self.total,
                "violations": [violation.body() for violation in self.kept],
            },
        )

    def _report(self) -> str:
        several = f"{self.total} problems" if self.total > 1 else None
        return report(self.kept, self.total, several)


def raise_unplaced(found: Iterable[Violation]) -> None:
    """One error for what no row of the input is to blame for, if there is any."""
    unplaced = [one for one in found if one.place is None or one.place.row is None]
    violations = Violations()
    violations.add_all(len(unplaced), unplaced)
    violations.raise_if_any()


def report(shown: Sequence[Violation], total: int, summary: str | None) -> str:
    """The text of an error about many things: the first, how many more, and what it comes to."""
    more = [f"… and {total - len(shown)} more"] if total > len(shown) else []
    end = [] if summary is None else [f"{summary}; nothing was written"]
    return "\n".join([*_lines(shown, is_all=not more), *more, *end])


def _lines(shown: Sequence[Violation], *, is_all: bool) -> Iterator[str]:
    """A line for each; for what is missing at the ends of several edges one, at the first."""
    missing = Counter(one.text for one in shown if one.rule == "endpoint")
    told: set[str] = set()
    for one in shown:
        rows = missing[one.text] if one.rule == "endpoint" else 1
        if one.text in told:
            continue
        if rows > 1:
            told.add(one.text)
        yield str(one) if rows == 1 else f"{one} (in {'' if is_all else 'at least '}{rows} rows)"
