"""Rewriting: the live rows of some fragments in new files, under the row ids that they have.

Owns writing them, as plain data that another process or a later version can commit, and
committing them where the fragments are still as they were. Nothing that is stored changes, and
deleted rows are left behind; what Lance notes of when a row was made or changed is lost, which
nothing of ours asks. Must never replace a fragment that has lost rows or got columns meanwhile.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.rows.stored_columns import AS_NAMED
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.fragments import FragmentPart, fragment_part
from omnigraph.storage.tables.fresh_rows import forget_rows, fresh_rows, note_rows
from omnigraph.storage.tables.table import ROW_ID, Stamp, Table, TablePin, commit_detached
from omnigraph.storage.tables.write_rows import conform, file_rows, stage_fragments

if TYPE_CHECKING:
    import numpy.typing as npt
    from lance.fragment import FragmentMetadata

# How much of the rows is read at a time: wide ones by fewer than narrow ones.
READ_ROWS = 32_768
READ_BYTES = 8 << 20
# Lance does not know how large a blob is before it has read it.
READ_BLOBS = 64

RowNumbers = list["npt.NDArray[np.uint64]"]


@dataclass(frozen=True, slots=True)
class OldFragment:
    """A fragment that goes: its rows, and all its files, for its columns may lie in several."""

    part: FragmentPart
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Fragments that go, and the files that their live rows were written into, as JSON."""

    old: tuple[OldFragment, ...]
    fragments: tuple[str, ...]

    @property
    def numbers(self) -> frozenset[int]:
        """The fragments that go, by number."""
        return frozenset(one.part.number for one in self.old)

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """The data file of each new fragment, and how many rows it has."""
        return file_rows(self.fragments)

    @property
    def new_files(self) -> tuple[str, ...]:
        """The data file of each new fragment."""
        return tuple(name for name, _ in self.sizes)

    @property
    def files(self) -> tuple[str, ...]:
        """The data files that were written, below the table's directory."""
        return tuple(f"data/{name}" for name in self.new_files)


def write_again(
    table: Table,
    parts: Sequence[FragmentPart],
    order_by: Sequence[str] = (),
) -> Rewritten:
    """Write the live rows of some fragments of a version, in the order of some stored columns.

    Without any, rows stay in the order they are in; `_rowid` stands alone, and for rows that
    fit in memory. Columns that no name leads to are left behind. Row ids that ascend without
    large gaps are noted in a few bytes; in any other order they take up to four bytes for each
    row, in every version from then on.
    """
    old = tuple(_old(table, part) for part in parts)
    row_ids: RowNumbers = []
    if sum(part.rows for part in parts) == 0:
        return Rewritten(old, ())
    stored = dataclasses.replace(table, columns=AS_NAMED)
    named = frozenset(table.columns.of_all(None) or stored.schema.names)
    schema = pa.schema([column for column in stored.schema if column.name in named])
    by_row_id = list(order_by) == [ROW_ID]

    def pieces() -> Iterator[pa.RecordBatch]:
        read = _live_rows(stored, schema, parts, () if by_row_id else order_by)
        for rows in [pa.concat_tables(read).sort_by(ROW_ID)] if by_row_id else read:
            row_ids.append(rows.column(ROW_ID).to_numpy())
            yield from rows.drop_columns([ROW_ID]).to_batches()

    written = stage_fragments(stored, pa.RecordBatchReader.from_batches(schema, pieces()))
    return Rewritten(old, _with_row_ids(written, np.concatenate(row_ids)))


def fold_rows(table: Table, parts: Sequence[FragmentPart]) -> tuple[Rewritten, pa.Table]:
    """Write the live rows of some small fragments in the order of their row ids.

    They are held in memory, and not read if this process has just written them. Also gives the
    rows by stored columns.
    """
    old = tuple(_old(table, part) for part in parts)
    stored = dataclasses.replace(table, columns=AS_NAMED)
    known = {part: fresh_rows(stored, _required(table, part)) for part in parts}
    read = [part for part, rows in known.items() if rows is None]
    found = [rows for rows in known.values() if rows is not None]
    found += _live_rows(stored, stored.schema, read, ()) if read else []
    # What ascends is noted in a few bytes, in every version from then on.
    ordered = pa.concat_tables(found).sort_by(ROW_ID).combine_chunks()
    rows = ordered.drop_columns([ROW_ID])
    fragments = stage_fragments(stored, rows)
    written = Rewritten(old, _with_row_ids(fragments, ordered.column(ROW_ID).to_numpy()))
    forget_rows(table, (part.file for part in parts))
    note_rows(table, written.sizes, rows)
    return written, rows


def still_there(table: Table, written: Sequence[Rewritten]) -> list[Rewritten]:
    """Those whose fragments a version has exactly as they were when they were read."""
    return [one for one in written if all(_is_there(table, old) for old in one.old)]


def commit_rewritten(
    table: Table, written: Sequence[Rewritten], stamp: Stamp | None = None
) -> TablePin:
    """Put rows where they were written again, all in one version; none gives the same pin.

    What is not there any more as it was read is left out. No index covers the new fragments.
    """
    from lance import LanceOperation
    from lance.fragment import FragmentMetadata

    groups = [
        LanceOperation.RewriteGroup(
            [_required(table, old.part) for old in one.old],
            [FragmentMetadata.from_json(text) for text in one.fragments],
        )
        for one in still_there(table, written)
    ]
    if not groups:
        return table.pin
    return commit_detached(table, LanceOperation.Rewrite(groups, []), stamp)


def _old(table: Table, part: FragmentPart) -> OldFragment:
    return OldFragment(part, _files(_required(table, part)))


def _is_there(table: Table, old: OldFragment) -> bool:
    metadata = _metadata(table, old.part.number)
    return (
        metadata is not None
        and fragment_part(metadata) == old.part
        # A column that was added since then is in none of the files that were read.
        and _files(metadata) == old.files
    )


def _metadata(table: Table, number: int) -> FragmentMetadata | None:
    with storage_errors(f"listing the fragments of {table.location}"):
        found = table.dataset().get_fragment(number)
        return None if found is None else found.metadata


def _required(table: Table, part: FragmentPart) -> FragmentMetadata:
    metadata = _metadata(table, part.number)
    if metadata is None or fragment_part(metadata) != part:
        raise AssertionError("a fragment is written again from the version that has it")
    return metadata


def _files(metadata: FragmentMetadata) -> tuple[str, ...]:
    return tuple(str(file.path) for file in metadata.files)


def _live_rows(
    table: Table, schema: pa.Schema, parts: Sequence[FragmentPart], order_by: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows by stored columns, with their row ids, piece by piece."""
    from lance.dataset import ColumnOrdering

    dataset = table.dataset()
    has_blobs = any(is_blob(column) for column in schema)
    fragments = [dataset.get_fragment(part.number) for part in parts]
    with storage_errors(f"reading rows of {table.location}"):
        scanner = dataset.scanner(
            columns=schema.names,
            with_row_id=True,
            fragments=[fragment for fragment in fragments if fragment is not None],
            scan_in_order=True,
            batch_size=READ_BLOBS if has_blobs else READ_ROWS,
            batch_size_bytes=READ_BYTES,
            blob_handling="all_binary" if has_blobs else None,
            order_by=[ColumnOrdering(name) for name in order_by] or None,
        )
        for batch in scanner.to_batches():
            rows = pa.Table.from_batches([batch])
            row_ids = rows.column(ROW_ID)
            conformed = conform(rows.select(schema.names), schema).combine_chunks()
            yield conformed.append_column(ROW_ID, row_ids)


def _with_row_ids(fragments: Sequence[str], row_ids: npt.NDArray[np.uint64]) -> tuple[str, ...]:
    """The fragments, whose rows have these row ids one after the other."""
    from lance.fragment import FragmentMetadata, RowIdSequence

    result: list[str] = []
    start = 0
    for text in fragments:
        fragment = FragmentMetadata.from_json(text)
        own = row_ids[start : start + fragment.physical_rows]
        start += fragment.physical_rows
        kept = dataclasses.replace(
            fragment,
            row_id_meta=RowIdSequence(own.tolist()).to_inline_metadata(),
            # Otherwise Lance notes a version for every row, in every version from then on.
            created_at_version_meta=None,
            last_updated_at_version_meta=None,
        )
        result.append(json.dumps(kept.to_json()))
    if start != len(row_ids):
        raise AssertionError("as many rows are written as are read")
    return tuple(result)
