"""Detached commits: a new version of a table that nothing refers to yet.

Owns the one call that makes versions. Must never move a table's own latest
version: a pin is found by whoever was told its id, and by nobody else.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.storage.objects import faults
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.handles import handles, open_alone
from omnigraph.storage.tables.table import Table, TablePin

if TYPE_CHECKING:
    from lance import LanceOperation
    from lance.dataset import Transaction


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a commit carries besides its effect: an id of the caller's choice, and properties.

    The id names the transaction, it does not make it idempotent: committing
    twice makes two versions.
    """

    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    properties: Mapping[str, str] = field(default_factory=dict)


def commit_detached(
    table: Table, operation: LanceOperation.BaseOperation, stamp: Stamp | None
) -> TablePin:
    """Apply an operation to a table's pinned version and pin the result."""
    from lance.dataset import LanceDataset, Transaction

    stamp = stamp or Stamp()
    transaction = Transaction(
        read_version=table.pin.version,
        operation=operation,
        uuid=stamp.uuid,
        transaction_properties=dict(stamp.properties),
    )
    dataset = table.dataset()
    faults.reach("before_commit", table.location.uri)
    with storage_errors(f"committing to {table.location}"):
        # The retries find an unused random id; there is nobody to lose a race against, and with
        # none allowed every commit fails.
        committed = LanceDataset.commit(dataset, transaction, detached=True)
        rows = committed.count_rows()
    faults.reach("after_commit", table.location.uri)
    handles.keep(table.location, committed)
    return TablePin(committed.version, stamp.uuid, rows)


def made_by(transaction: Transaction) -> Stamp:
    """The stamp that a transaction carries."""
    return Stamp(transaction.uuid, dict(transaction.transaction_properties or {}))


def transaction_of(table: Table) -> Transaction | None:
    """The transaction that made a pinned version, where Lance can read it."""
    with storage_errors(f"reading the transaction of {table.location}"):
        # A handle of its own: while Lance reads a transaction, nobody else can use the handle.
        dataset = open_alone(table.location, table.pin.version)
        try:
            return dataset.read_transaction(table.pin.version)
        except TypeError:
            # Lance cannot read back its own compaction of an indexed table.
            return None
