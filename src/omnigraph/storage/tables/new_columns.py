"""New columns: written into files of their own beside the rows that are there, then committed.

Owns how a column is made for a fragment, from nothing, a constant or another column, and how
files that were written for one version serve a later one: a fragment that both have needs its
column only once. Rows are neither moved nor written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.rows.stored_columns import ShownAs
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.columns import extended
from omnigraph.storage.tables.sealed_files import write_sealed_file
from omnigraph.storage.tables.table import FORMAT, Stamp, Table, TablePin, commit_detached

if TYPE_CHECKING:
    import lance

CONCURRENCY = 4
# A column is made of so many rows at a time.
PIECE = 131_072


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A stored column: the values of ``source`` in its type, ``fill`` where there are none.

    Without either it is null in every row, and no file is written for it.
    """

    field: pa.Field
    source: str | None = None
    fill: pa.Scalar | None = None

    @property
    def is_written(self) -> bool:
        """Whether it has files."""
        return self.source is not None or self.fill is not None

    def of(self, values: pa.Array | None, rows: int) -> pa.Array:
        """Its values, from those of its source, for so many rows."""
        return ShownAs(self.field.type, self.fill).of(values, rows)


@dataclass(frozen=True, slots=True)
class WrittenColumns:
    """The files of new columns, by the first data file of the fragment they belong to.

    Plain data: other processes may write and one commit.
    """

    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The files, below the table's directory."""
        return tuple(f"data/{json.loads(file)['path']}" for file in self.files.values())

    def joined(self, others: Mapping[str, str]) -> WrittenColumns:
        """With the files of other fragments."""
        return WrittenColumns({**self.files, **others})


def fragments_without(table: Table, written: WrittenColumns) -> list[int]:
    """The fragments of a version that have no file of the new columns yet.

    Files for a version whose next field has another id are of no use to this one.
    """
    dataset = table.dataset()
    with storage_errors(f"listing the fragments of {table.location}"):
        first_id = dataset.max_field_id + 1
        return [
            fragment.fragment_id
            for fragment in dataset.get_fragments()
            if (file := written.files.get(_first_file(fragment))) is None
            or json.loads(file)["fields"][0] != first_id
        ]


def write_columns(
    table: Table, columns: Sequence[NewColumn], fragments: Sequence[int]
) -> dict[str, str]:
    """Write new columns of some fragments; the files, by the first data file of each."""
    made = [column for column in columns if column.is_written]
    if not made or not fragments:
        return {}
    dataset = table.dataset()
    first_id = dataset.max_field_id + 1

    def write(number: int) -> tuple[str, str]:
        fragment = dataset.get_fragment(number)
        if fragment is None:
            raise AssertionError("a version is asked for the fragments that it has")
        return _first_file(fragment), _write(table, fragment, made, first_id)

    with (
        storage_errors(f"writing columns of {table.location}"),
        ThreadPoolExecutor(CONCURRENCY) as pool,
    ):
        return dict(pool.map(write, fragments))


def commit_columns(
    table: Table, columns: Sequence[NewColumn], written: WrittenColumns, stamp: Stamp | None = None
) -> TablePin:
    """Add columns whose files were written, and those that are null everywhere."""
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    if not columns:
        return table.pin
    dataset = table.dataset()
    if taken := {column.field.name for column in columns} & set(dataset.schema.names):
        raise StorageError(f"there is a column {min(taken)!r} already", kind="permanent")
    # Those with files first: so it is known which field ids the files have.
    ordered = sorted(columns, key=lambda column: not column.is_written)
    fields = pa.schema([column.field for column in ordered])
    has_files = any(column.is_written for column in columns)
    with storage_errors(f"adding columns to {table.location}"):
        schema = extended(dataset.lance_schema, fields, dataset.max_field_id)
        fragments = []
        for fragment in dataset.get_fragments():
            known = fragment.metadata
            if has_files:
                body = known.to_json()
                body["files"].append(json.loads(written.files[_first_file(fragment)]))
                known = FragmentMetadata.from_json(json.dumps(body))
            fragments.append(known)
    return commit_detached(table, LanceOperation.Merge(fragments, schema), stamp)


def _first_file(fragment: lance.LanceFragment) -> str:
    return str(fragment.metadata.files[0].path)


def _write(
    table: Table, fragment: lance.LanceFragment, columns: Sequence[NewColumn], first_id: int
) -> str:
    """One file with the new columns of a fragment, described as its metadata will have it."""
    from lance.file import LanceFileWriter

    schema = pa.schema([column.field for column in columns])

    def write(path: str) -> None:
        with LanceFileWriter(path, schema, version=FORMAT) as writer:
            for batch in _pieces(table, fragment, columns, schema):
                writer.write_batch(batch)

    name, size = write_sealed_file(table.location, write)
    major, minor = (int(part) for part in FORMAT.split("."))
    described: dict[str, Any] = {
        "path": name,
        "fields": [first_id + at for at in range(len(columns))],
        "column_indices": list(range(len(columns))),
        "file_major_version": major,
        "file_minor_version": minor,
        "file_size_bytes": size,
        "base_id": None,
    }
    return json.dumps(described)


def _pieces(
    table: Table, fragment: lance.LanceFragment, columns: Sequence[NewColumn], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The new columns of all rows that a fragment was written with, deleted ones included."""
    sources = list(dict.fromkeys(column.source for column in columns if column.source))
    if not sources:
        for start in range(0, fragment.physical_rows, PIECE):
            rows = min(PIECE, fragment.physical_rows - start)
            yield pa.record_batch([column.of(None, rows) for column in columns], schema)
        return
    scanner = table.dataset().scanner(
        columns=sources,
        with_row_id=True,
        include_deleted_rows=True,
        fragments=[fragment],
        scan_in_order=True,
        batch_size=PIECE,
    )
    for batch in scanner.to_batches():
        values = [
            column.of(batch.column(column.source) if column.source else None, batch.num_rows)
            for column in columns
        ]
        yield pa.record_batch(values, schema)
