"""The recovery audit: what became of every write that did not finish its own story.

Owns the rows of `_graph_commit_recoveries.lance`. Rows are only ever added; a
sweep that died after recording records again, and the first row counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.journal import Journal

TABLE_NAME = "_graph_commit_recoveries.lance"

RecoveryKind = Literal["RolledForward", "RolledBack", "OrphanedBranchDiscarded"]

_COLUMNS = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("sidecar_writer_kind", pa.string(), nullable=False),
        pa.field("per_table_outcomes_json", pa.string(), nullable=False),
        pa.field("created_at", pa.timestamp("us"), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The version of a table before and after; the same when nothing became visible."""

    table_key: str
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """One finished story; ``graph_commit_id`` is the commit the write had planned."""

    graph_commit_id: str
    recovery_kind: RecoveryKind
    recovery_for_actor: str | None
    operation_id: str
    writer_kind: str
    tables: tuple[TableOutcome, ...]
    created_at: int
    """When it was finished, in microseconds since the epoch."""


def record(root: Location, recovery: Recovery) -> None:
    """Add a row; the table is made with the first one."""
    row = {
        "graph_commit_id": [recovery.graph_commit_id],
        "recovery_kind": [recovery.recovery_kind],
        "recovery_for_actor": [recovery.recovery_for_actor],
        "operation_id": [recovery.operation_id],
        "sidecar_writer_kind": [recovery.writer_kind],
        "per_table_outcomes_json": [msgspec.json.encode(recovery.tables).decode()],
        "created_at": [recovery.created_at],
    }
    _journal(root).append(pa.table(row, schema=_COLUMNS))


def recoveries(root: Location) -> list[Recovery]:
    """Every recovery of a graph, newest first."""
    first: dict[str, Recovery] = {}
    rows = _journal(root).read()
    rows = rows.set_column(
        rows.column_names.index("created_at"), "created_at", rows["created_at"].cast(pa.int64())
    )
    for row in rows.to_pylist():
        found = _read(row)
        first.setdefault(found.operation_id, found)
    # Turned round at the end, so that of one moment the later row comes first.
    return sorted(first.values(), key=lambda found: found.created_at)[::-1]


def _journal(root: Location) -> Journal:
    return Journal(root.join(TABLE_NAME), _COLUMNS, key="operation_id")


def _read(row: dict[str, Any]) -> Recovery:
    try:
        return msgspec.convert(
            {
                **row,
                "writer_kind": row["sidecar_writer_kind"],
                "tables": msgspec.json.decode(row["per_table_outcomes_json"]),
            },
            Recovery,
        )
    except msgspec.MsgspecError as error:
        raise StorageError(
            f"{TABLE_NAME} holds a row that cannot be read: operation {row['operation_id']} "
            f"({error})",
            kind="permanent",
        ) from error
