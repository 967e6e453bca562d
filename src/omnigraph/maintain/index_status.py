"""Index status: how much of every table its indexes cover, and what is missing and why.

Owns the rendering of choices as states. Only looks.
"""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.maintain.index_choice import IndexDecision, choose
from omnigraph.maintain.index_intent import TypeIntent, intents_of
from omnigraph.maintain.reports import Coverage, IndexState, IndexStatus
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.indexes.table_indexes import fragment_rows
from omnigraph.storage.tables.table import Table

NOT_BUILT = "not built yet"


def index_status(shown: Snapshot) -> IndexStatus:
    """The indexes of a snapshot."""
    states: list[IndexState] = []
    for key, intent in intents_of(catalog_of(shown.schema)).items():
        states += _states(shown.tables[key].pinned, intent)
    return IndexStatus(shown.branch, shown.commit_id, tuple(states))


def _states(table: Table, intent: TypeIntent) -> Iterator[IndexState]:
    for wanted in intent.wanted:
        yield _state(table, choose(table, wanted))
    for unbuilt in intent.unbuilt:
        rows = table.pin.row_count
        yield IndexState(
            intent.type_key, unbuilt.property, None, "none", 0, rows, reason=unbuilt.reason
        )


def _state(table: Table, choice: IndexDecision) -> IndexState:
    intent, index = choice.intent, choice.index
    rows = table.pin.row_count
    if index is None:
        return IndexState(
            intent.type_key,
            intent.property,
            choice.kind,
            "pending",
            0,
            rows,
            why=intent.why,
            reason=choice.reason or NOT_BUILT,
        )
    is_settled = choice.action is None and bool(index.covered)
    state: Coverage = "complete" if not index.uncovered or is_settled else "partial"
    return IndexState(
        intent.type_key,
        intent.property,
        index.kind,
        state,
        fragment_rows(table, index.covered),
        rows,
        len(index.uncovered),
        index.segments,
        index.size,
        intent.why,
        choice.reason,
    )
