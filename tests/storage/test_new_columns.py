from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.schema import LanceSchema

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID as KEY
from omnigraph.rows.stored_columns import StoredColumns
from omnigraph.storage.indexes import table_indexes
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import columns
from omnigraph.storage.tables.new_columns import (
    NewColumn,
    WrittenColumns,
    commit_columns,
    fragments_without,
    write_columns,
)
from omnigraph.storage.tables.table import ROW_ADDRESS, Stamp, Table
from tests import table_indexing, table_writes
from tests.storage.sample import Rows, validate
from tests.table_writes import stamp_of

STAMP = Stamp("00000000-0000-0000-0000-00000000000b", {"class": "schema"})
TAGS = NewColumn(pa.field("tags@8", pa.list_(pa.string())))
PLACE = NewColumn(pa.field("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])))
SCORE = NewColumn(pa.field("score@9", pa.float64()), fill=pa.scalar(0.5))
WIDE = NewColumn(pa.field("n@10", pa.float64()), source="n", fill=pa.scalar(-1.0))


@pytest.fixture
def table(empty: Table, rows: Rows) -> Table:
    table = empty.at(table_writes.insert(empty, rows(range(3))))
    return table.at(table_writes.insert(table, rows(range(3, 5))))


def added(table: Table, *new: NewColumn, known: WrittenColumns | None = None) -> Table:
    known = known or WrittenColumns()
    written = known.joined(write_columns(table, new, fragments_without(table, known)))
    return table.at(commit_columns(table, new, written, STAMP))


def test_null_columns_write_no_data(table: Table) -> None:
    with measure() as counted:
        after = table.at(commit_columns(table, (TAGS, PLACE), WrittenColumns(), STAMP))
    assert counted.puts == 2
    assert after.pin.row_count == 5
    found = after.scan([KEY, "tags@8", "place"], pc.field("n") == 4).to_pylist()
    assert found == [{KEY: "k4", "tags@8": None, "place": None}]
    assert stamp_of(after) == STAMP
    validate(after)


def test_constants_and_other_types_beside_nulls(table: Table) -> None:
    after = added(table, TAGS, SCORE, WIDE, PLACE)
    rows = after.scan(["n", "n@10", "score@9", "tags@8"]).to_pydict()
    assert rows["n@10"] == [float(number) for number in rows["n"]]
    assert rows["score@9"] == [0.5] * 5
    assert rows["tags@8"] == [None] * 5
    validate(after)


def test_nulls_take_the_fill_and_rows_that_follow_have_nulls(table: Table, rows: Rows) -> None:
    table = table.at(table_writes.insert(table, rows([7]).drop_columns(["n"])))
    after = added(table, WIDE)
    assert after.scan(["n@10"], pc.field(KEY) == "k7")["n@10"].to_pylist() == [-1.0]
    after = after.at(table_writes.insert(after, rows([8])))
    assert after.scan(["n@10"], pc.field(KEY) == "k8")["n@10"].to_pylist() == [None]
    validate(after)


def test_deleted_rows_keep_the_others_in_their_places(table: Table) -> None:
    places = table.scan([KEY], pc.field("n").isin([0, 3]), with_row_address=True)
    table = table.at(table_writes.update_rows(table, None, deleted=places.column(ROW_ADDRESS)))
    after = added(table, WIDE, SCORE)
    assert after.scan([KEY, "n@10"]).to_pylist() == [
        {KEY: f"k{number}", "n@10": float(number)} for number in (1, 2, 4)
    ]
    validate(after)


def test_files_that_were_written_serve_a_later_version(table: Table, rows: Rows) -> None:
    first = WrittenColumns(
        write_columns(table, (WIDE,), fragments_without(table, WrittenColumns()))
    )
    places = table.scan([KEY], pc.field("n") == 1, with_row_address=True)
    later = table.at(table_writes.update_rows(table, None, deleted=places.column(ROW_ADDRESS)))
    later = later.at(table_writes.insert(later, rows([6])))
    missing = fragments_without(later, first)
    assert len(missing) == 1
    with measure() as counted:
        after = added(later, WIDE, known=first)
    assert counted.puts == 1 + 2
    assert sorted(after.scan(["n@10"])["n@10"].to_pylist()) == [0.0, 2.0, 3.0, 4.0, 6.0]
    validate(after)


def test_columns_of_an_empty_table(empty: Table, rows: Rows) -> None:
    table = added(empty, TAGS, SCORE)
    table = table.at(table_writes.insert(table, rows([1])))
    assert table.scan([KEY, "score@9"]).to_pylist() == [{KEY: "k1", "score@9": None}]
    validate(table)


def test_a_table_reads_and_writes_by_names(table: Table, rows: Rows) -> None:
    names = (KEY, KEY), ("count", "n@10"), ("note", "text"), ("vector", "vector")
    after = added(table, WIDE)
    view = Table(after.location, after.pin, StoredColumns(names))
    assert view.schema.names == [KEY, "count", "note", "vector"]
    assert view.scan(["count", "note"], pc.field("n@10") == 3).to_pylist() == [
        {"count": 3.0, "note": "word3 common"}
    ]
    row = rows([9]).drop_columns(["n"]).rename_columns([KEY, "note", "vector"])
    row = row.append_column("count", pa.array([9.5]))
    view = view.at(table_writes.update_rows(view, None, inserted=row))
    assert view.scan(None, pc.field("n@10") == 9.5).drop_columns(["vector"]).to_pylist() == [
        {KEY: "k9", "count": 9.5, "note": "word9 common"}
    ]
    assert view.at(view.pin).columns is view.columns
    stored = Table(view.location, view.pin)
    assert stored.scan(["n"], pc.field(KEY) == "k9")["n"].to_pylist() == [None]


def test_an_index_is_known_by_the_name_of_its_column(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(5))))
    table = table.at(table_indexing.create_index(table, "n", "BTREE"))
    renamed = Table(table.location, table.pin, StoredColumns(((KEY, KEY), ("number", "n"))))
    [index] = table_indexes.indexes_of(renamed)
    assert (index.column, index.uncovered) == ("number", frozenset())
    assert table_indexing.extend_index(renamed, "number", "BTREE") is renamed.pin
    without = Table(table.location, table.pin, StoredColumns(((KEY, KEY),)))
    [index] = table_indexes.indexes_of(without)
    assert index.column is None
    [after] = table_indexes.indexes_of(added(renamed, SCORE))
    assert (after.column, after.uncovered) == ("number", frozenset())


def test_nothing_to_do_and_what_is_refused(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(2))))
    assert commit_columns(table, (), WrittenColumns()) is table.pin
    with pytest.raises(StorageError, match="'n' already"):
        commit_columns(table, (NewColumn(pa.field("n", pa.int64())),), WrittenColumns())


def test_schemas_are_extended_exactly() -> None:
    nested = pa.schema([TAGS.field, PLACE.field])
    first = pa.schema([pa.field("a" * 200, pa.int64(), metadata={"k": "v"})], metadata={"m": "w"})
    schema = columns.extended(LanceSchema.from_pyarrow(first), nested, 40)
    assert schema.to_pyarrow() == pa.schema([*first, *nested])
    assert [field.id() for field in schema.fields()] == [0, 41, 43]
