"""Bulk changes: rows that others have written to files already, and checked.

Owns the shape in which a Spark job hands its work to the writer, and committing it to a
base. Never reads the rows: that they obey the rules is the word of whoever hands them over,
and what that word depends on stands in the read set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.manifest.entries import Commit
from omnigraph.storage.tables.detached import Stamp
from omnigraph.storage.tables.table import ROW_ADDRESS, TablePin
from omnigraph.storage.tables.write_rows import WrittenRows, apply_rows, overwrite_fragments
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.publish_plan import TableEffect
from omnigraph.write.recovery.intents import WriterKind


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """What happens to one type: written rows come, the stored rows ``gone`` go.

    ``gone`` has the ids of those rows and their addresses in the base. With ``adopted``
    another version of the table takes the place of the base's, before anything else.
    """

    type_key: str
    written: WrittenRows
    gone: pa.Table | None = field(default=None, compare=False)
    replaces_all: bool = False
    adopted: TablePin | None = None


@dataclass(frozen=True, slots=True)
class StagedChanges:
    """What a bulk write does to each type it touches."""

    tables: tuple[StagedFiles, ...]
    repeatable: bool
    writer_kind: WriterKind = "Load"
    ancestors: tuple[Commit, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing happens at all."""
        return not self.tables


def stage_bulk(
    changes: StagedChanges, base: Base, stamp: Callable[[], Stamp]
) -> tuple[TableEffect, ...]:
    """Commit every table's written rows to the base, visible to nobody."""
    return tuple(_stage(table, base, stamp()) for table in changes.tables)


def _stage(table: StagedFiles, base: Base, stamp: Stamp) -> TableEffect:
    found = base.table(table.type_key)
    start = found.table if table.adopted is None else found.table.at(table.adopted)
    ids = pa.array([], pa.string())
    if table.replaces_all:
        pin = overwrite_fragments(start, table.written, stamp)
    elif table.gone is None:
        pin = apply_rows(start, table.written, (), stamp)
    else:
        ids = table.gone.column("id").combine_chunks()
        pin = apply_rows(start, table.written, table.gone.column(ROW_ADDRESS), stamp)
    reach("table_staged", table.type_key)
    return TableEffect(
        table.type_key,
        found.identity,
        found.version,
        found.table.pin,
        pin,
        table.written,
        ids,
        table.replaces_all,
    )
