"""Tables: one Lance dataset at one pinned version.

Owns creation and reading. A table never changes: writing (staging.py and its
siblings) gives a new pin. Must never follow "the latest version".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from omnigraph.errors import StorageError
from omnigraph.rows.sql_conditions import Condition, SqlCondition
from omnigraph.storage.objects import faults
from omnigraph.storage.objects.errors import classify, storage_errors
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import open_pin, shared_session

if TYPE_CHECKING:
    import lance
    import pyarrow as pa

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


@dataclass(frozen=True, slots=True)
class Table:
    """A table as of a pin."""

    location: Location
    pin: TablePin

    def dataset(self) -> lance.LanceDataset:
        """The opened version, for what this class does not offer."""
        return open_pin(self.location, self.pin.version)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return _schema(self)

    def at(self, pin: TablePin) -> Table:
        """The same table as of another pin."""
        return Table(self.location, pin)

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Condition | None = None,  # noqa: A002 - pyarrow's and Lance's word
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        with_blobs: bool = False,
        limit: int | None = None,
    ) -> pa.Table:
        """The rows that pass the filter (all columns when none are named), in memory.

        A blob is a description of where it lies, unless ``with_blobs`` asks for its bytes.
        """
        in_memory = not _is_pushed(self, filter)
        read = columns if not in_memory or columns is None else _with_plain(columns, self.schema)
        with storage_errors(f"scanning {self.location}"):
            rows = self._scanner(
                read,
                None if in_memory else filter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                with_blobs=with_blobs,
                limit=None if in_memory else limit,
            ).to_table()
        if not in_memory:
            return rows
        extra = [name for name in (ROW_ID, ROW_ADDRESS) if name in rows.column_names]
        shown = rows.column_names if columns is None else [*columns, *extra]
        return rows.filter(filter).select(shown).slice(0, limit)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        filter: Condition | None = None,  # noqa: A002 - pyarrow's and Lance's word
        *,
        with_row_id: bool = False,
        with_row_address: bool = False,
        with_blobs: bool = False,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The same as `scan`, batch by batch."""
        if not _is_pushed(self, filter):
            rows = self.scan(
                columns,
                filter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                with_blobs=with_blobs,
                limit=limit,
            )
            yield from rows.to_batches()
            return
        with storage_errors(f"scanning {self.location}"):
            scanner = self._scanner(
                columns,
                filter,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                with_blobs=with_blobs,
                limit=limit,
            )
            yield from scanner.to_batches()

    def count(self, filter: Condition | None = None) -> int:  # noqa: A002 - as above
        """The number of rows, or of those that pass the filter; the former costs nothing."""
        if filter is None:
            return self.pin.row_count
        if not _is_pushed(self, filter):
            return int(self.scan(["id"], filter).num_rows)
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
    ) -> lance.LanceScanner:
        return self.dataset().scanner(
            columns=None if columns is None else list(columns),
            filter=where.text if isinstance(where, SqlCondition) else where,
            with_row_id=with_row_id,
            with_row_address=with_row_address,
            blob_handling="all_binary" if with_blobs else None,
            limit=limit,
        )


@lru_cache(maxsize=256)
def _schema(table: Table) -> pa.Schema:
    """Lance makes it anew each time, column by column."""
    return table.dataset().schema


@lru_cache(maxsize=4096)
def column_names(table: Table) -> frozenset[str]:
    """The columns of a pinned version, by name; asking Lance takes longer."""
    return frozenset(table.schema.names)


@lru_cache(maxsize=4096)
def is_filterable(table: Table) -> bool:
    """Whether Lance can evaluate Arrow expressions on a table.

    A list of some types anywhere in it makes that impossible, even when nobody asks
    about the list; then rows are read and filtered in memory.
    """
    import pyarrow as pa

    opaque = (pa.uint32(), pa.uint64())
    return not any(
        pa.types.is_list(column.type) and column.type.value_type in opaque
        for column in table.schema
    )


def _is_pushed(table: Table, condition: Condition | None) -> bool:
    """Whether Lance evaluates a condition while it reads."""
    return condition is None or isinstance(condition, SqlCondition) or is_filterable(table)


def _with_plain(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    """Some columns, and every other one that a filter may look at."""
    import pyarrow as pa

    plain = [
        column.name
        for column in schema
        if not pa.types.is_fixed_size_list(column.type)
        and not isinstance(column.type, pa.BaseExtensionType)
    ]
    return list(dict.fromkeys([*columns, *plain]))


def create_table(
    location: Location, schema: pa.Schema, *, key: str = "id", transaction: str | None = None
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
    return TablePin(1, wanted.uuid, 0)


def _keyed(schema: pa.Schema, key: str) -> pa.Schema:
    position = schema.get_field_index(key)
    if position < 0:
        raise StorageError(f"a table needs the column {key!r}", kind="permanent")
    field = schema.field(position).with_nullable(False)  # noqa: FBT003 - pyarrow's own signature
    metadata = {**(field.metadata or {}), _PRIMARY_KEY: b"true"}
    return schema.set(position, field.with_metadata(metadata))
