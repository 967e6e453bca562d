"""Rows of the base: what rows said before either side touched them, read where it matters.

Owns which of them are read as a whole. Scattered rows are dear to read, a page for each
and for each column, and grow dearer with the table: so few of them as possible are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import LOCATION
from omnigraph.history.merge.rows import Range
from omnigraph.storage.differing import rows_at
from omnigraph.storage.table import ROW_ADDRESS, Table
from omnigraph.write.changes import without
from omnigraph.write.reads import has_blobs

FEW = 20_000
"""Of more changed rows than this, all are read: files as a whole, which costs less then."""


def completed(rows: Range, base: Table, columns: list[str]) -> Range:
    """With whole rows of the base where both sides have touched one, and only there.

    Scattered rows are dear to read: of a row that one side has touched alone, what it was
    does not matter.
    """
    ours = _touched(rows.target_base, rows.target)
    theirs = _touched(rows.source_base, rows.source)
    both = theirs.filter(pc.is_in(theirs, value_set=ours))
    places = pa.concat_tables(
        side.select(["id", ROW_ADDRESS]) for side in (rows.source_base, rows.target_base)
    )
    wanted = places.filter(pc.is_in(places.column("id"), value_set=both)).column(ROW_ADDRESS)
    schema = rows.target.schema
    whole = schema.empty_table()
    if len(wanted):
        with_blobs = has_blobs(base.schema)
        names = [*columns, *LOCATION]
        addresses = np.unique(wanted.to_numpy())
        batches = rows_at(base, addresses, names, with_blobs=with_blobs)
        whole = pa.concat_tables(pa.Table.from_batches([batch]).cast(schema) for batch in batches)
    return Range(
        _padded(rows.source_base, whole, schema),
        rows.source,
        _padded(rows.target_base, whole, schema),
        rows.target,
        both,
    )


def _padded(rows: pa.Table, whole: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns, whole where they are known, in the order of the ids."""
    ids = rows.column("id").combine_chunks()
    full = whole.filter(pc.is_in(whole.column("id"), value_set=ids))
    rest = without(rows, full.column("id"))
    columns = [
        rest.column(field.name)
        if field.name in rest.column_names
        else pa.nulls(rest.num_rows, field.type)
        for field in schema
    ]
    # A column that is never null is so here: the rows are looked at, and not written.
    return pa.concat_tables([pa.table(columns, schema=schema), full]).sort_by("id")


def _touched(base: pa.Table, side: pa.Table) -> pa.Array:
    ids = [rows.column("id").combine_chunks() for rows in (base, side)]
    return pa.concat_arrays(ids).unique()
