"""Tables: one Lance dataset at one pinned version.

Owns creation, reading, and the one call that makes versions: a detached commit, which is found
by whoever was told its id and by nobody else. A table never changes: writing (write_rows.py and
its siblings) gives a new pin. Must never follow or move "the latest version".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.rows.sql_conditions import Condition, SqlCondition
from omnigraph.rows.stored_columns import AS_NAMED, StoredColumns
from omnigraph.storage.objects import faults
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import handles, open_alone, open_pin, shared_session
from omnigraph.storage.tables.sealed_files import checksum_of_version

if TYPE_CHECKING:
    import lance
    import pyarrow as pa
    from lance import LanceOperation
    from lance.dataset import Transaction

    from omnigraph.storage.tables.row_ids import RowIds

ROW_ID = "_rowid"
ROW_ADDRESS = "_rowaddr"
FORMAT = "2.2"
# The Arrow extension type of a column of blobs.
BLOB = "lance.blob.v2"
_PRIMARY_KEY = b"lance-schema:unenforced-primary-key"


@dataclass(frozen=True, slots=True)
class TablePin:
    """One version of a table: its Lance version id, what wrote it, and how many rows it has."""

    version: int
    transaction_uuid: str | None
    row_count: int
    checksum: str | None = field(default=None, compare=False)
    """Of what the version says of itself, if it was noted when it was made."""


class ScanExtras(TypedDict, total=False):
    """What a scan returns besides the columns: none of it unless it is asked for."""

    with_row_id: bool
    with_row_address: bool
    with_blobs: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table as of a pin.

    Columns are asked for, and rows are read and written, by the names that ``columns`` knows;
    a condition is about columns as they are stored.
    """

    location: Location
    pin: TablePin
    columns: StoredColumns = AS_NAMED

    def dataset(self) -> lance.LanceDataset:
        """The opened version as it is stored, for what this class does not offer."""
        return open_pin(self.location, self.pin.version)

    @property
    def is_whole(self) -> bool:
        """Whether it shows all there is of the version."""
        return True

    @property
    def stored(self) -> Table:
        """All there is of the version."""
        return self

    @property
    def shown_rows(self) -> RowIds | None:
        """The rows that it shows, None for all of them."""
        return None

    @property
    def schema(self) -> pa.Schema:
        """The columns, by name."""
        return _schema(self)

    def at(self, pin: TablePin) -> Table:
        """The same table as of another pin."""
        return replace(self, pin=pin)

    def scanner(
        self,
        columns: Sequence[str] | None,
        filter: Condition | str | None = None,  # noqa: A002 - pyarrow's and Lance's word
        **options: Any,
    ) -> NamedScan:
        """A scan with any options of Lance; a filter that is a text is of numbers alone."""
        scanner = self.dataset().scanner(
            columns=self.columns.of_all(columns),
            filter=filter.text if isinstance(filter, SqlCondition) else filter,
            **options,
        )
        return NamedScan(scanner, self.columns, columns)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Condition | None = None,  # noqa: A002 - pyarrow's and Lance's word
        *,
        limit: int | None = None,
        **extras: Unpack[ScanExtras],
    ) -> pa.Table:
        """The rows that pass the filter (all columns when none are named), in memory.

        A blob is a description of where it lies, unless ``with_blobs`` asks for its bytes.
        """
        if _is_pushed(self, filter):
            with storage_errors(f"scanning {self.location}"):
                return self._scanner(columns, filter, limit=limit, **extras).to_table()
        stored = replace(self, columns=AS_NAMED)
        read = columns if columns is None else _with_plain(self, columns)
        with storage_errors(f"scanning {self.location}"):
            rows = stored._scanner(read, None, **extras).to_table()  # noqa: SLF001 - its own
        rows = self.columns.named(rows.filter(filter).slice(0, limit), columns)
        extra = [name for name in (ROW_ID, ROW_ADDRESS) if name in rows.column_names]
        return rows.select([*(self.schema.names if columns is None else columns), *extra])

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Condition | None = None,  # noqa: A002 - pyarrow's and Lance's word
        *,
        limit: int | None = None,
        **extras: Unpack[ScanExtras],
    ) -> Iterator[pa.RecordBatch]:
        """The same as `scan`, batch by batch."""
        if not _is_pushed(self, filter):
            yield from self.scan(columns, filter, limit=limit, **extras).to_batches()
            return
        with storage_errors(f"scanning {self.location}"):
            yield from self._scanner(columns, filter, limit=limit, **extras).to_batches()

    def count(self, filter: Condition | None = None) -> int:  # noqa: A002 - as above
        """The number of rows, or of those that pass the filter; the former costs nothing."""
        if filter is None:
            return self.pin.row_count
        if not _is_pushed(self, filter):
            return int(self.scan([ID], filter).num_rows)
        with storage_errors(f"counting {self.location}"):
            return int(self._scanner([], filter, with_row_id=True).count_rows())

    def _scanner(
        self,
        columns: Sequence[str] | None,
        where: Condition | None,
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        with_blobs: bool = False,
        limit: int | None = None,
    ) -> NamedScan:
        return self.scanner(
            columns,
            where,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling="all_binary" if with_blobs else None,
            limit=limit,
        )


@dataclass(frozen=True, slots=True)
class NamedScan:
    """A scan whose rows have names for columns."""

    scanner: lance.LanceScanner
    columns: StoredColumns
    names: Sequence[str] | None

    def to_table(self) -> pa.Table:
        """All rows, so far as the query at work may hold them."""
        import pyarrow as pa

        from omnigraph.storage.budget import need

        reader = self.scanner.to_reader()
        batches: list[pa.RecordBatch] = []
        size = 0
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            need(size)
        return self.columns.named(pa.Table.from_batches(batches, reader.schema), self.names)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, batch by batch."""
        batches = self.scanner.to_batches()
        if not self.columns:
            return batches
        return (self.columns.named(batch, self.names) for batch in batches)

    def count_rows(self) -> int:
        """How many rows there are."""
        return self.scanner.count_rows()


@lru_cache(maxsize=256)
def _schema(table: Table) -> pa.Schema:
    """Lance makes it anew each time, column by column."""
    return table.columns.fields(table.dataset().schema)


@lru_cache(maxsize=1024)
def column_names(table: Table) -> frozenset[str]:
    """The names of a pinned version's columns; asking Lance takes longer."""
    return frozenset(table.schema.names)


@lru_cache(maxsize=1024)
def is_filterable(table: Table) -> bool:
    """Whether Lance can evaluate Arrow expressions on a table.

    A list of some types anywhere in it makes that impossible, even when nobody asks
    about the list; then rows are read and filtered in memory.
    """
    import pyarrow as pa

    opaque = (pa.uint32(), pa.uint64())
    return not any(
        pa.types.is_list(column.type) and column.type.value_type in opaque
        for column in table.stored.dataset().schema
    )


def _is_pushed(table: Table, condition: Condition | None) -> bool:
    """Whether Lance evaluates a condition while it reads."""
    return condition is None or isinstance(condition, SqlCondition) or is_filterable(table)


def _with_plain(table: Table, names: Sequence[str]) -> list[str]:
    """The stored columns of some names, and every other one that a filter may look at."""
    import pyarrow as pa

    plain = [
        column.name
        for column in table.stored.dataset().schema
        if not pa.types.is_fixed_size_list(column.type)
        and not isinstance(column.type, pa.BaseExtensionType)
    ]
    return list(dict.fromkeys([*map(table.columns.of, names), *plain]))


def create_table(
    location: Location, schema: pa.Schema, *, key: str = ID, transaction: str | None = None
) -> TablePin:
    """Create an empty table at version 1, with stable row ids and an unenforced primary key.

    Whoever comes second gets a StorageError of kind "precondition" and has
    changed nothing: a plain create would let it replace the first one's table.
    """
    from lance.dataset import LanceDataset, Transaction
    from lance.fragment import write_fragments

    session = shared_session()
    options = location.storage_options or None
    with storage_errors(f"creating {location}"):
        staged = write_fragments(
            _keyed(schema, key).empty_table(),
            location.uri,
            mode="create",
            return_transaction=True,
            enable_stable_row_ids=True,
            data_storage_version=FORMAT,
            storage_options=options,
            session=session,
        )
        wanted = Transaction(0, staged.operation, uuid=transaction or str(uuid.uuid4()))
        faults.reach("before_commit", location.uri)
        try:
            created = LanceDataset.commit(
                location.uri,
                wanted,
                storage_options=options,
                max_retries=0,
                enable_stable_row_ids=True,
            )
        except (OSError, ValueError) as error:
            if classify(error) != "not_found":
                raise
            # Lance saw the other one's table and looks for what happened since version 0.
            raise StorageError(f"{location} exists already", kind="precondition") from error
    faults.reach("after_commit", location.uri)
    if created.version != 1 or not created.has_stable_row_ids:
        raise StorageError(f"{location} was not created as it should be", kind="permanent")
    # The handle is not kept: opened by address, it has a session of its own.
    return TablePin(1, wanted.uuid, 0, checksum_of_version(created))


def _keyed(schema: pa.Schema, key: str) -> pa.Schema:
    position = schema.get_field_index(key)
    if position < 0:
        raise StorageError(f"a table needs the column {key!r}", kind="permanent")
    field = schema.field(position).with_nullable(False)  # noqa: FBT003 - pyarrow's own signature
    metadata = {**(field.metadata or {}), _PRIMARY_KEY: b"true"}
    return schema.set(position, field.with_metadata(metadata))


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
        rows, checksum = committed.count_rows(), checksum_of_version(committed)
    faults.reach("after_commit", table.location.uri)
    handles.keep(table.location, committed)
    return TablePin(committed.version, stamp.uuid, rows, checksum)


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
