"""Changing the columns of a table: add, drop and rename, each as one detached commit.

Owns the shape of a table. Field ids stay with their columns, so that no data
file is rewritten. Must never decide whether a change is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.objects.errors import storage_errors
from omnigraph.storage.tables import field_ids
from omnigraph.storage.tables.detached import Stamp, commit_detached
from omnigraph.storage.tables.table import Table, TablePin

if TYPE_CHECKING:
    from lance.fragment import FragmentMetadata
    from lance.schema import LanceSchema

Compute = Callable[[pa.RecordBatch], pa.RecordBatch]


def add_columns(
    table: Table,
    added: pa.Schema,
    *,
    compute: Compute | None = None,
    reading: Sequence[str] | None = None,
    stamp: Stamp | None = None,
) -> TablePin:
    """Add columns: null everywhere, or computed from batches of the columns in ``reading``.

    Null columns write no data file at all. ``compute`` returns a batch with
    exactly the added columns for each batch it gets.
    """
    from lance import LanceOperation

    if not len(added):
        return table.pin
    if taken := set(added.names) & set(table.schema.names):
        raise StorageError(f"there is a column {min(taken)!r} already", kind="permanent")
    if compute is None and (strict := [field.name for field in added if not field.nullable]):
        raise StorageError(f"the new column {strict[0]!r} must allow null", kind="permanent")
    dataset = table.dataset()
    with storage_errors(f"adding columns to {table.location}"):
        fragments = [fragment.metadata for fragment in dataset.get_fragments()]
        schema = field_ids.extended(dataset.lance_schema, added, dataset.max_field_id)
    if compute is not None and fragments:
        fragments, schema = _computed(table, added, compute, reading)
    return commit_detached(table, LanceOperation.Merge(fragments, schema), stamp)


def drop_columns(table: Table, names: Collection[str], stamp: Stamp | None = None) -> TablePin:
    """Drop columns, and the indexes on them; the data files stay as they are."""
    _require(table, names)
    if not names:
        return table.pin
    return _project(table, field_ids.without(table.dataset().lance_schema, names), stamp)


def rename_column(table: Table, old: str, new: str, stamp: Stamp | None = None) -> TablePin:
    """Give a column another name; its indexes follow."""
    _require(table, [old])
    if old == new:
        return table.pin
    if new in table.schema.names:
        raise StorageError(f"there is a column {new!r} already", kind="permanent")
    return _project(table, field_ids.renamed(table.dataset().lance_schema, old, new), stamp)


def _project(table: Table, schema: LanceSchema, stamp: Stamp | None) -> TablePin:
    from lance import LanceOperation

    return commit_detached(table, LanceOperation.Project(schema), stamp)


def _computed(
    table: Table, added: pa.Schema, compute: Compute, reading: Sequence[str] | None
) -> tuple[list[FragmentMetadata], LanceSchema]:
    def checked(batch: pa.RecordBatch) -> pa.RecordBatch:
        return compute(batch).select(added.names).cast(added)

    fragments: list[FragmentMetadata] = []
    columns = None if reading is None else list(reading)
    with storage_errors(f"computing columns of {table.location}"):
        for fragment in table.dataset().get_fragments():
            merged, schema = fragment.merge_columns(checked, columns)
            fragments.append(merged)
    return fragments, schema


def _require(table: Table, names: Collection[str]) -> None:
    if missing := sorted(set(names) - set(table.schema.names)):
        raise StorageError(f"{table.location} has no column {missing[0]!r}", kind="not_found")
