"""Limited tables: a pinned version of which some columns or rows are not shown.

Owns that nobody reads more through it than what is shown: every scan passes by the rows, and the
stored dataset is not handed out. What cannot be done without the whole is denied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from omnigraph.errors import PolicyDenied
from omnigraph.rows.sql_conditions import Condition
from omnigraph.rows.stored_columns import StoredColumns
from omnigraph.storage.tables.row_ids import RowIds
from omnigraph.storage.tables.table import ROW_ID, NamedScan, Table, TablePin

if TYPE_CHECKING:
    import lance

# What a scan may be told beside columns, filter and limit: none of it finds rows by a side door.
_OPTIONS = frozenset(
    {"with_row_id", "with_row_address", "batch_size", "batch_size_bytes", "blob_handling"}
)


@dataclass(frozen=True, slots=True)
class LimitedTable(Table):
    """A table without the columns and rows that are hidden; its pin counts the rows it shows.

    ``digest`` tells two that hide different rows of one version.
    """

    hidden: frozenset[str] = field(default=frozenset(), repr=False)
    """Names of columns."""
    digest: str = ""
    stored_pin: TablePin = field(default=TablePin(0, None, 0), repr=False)
    rows: RowIds | None = field(default=None, compare=False, repr=False)
    """The rows that are shown, None for all of them."""

    @classmethod
    def of(
        cls, whole: Table, hidden: frozenset[str], rows: RowIds | None, digest: str
    ) -> LimitedTable:
        """What is shown of a table."""
        count = whole.pin.row_count if rows is None else rows.count
        pin = TablePin(whole.pin.version, whole.pin.transaction_uuid, count)
        named = whole.columns
        columns = StoredColumns(
            tuple(one for one in named.pairs if one[0] not in hidden),
            tuple(one for one in named.shown if one[0] not in hidden),
        )
        return cls(whole.location, pin, columns, hidden, digest, whole.pin, rows)

    @property
    def is_whole(self) -> bool:
        """It is not."""
        return False

    @property
    def stored(self) -> Table:
        """The whole of it, for those who look at the rows that are shown alone."""
        return Table(self.location, self.stored_pin, self.columns)

    @property
    def shown_rows(self) -> RowIds | None:
        """The rows that are shown."""
        return self.rows

    def dataset(self) -> lance.LanceDataset:
        """Denied: it would show everything."""
        deny()

    @property
    def schema(self) -> pa.Schema:
        """The columns that are shown, by name."""
        whole = self.stored.schema
        return pa.schema([each for each in whole if each.name not in self.hidden], whole.metadata)

    def at(self, pin: TablePin) -> Table:  # noqa: ARG002 - whatever it is
        """Denied: of another version nobody has said which rows are shown."""
        deny()

    def scanner(
        self,
        columns: Sequence[str] | None,
        filter: Condition | str | None = None,  # noqa: A002 - pyarrow's and Lance's word
        **options: Any,
    ) -> NamedScan:
        """A scan of what is shown, with those options that find no rows of their own."""
        limit = options.pop("limit", None)
        if not _OPTIONS.issuperset(options) or not self.hidden.isdisjoint(columns or ()):
            deny()
        wanted = self.schema.names if columns is None else columns
        if self.rows is None:
            return self.stored.scanner(wanted, filter, limit=limit, **options)
        with_row_id = bool(options.pop("with_row_id", False))
        scan = self.stored.scanner(wanted, filter, with_row_id=True, **options)
        return _LimitedScan(
            scan.scanner, scan.columns, scan.names, self.rows, limit, with_row_id=with_row_id
        )


@dataclass(frozen=True, slots=True)
class _LimitedScan(NamedScan):
    """A scan that drops the rows that are not shown."""

    rows: RowIds
    limit: int | None
    with_row_id: bool

    def to_table(self) -> pa.Table:
        """All rows that are shown."""
        from omnigraph.storage.budget import need

        batches, size = [], 0
        for batch in self._shown():
            batches.append(batch)
            size += batch.nbytes
            need(size)
        schema = self.scanner.projected_schema if not batches else batches[0].schema
        return self._named(pa.Table.from_batches(batches, schema)).slice(0, self.limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The same, batch by batch."""
        left = self.limit
        for batch in self._shown():
            found = self._named(batch) if left is None else self._named(batch).slice(0, left)
            yield found
            if left is not None:
                left -= found.num_rows
                if left <= 0:
                    return

    def count_rows(self) -> int:
        """How many are shown."""
        counted: int = sum(batch.num_rows for batch in self._shown())
        return counted if self.limit is None else min(counted, self.limit)

    def _shown(self) -> Iterator[pa.RecordBatch]:
        for batch in self.scanner.to_batches():
            held = self.rows.hold(batch.column(ROW_ID).to_numpy().astype("int64"))
            yield batch if held.all() else batch.filter(pa.array(held))

    def _named(self, rows: Any) -> Any:
        found = self.columns.named(rows, self.names)
        return found if self.with_row_id else found.drop_columns([ROW_ID])


def deny() -> NoReturn:
    """Say that something cannot be done without what is hidden."""
    raise PolicyDenied(
        "policy denied this to an actor from whom types, properties or rows are hidden: "
        "it cannot be done without the whole table"
    )
