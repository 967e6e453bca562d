"""The effect of a write on one table: what was written, and the version that shows it.

Owns its one shape, from staging to the publish request. Plain data: it is staged, moved to a
newer base and published as it is. Nothing here reads or writes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.manifest.entries import TableIdentity
from omnigraph.manifest.publish_request import AdvanceTable
from omnigraph.storage.tables.table import TablePin
from omnigraph.storage.tables.write_rows import WrittenRows


@dataclass(frozen=True, slots=True)
class TableEffect:
    """One table before and after: the version it was built on, and the one that was made.

    ``written`` are the rows in files. ``gone`` are the ids of stored rows that are replaced or
    deleted. ``replaces_all`` makes the written rows the whole table.
    """

    type_key: str
    identity: TableIdentity
    base_version: int
    base_pin: TablePin
    pin: TablePin
    written: WrittenRows = field(default_factory=WrittenRows)
    gone: pa.Array = field(default_factory=lambda: pa.array([], pa.string()), compare=False)
    replaces_all: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether the table stays as it was."""
        return self.pin == self.base_pin

    @property
    def advance(self) -> AdvanceTable:
        """What the manifest is asked for."""
        return AdvanceTable(self.identity, self.base_version, self.pin)
