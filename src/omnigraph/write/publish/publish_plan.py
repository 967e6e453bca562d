"""The publish plan: what the door makes visible, as plain data.

Owns its shape. A plan names what a write was built on and what it made, table by
table; the same plan is rebased, retried and recorded. Nothing here reads or writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.manifest.entries import Commit, TableIdentity
from omnigraph.manifest.publish_request import (
    AdvanceTable,
    ExactHead,
    PendingCommit,
    PublishRequest,
)
from omnigraph.storage.tables.table import TablePin
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.publish.commit_stamp import OperationClass


@dataclass(frozen=True, slots=True)
class TableEffect:
    """One table's effect: rows written to files, and the version they were committed as.

    ``gone`` are the ids of stored rows that are replaced or deleted. ``replaces_all``
    makes the written rows the whole table.
    """

    type_key: str
    identity: TableIdentity
    base_version: int
    base_pin: TablePin
    pin: TablePin
    written: WrittenRows
    gone: pa.Array = field(default_factory=lambda: pa.array([], pa.string()), compare=False)
    replaces_all: bool = False


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """One atomic step of a branch, ready for the door."""

    branch: str
    built_on: ExactHead
    commit: PendingCommit
    operation_id: str
    tables: tuple[TableEffect, ...]
    class_: OperationClass = "logical"
    conditional: bool = False
    """The head it was built on is a condition of the caller, not only of the build."""
    ancestors: tuple[Commit, ...] = ()
    """What a merge brings along of the history of its source."""

    def request(self) -> PublishRequest:
        """What the manifest is asked for."""
        return PublishRequest(
            self.commit,
            tuple(
                AdvanceTable(table.identity, table.base_version, table.pin)
                for table in self.tables
                if table.pin != table.base_pin
            ),
            precondition=self.built_on,
            ancestors=self.ancestors,
        )

    def on(self, head: ExactHead, tables: tuple[TableEffect, ...]) -> PublishPlan:
        """The same step on a newer head."""
        return replace(self, built_on=head, tables=tables)
