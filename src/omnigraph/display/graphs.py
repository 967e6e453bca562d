"""Graphs as notebooks show them: where one is, what it has of each type, its schema, its health.

Owns those pages. Shows what it is given and asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from omnigraph.display.markup import Html, counted, element, joined, paragraph, table
from omnigraph.display.schema import ShownCatalog, diagram_of

MOST_BRANCHES = 12


def graph_html(
    location: str,
    commit_id: str | None,
    branches: Sequence[str],
    counts: Mapping[str, int],
    catalog: ShownCatalog,
) -> Html:
    """A graph as its main branch shows it."""
    at = "" if commit_id is None else joined([", main is at ", element("code", commit_id)])
    named = ", ".join(branches[:MOST_BRANCHES])
    more = len(branches) - MOST_BRANCHES
    told = named if more <= 0 else f"{named} and {counted(more, 'other')}"
    parts = [
        paragraph(element("b", location), at),
        paragraph(f"branches: {told}"),
    ]
    if counts:
        rows = ((key, f"{rows:,}") for key, rows in counts.items())
        parts.append(table(("type", "rows"), rows, numbers=[1]))
    return joined([*parts, diagram_of(catalog)])


def unread_html(heading: str, reason: str) -> Html:
    """A graph that does not show itself, and why."""
    return joined([paragraph(element("b", heading)), paragraph(reason)])


class ShownFinding(Protocol):
    """Something that is not as it should be."""

    @property
    def level(self) -> str:
        """How bad it is."""

    @property
    def subject(self) -> str:
        """What is."""

    @property
    def message(self) -> str:
        """In which way."""

    @property
    def advice(self) -> str:
        """What to do."""


class ShownTypeStatus(Protocol):
    """How a type is."""

    @property
    def type_key(self) -> str:
        """Which one."""

    @property
    def rows(self) -> int:
        """How many entities."""

    @property
    def fragments(self) -> int:
        """In how many pieces."""

    @property
    def indexes_complete(self) -> int:
        """Indexes that know every row."""

    @property
    def indexes_partial(self) -> int:
        """Indexes that do not."""

    @property
    def indexes_pending(self) -> int:
        """Indexes that are to be built."""

    @property
    def live_bytes(self) -> int:
        """What its newest state needs."""

    @property
    def level(self) -> str:
        """What that comes to."""


def status_html(
    heading: str, types: Sequence[ShownTypeStatus], findings: Sequence[ShownFinding]
) -> Html:
    """The health of a graph."""
    heads = ("type", "rows", "fragments", "indexes", "bytes", "")
    rows = (
        (
            one.type_key,
            f"{one.rows:,}",
            f"{one.fragments:,}",
            f"{one.indexes_complete} of {_indexes(one)}",
            f"{one.live_bytes:,}",
            one.level,
        )
        for one in types
    )
    parts = [paragraph(heading), table(heads, rows, numbers=range(1, 5))]
    if findings:
        told = ((one.level, one.subject, one.message, one.advice) for one in findings)
        parts.append(table(("", "what", "finding", "advice"), told))
    return joined(parts)


def _indexes(one: ShownTypeStatus) -> int:
    return one.indexes_complete + one.indexes_partial + one.indexes_pending
