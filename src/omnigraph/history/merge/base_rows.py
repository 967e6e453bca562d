"""Rows of the base: what rows said before either side touched them, read where it matters.

Owns which of them are read as a whole. Scattered rows are dear to read, a page for each
and for each column, and grow dearer with the table: so few of them as possible are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changed_rows import LOCATION, differing
from omnigraph.history.merge.rows import Range
from omnigraph.storage.tables.columns import is_blob
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.storage.tables.version_diff import rows_at
from omnigraph.write.change.change_set import among, without

FEW = 20_000
"""Of more changed rows than this, all are read: files as a whole, which costs less then."""


def completed(rows: Range, base: Table, columns: list[str], *, by_property: bool) -> Range:
    """With what the base said where both sides have touched a row, and only there.

    Of a row that one side has touched alone, what it was does not matter. Merged
    ``by_property``, the same is true of a value that both sides have alike.
    """
    ours = _touched(rows.target_base, rows.target)
    theirs = _touched(rows.source_base, rows.source)
    both = theirs.filter(pc.is_in(theirs, value_set=ours))
    places = pa.concat_tables(
        [
            among(rows.source_base, both),
            among(without(rows.target_base, rows.source_base.column("id")), both),
        ]
    ).select(["id", ROW_ADDRESS])
    source = among(rows.source, both if by_property else both.slice(0, 0))
    source, target = _paired(source, rows.target)
    unequal = [
        name for name in columns if differing(source.column(name), target.column(name)).any()
    ]
    schema = rows.target.schema
    known = pa.concat_tables(
        [
            _read(base, among(places, source.column("id")), unequal, schema),
            _read(base, without(places, source.column("id")), columns, schema),
        ]
    )
    return Range(
        _padded(rows.source_base, known, schema),
        rows.source,
        _padded(rows.target_base, known, schema),
        rows.target,
        both,
    )


def _read(base: Table, places: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    """Some columns of rows of the base, and nothing in the others."""
    if not places.num_rows:
        return schema.empty_table()
    read = [name for name in columns if name != "id"]
    with_blobs = any(is_blob(base.schema.field(name)) for name in read)
    wanted = np.sort(places.column(ROW_ADDRESS).to_numpy())
    found = pa.Table.from_batches(
        rows_at(base, wanted, [*read, *LOCATION], with_blobs=with_blobs),
    )
    order = pc.index_in(found.column(ROW_ADDRESS), places.column(ROW_ADDRESS).combine_chunks())
    return _widened(found.add_column(0, "id", places.column("id").take(order)), schema)


def _paired(source: pa.Table, target: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that both have, in one order."""
    mine = among(target, source.column("id")).sort_by("id")
    return among(source, mine.column("id")).sort_by("id"), mine


def _padded(rows: pa.Table, known: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns, filled where they are known, in the order of the ids."""
    full = among(known, rows.column("id"))
    rest = _widened(without(rows, full.column("id")), schema)
    return pa.concat_tables([rest, full]).sort_by("id")


def _widened(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with every column; nothing is known of those that they do not have."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    # A column that is never null is so here: the rows are looked at, and not written.
    return pa.table(columns, schema=schema)


def _touched(base: pa.Table, side: pa.Table) -> pa.Array:
    ids = [rows.column("id").combine_chunks() for rows in (base, side)]
    return pa.concat_arrays(ids).unique()
