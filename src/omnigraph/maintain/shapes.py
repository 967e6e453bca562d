"""Shapes: what a pinned table looks like to maintenance.

Owns the way from a stored version to the measures of wanted.py. Only reads, and no rows but
where a choice of an index depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.maintain.index_choice import NOT_BUILT, TypeIntent, index_states
from omnigraph.maintain.reports import IndexState
from omnigraph.maintain.wanted import IndexShape, TableShape
from omnigraph.storage.tables.fragments import fragment_sizes
from omnigraph.storage.tables.table import Table

NEW = 1
"""The version that a table is created as, without rows."""


def is_untouched(table: Table) -> bool:
    """Whether nobody has ever written to a table: there is nothing to look at."""
    return table.pin.version == NEW and table.pin.row_count == 0


def shape_of(
    type_key: str, table: Table, intent: TypeIntent | None, live_bytes: int | None = None
) -> TableShape:
    """One table of a snapshot; without an intent its indexes are left out.

    ``live_bytes`` are those of its files, if they were added up: else those of its data count.
    """
    if is_untouched(table):
        return TableShape(type_key, 0, live_bytes=live_bytes or 0)
    sizes = fragment_sizes(table)
    states = () if intent is None else tuple(index_states(table, intent))
    return TableShape(
        type_key,
        table.pin.row_count,
        tuple(one.part.rows + one.deleted for one in sizes),
        sum(one.deleted for one in sizes),
        tuple(index_shapes(states)),
        sum(one.bytes for one in sizes) if live_bytes is None else live_bytes,
    )


def index_shapes(states: Iterable[IndexState]) -> Iterable[IndexShape]:
    """The indexes that are there or wanted, as far as something may be due for them."""
    for state in states:
        if state.state == "none":
            continue
        is_missing = state.state == "pending" and state.reason == NOT_BUILT
        yield IndexShape(
            state.property,
            state.kind,
            is_missing or state.state == "partial",
            state.rows_covered,
            state.rows_total,
            state.uncovered_fragments,
            state.state == "unasked",
        )
