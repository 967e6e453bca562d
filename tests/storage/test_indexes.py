from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.query import MatchQuery, PhraseQuery

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.indexes import build, table_indexes
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import write_rows
from omnigraph.storage.tables.reachable_files import files_of
from omnigraph.storage.tables.table import Stamp, Table, TablePin
from tests import table_indexing, table_writes
from tests.storage.sample import Rows, validate
from tests.table_writes import all_files, stamp_of

STAMP = Stamp("00000000-0000-0000-0000-00000000000c", {"class": "maintenance"})
ALL: list[tuple[str, build.IndexKind]] = [
    (ID, "BTREE"),
    ("n", "BTREE"),
    ("text", "INVERTED"),
    ("vector", "IVF_FLAT"),
]


@pytest.fixture
def table(empty: Table, rows: Rows) -> Table:
    table = empty.at(table_writes.insert(empty, rows(range(20))))
    return table.at(table_writes.insert(table, rows(range(20, 30))))


def indexed(table: Table) -> Table:
    for column, kind in ALL:
        table = table.at(table_indexing.create_index(table, column, kind))
    return table


def changed(table: Table) -> Table:
    """`k5` with other values."""
    found = table.scan(None, pc.field(ID) == "k5", with_row_id=True, with_row_address=True)
    vector = pa.array([[0.0, 9.0, 0.0, 0.0]], found.schema.field("vector").type)
    for name, value in {
        "n": pa.array([-1]),
        "text": pa.array(["new common"]),
        "vector": vector,
    }.items():
        found = found.set_column(found.column_names.index(name), name, value)
    return table.at(table_writes.update_rows(table, found))


def search(table: Table, query: MatchQuery | PhraseQuery) -> list[str]:
    found = table.dataset().to_table(
        columns=[ID], full_text_query=query, disable_scoring_autoprojection=True
    )
    return sorted(found[ID].to_pylist())


def nearest(table: Table, vector: list[float]) -> str:
    query: dict[str, Any] = {"column": "vector", "q": vector, "k": 1, "nprobes": 100}
    found = table.dataset().to_table(
        columns=[ID], nearest=query, disable_scoring_autoprojection=True
    )
    return str(found[ID][0])


def assert_changed(table: Table) -> None:
    """Every sort of index answers with the new values of `k5`, and never with the old ones."""
    assert table.scan([ID], pc.field("n") == 5).num_rows == 0
    assert table.scan([ID], pc.field("n") == -1)[ID].to_pylist() == ["k5"]
    assert table.scan(["n"], pc.field(ID) == "k5")["n"].to_pylist() == [-1]
    assert search(table, MatchQuery("word5", "text")) == []
    assert search(table, MatchQuery("new", "text")) == ["k5"]
    assert len(search(table, MatchQuery("common", "text"))) == table.pin.row_count
    assert nearest(table, [5.0, 0.0, 0.0, 1.0]) in {"k4", "k6"}
    assert nearest(table, [0.0, 9.0, 0.0, 0.0]) == "k5"
    validate(table)


def test_every_kind_answers(table: Table) -> None:
    table = indexed(table)
    assert [(index.column, index.uncovered) for index in table_indexes.indexes_of(table)] == [
        (ID, frozenset()),
        ("n", frozenset()),
        ("text", frozenset()),
        ("vector", frozenset()),
    ]
    plan = table.dataset().scanner(filter=pc.field(ID) == "k7").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert search(table, MatchQuery("word7", "text")) == ["k7"]
    assert search(table, PhraseQuery("word7 common", "text")) == ["k7"]
    assert nearest(table, [7.0, 0.0, 0.0, 1.0]) == "k7"
    validate(table)


def test_an_update_is_seen_through_every_index(table: Table) -> None:
    table = changed(indexed(table))
    assert all(index.uncovered for index in table_indexes.indexes_of(table))
    assert_changed(table)


def test_compaction_and_new_indexes_keep_the_answers(table: Table) -> None:
    table = changed(indexed(table))
    assert_changed(table.at(table_indexes.compact(table)))
    table = table.at(table_indexes.compact(table, without_indexes=True))
    assert len(table.dataset().get_fragments()) == 1
    assert_changed(table)
    assert_changed(indexed(table))


@pytest.mark.slow
def test_extending_keeps_the_answers(table: Table) -> None:
    table = changed(indexed(table))
    for _ in range(2):
        for column, kind in ALL:
            table = table.at(table_indexing.extend_index(table, column, kind))
        assert not any(index.uncovered for index in table_indexes.indexes_of(table))
        assert_changed(table)
        table = table.at(table_indexes.compact(table))
        assert_changed(table)


def test_extending_after_an_insert(table: Table, rows: Rows) -> None:
    table = indexed(table)
    table = table.at(table_writes.insert(table, rows([77])))
    for column, kind in ALL:
        table = table.at(table_indexing.extend_index(table, column, kind))
    assert not any(index.uncovered for index in table_indexes.indexes_of(table))
    assert table.scan([ID], pc.field("n") == 77)[ID].to_pylist() == ["k77"]
    assert search(table, MatchQuery("word77", "text")) == ["k77"]
    assert nearest(table, [77.0, 0.0, 0.0, 1.0]) == "k77"


def test_creating_again_replaces(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(5))))
    once = table.at(table_indexing.create_index(table, "n", "BTREE", stamp=STAMP))
    assert stamp_of(once) == STAMP
    twice = once.at(table_indexing.create_index(once, "n", "BTREE"))
    [old], [new] = (table.dataset().describe_indices() for table in (once, twice))
    assert len(new.segments) == 1
    assert new.segments[0].uuid != old.segments[0].uuid


def test_dropping(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(5))))
    made = table.at(table_indexing.create_index(table, "n", "BTREE"))
    [index] = table_indexes.indexes_of(made)
    dropped = made.at(table_indexes.drop_indexes(made, [index.name]))
    assert table_indexes.indexes_of(dropped) == []
    assert table_indexes.drop_indexes(dropped, [index.name]) is dropped.pin
    assert dropped.scan([ID], pc.field("n") == 3).num_rows == 1


def test_nothing_to_do(local: Table) -> None:
    with measure() as counted:
        assert table_indexing.create_index(local, "n", "BTREE") is local.pin
        assert table_indexes.compact(local) is local.pin
    assert counted.puts == 0
    with pytest.raises(StorageError, match="no column 'm'"):
        table_indexing.create_index(local, "m", "BTREE")


def test_cosine(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(5))))
    table = table.at(table_indexing.create_index(table, "vector", "IVF_FLAT", metric="cosine"))
    query: dict[str, Any] = {
        "column": "vector",
        "q": [8.0, 0.0, 0.0, 2.0],
        "k": 1,
        "metric": "cosine",
    }
    found = table.dataset().to_table(columns=[ID, "_distance"], nearest=query)
    assert found[ID].to_pylist() == ["k4"]


def test_compaction_merges_and_keeps_row_ids(table: Table, rows: Rows) -> None:
    for number in range(30, 35):
        table = table.at(table_writes.insert(table, rows([number])))
    gone = table.scan([], pc.field("n") < 12, with_row_address=True)["_rowaddr"]
    table = table.at(write_rows.delete_addresses(table, gone))
    before = table.scan([ID], with_row_id=True).sort_by(ID)
    after = table.at(table_indexes.compact(table, stamp=STAMP))
    assert len(after.dataset().get_fragments()) == 1
    assert after.pin.row_count == 23
    assert after.scan([ID], with_row_id=True).sort_by(ID).equals(before)
    assert stamp_of(after) == STAMP
    assert table_indexes.compact(after) is after.pin
    validate(after)


def test_compaction_of_an_indexed_table_keeps_its_stamp(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    table = table.at(table_writes.insert(table, rows(range(3, 6))))
    table = table.at(table_indexing.create_index(table, "n", "BTREE"))
    after = table.at(table_indexes.compact(table, stamp=STAMP))
    assert len(after.dataset().get_fragments()) == 1
    assert stamp_of(after) == STAMP


def test_covered_and_uncovered_fragments_are_not_merged(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    table = table.at(table_indexing.create_index(table, "n", "BTREE"))
    table = table.at(table_writes.insert(table, rows(range(3, 6))))
    assert table_indexes.compact(table) is table.pin
    # Another segment does not help: it covers other fragments.
    table = table.at(table_indexing.extend_index(table, "n", "BTREE"))
    assert table_indexes.compact(table) is table.pin
    merged = table.at(table_indexes.compact(table, without_indexes=True, stamp=STAMP))
    assert len(merged.dataset().get_fragments()) == 1
    assert table_indexes.indexes_of(merged) == []
    assert merged.scan([ID]).equals(table.scan([ID]))
    assert stamp_of(merged) == STAMP
    assert table_indexes.compact(merged, without_indexes=True) is merged.pin


def test_a_version_that_lance_cannot_explain_has_no_stamp(local: Table, rows: Rows) -> None:
    """Lance's own compaction of an indexed table, done by somebody from outside."""
    dataset = lance.write_dataset(rows([1]), local.location.uri, mode="append")
    dataset = lance.write_dataset(rows([2]), local.location.uri, mode="append")
    dataset.create_scalar_index("n", "BTREE")
    dataset.optimize.compact_files()
    tables = [local.at(TablePin(version, None, 2)) for version in range(2, dataset.version + 1)]
    assert None in [stamp_of(table) for table in tables]
    assert all(files_of(table) <= all_files(table) for table in tables)
