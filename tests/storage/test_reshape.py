from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.schema import LanceSchema

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.indexes import table_indexes
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import columns
from omnigraph.storage.tables.table import Stamp, Table
from tests import table_indexing, table_writes
from tests.storage.sample import Rows, validate
from tests.table_writes import stamp_of

STAMP = Stamp("00000000-0000-0000-0000-00000000000b", {"class": "schema"})
NESTED = pa.schema(
    [
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("x", pa.float64()), ("y", pa.float64())])),
    ]
)


@pytest.fixture
def table(empty: Table, rows: Rows) -> Table:
    table = empty.at(table_writes.insert(empty, rows(range(3))))
    return table.at(table_writes.insert(table, rows(range(3, 5))))


def ids(table: Table) -> dict[str, int]:
    return {field.name(): field.id() for field in table.dataset().lance_schema.fields()}


def test_null_columns_write_no_data(table: Table) -> None:
    with measure() as counted:
        after = table.at(columns.add_columns(table, NESTED, stamp=STAMP))
    assert counted.puts == 2
    assert after.pin.row_count == 5
    assert after.scan([ID, "tags", "place"], pc.field("n") == 4).to_pylist() == [
        {ID: "k4", "tags": None, "place": None}
    ]
    assert stamp_of(after) == STAMP
    validate(after)


def test_computed_columns(table: Table) -> None:
    def double(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.names == ["n"]
        return pa.record_batch([pc.multiply(batch["n"], 2)], ["double"])

    added = pa.schema([pa.field("double", pa.int64())])
    after = table.at(columns.add_columns(table, added, compute=double, reading=["n"]))
    assert after.scan(["double"])["double"].to_pylist() == [0, 2, 4, 6, 8]
    validate(after)


def test_columns_of_an_empty_table(empty: Table, rows: Rows) -> None:
    table = empty.at(columns.add_columns(empty, NESTED))
    table = table.at(columns.drop_columns(table, ["n"]))
    table = table.at(columns.rename_column(table, "text", "words"))
    assert table.schema.names == [ID, "words", "vector", "tags", "place"]
    inserted = rows([1]).drop_columns(["n"]).rename_columns([ID, "words", "vector"])
    table = table.at(table_writes.insert(table, inserted))
    assert table.scan([ID, "words"]).to_pylist() == [{ID: "k1", "words": "word1 common"}]
    validate(table)


def test_ids_stay_through_gaps(table: Table) -> None:
    before = ids(table)
    table = table.at(columns.drop_columns(table, ["n", "vector"], STAMP))
    assert stamp_of(table) == STAMP
    assert ids(table) == {ID: before[ID], "text": before["text"]}
    table = table.at(columns.add_columns(table, NESTED))
    table = table.at(columns.rename_column(table, "text", "words", STAMP))
    added = {name: ids(table)[name] for name in NESTED.names}
    assert min(added.values()) > max(before.values())
    assert ids(table)["words"] == before["text"]
    found = table.scan([ID, "words", "tags"], pc.field(ID) == "k4").to_pylist()
    assert found == [{ID: "k4", "words": "word4 common", "tags": None}]
    full = pa.table(
        {
            ID: ["k4", "k9"],
            "words": ["a", "b"],
            "tags": [["x"], []],
            "place": [{"x": 1.0, "y": 2.0}, None],
        },
        schema=table.schema,
    )
    table = table.at(table_writes.upsert(table, full))
    validate(table)
    assert table.scan(None, pc.field(ID).isin(["k4", "k9"])).sort_by(ID).equals(full)
    [field] = table.dataset().lance_schema.unenforced_primary_key()
    assert field.name() == ID


def test_a_dropped_column_can_come_back_empty(table: Table) -> None:
    dropped = table.at(columns.drop_columns(table, ["n"]))
    added = pa.schema([pa.field("n", pa.int64())])
    back = dropped.at(columns.add_columns(dropped, added))
    assert back.scan(["n"])["n"].null_count == 5
    assert table.scan(["n"])["n"].null_count == 0


def test_an_index_follows_a_rename_and_goes_with_its_column(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(5))))
    table = table.at(table_indexing.create_index(table, "n", "BTREE"))
    renamed = table.at(columns.rename_column(table, "n", "number"))
    [index] = table_indexes.indexes_of(renamed)
    assert (index.column, index.uncovered) == ("number", frozenset())
    assert table_indexing.extend_index(renamed, "number", "BTREE") is renamed.pin
    dropped = renamed.at(columns.drop_columns(renamed, ["number"]))
    assert table_indexes.indexes_of(dropped) == []


def test_nothing_to_do_and_what_is_refused(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(2))))
    assert columns.add_columns(table, pa.schema([])) is table.pin
    assert columns.drop_columns(table, []) is table.pin
    assert columns.rename_column(table, "n", "n") is table.pin
    with pytest.raises(StorageError, match="'n' already"):
        columns.add_columns(table, pa.schema([("n", pa.int64())]))
    with pytest.raises(StorageError, match="must allow null"):
        columns.add_columns(table, pa.schema([pa.field("m", pa.int64(), nullable=False)]))
    with pytest.raises(StorageError, match="'text' already"):
        columns.rename_column(table, "n", "text")
    with pytest.raises(StorageError, match="no column 'm'"):
        columns.drop_columns(table, ["m"])
    with pytest.raises(StorageError, match="no column 'm'"):
        columns.rename_column(table, "m", "n")


def test_schemas_are_edited_exactly() -> None:
    schema = LanceSchema.from_pyarrow(
        pa.schema(
            [pa.field("a" * 200, pa.int64(), metadata={"k": "v"}), *NESTED], metadata={"m": "w"}
        )
    )
    assert columns.renamed(schema, "tags", "tags") == schema
    longer = columns.extended(schema, pa.schema([("z", pa.bool_())]), 300)
    assert longer.fields()[-1].id() == 301
    assert longer.to_pyarrow().metadata == {b"m": b"w"}
    assert columns.without(longer, ["z"]) == schema
    shorter = columns.without(schema, ["place"])
    assert [field.name() for field in shorter.fields()][1:] == ["tags"]
    # Only columns of the top level are named.
    assert columns.without(schema, ["x", "item"]) == schema
