from __future__ import annotations

import json
import subprocess
import sys
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import write_rows
from omnigraph.storage.tables.table import Stamp, Table, TablePin
from tests import faults, table_writes
from tests.storage.sample import SCHEMA, Rows, validate
from tests.table_writes import stamp_of

STAMP = Stamp("00000000-0000-0000-0000-00000000000a", {"commit": "01H", "class": "logical"})


@pytest.fixture
def table(empty: Table, rows: Rows) -> Table:
    """Ten rows in two fragments, on each kind of storage."""
    table = empty.at(table_writes.insert(empty, rows(range(6))))
    return table.at(table_writes.insert(table, rows(range(6, 10))))


def values(table: Table) -> dict[str, int]:
    found = table.scan([ID, "n"])
    assert table.pin.row_count == found.num_rows == table.dataset().count_rows()
    validate(table)
    return dict(zip(found[ID].to_pylist(), found["n"].to_pylist(), strict=True))


def row_ids(table: Table) -> dict[str, int]:
    found = table.scan([ID], with_row_id=True)
    return dict(zip(found[ID].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def addresses(table: Table, where: pc.Expression) -> pa.ChunkedArray:
    return table.scan([], where, with_row_address=True)["_rowaddr"]


def located(table: Table, where: pc.Expression) -> pa.Table:
    return table.scan(None, where, with_row_id=True, with_row_address=True)


def with_n(found: pa.Table, n: int) -> pa.Table:
    column = pa.array([n] * found.num_rows, pa.int64())
    return found.set_column(found.column_names.index("n"), "n", column)


def test_an_insert_is_a_new_pin_and_the_old_one_stays(empty: Table, rows: Rows) -> None:
    pin = table_writes.insert(empty, rows(range(3)), STAMP)
    assert values(empty.at(pin)) == {"k0": 0, "k1": 1, "k2": 2}
    assert values(empty) == {}
    assert pin.transaction_uuid == STAMP.uuid
    assert pin.version >= 2**63
    assert stamp_of(empty.at(pin)) == STAMP
    assert empty.dataset().latest_version == 1


def test_an_insert_fills_missing_columns_with_null(empty: Table) -> None:
    ids = pa.table({ID: ["a"]}, schema=pa.schema([SCHEMA.field(ID)]))
    assert values(empty.at(table_writes.insert(empty, ids))) == {"a": None}


def test_an_insert_from_a_stream(empty: Table, rows: Rows) -> None:
    batches = rows(range(10)).to_batches(max_chunksize=3)
    pin = table_writes.insert(empty, pa.RecordBatchReader.from_batches(SCHEMA, batches))
    assert pin.row_count == 10


@pytest.mark.parametrize(
    "bad",
    [
        pa.table({ID: pa.array([None], pa.string())}),
        pa.table({ID: ["a"], "n": ["text"]}),
        pa.table({ID: ["a"], "unknown": [1]}),
    ],
    ids=["null key", "wrong type", "unknown column"],
)
def test_rows_that_do_not_fit_are_refused(local: Table, bad: pa.Table) -> None:
    with pytest.raises(StorageError) as refused:
        table_writes.insert(local, bad)
    assert refused.value.kind == "permanent"


def test_nothing_to_do_writes_nothing(table: Table, rows: Rows) -> None:
    nothing = rows([])
    with measure() as counted:
        assert table_writes.insert(table, nothing) is table.pin
        stream = pa.RecordBatchReader.from_batches(SCHEMA, [])
        assert table_writes.insert(table, stream) is table.pin
        assert write_rows.insert_fragments(table, []) is table.pin
        assert write_rows.delete_addresses(table, []) is table.pin
        assert table_writes.upsert(table, nothing) is table.pin
        assert table_writes.update_rows(table, None) is table.pin
        assert table_writes.update_rows(table, None, inserted=nothing, deleted=[]) is table.pin
    assert counted.puts == counted.deletes == 0


def test_fragments_travel_as_json(table: Table, rows: Rows) -> None:
    staged = [
        *write_rows.stage_fragments(table, rows([20])),
        *write_rows.stage_fragments(table, rows([21])),
    ]
    assert all(json.loads(fragment)["physical_rows"] == 1 for fragment in staged)
    assert values(table)
    after = table.at(write_rows.insert_fragments(table, staged, STAMP))
    assert values(after) == {**values(table), "k20": 20, "k21": 21}
    assert stamp_of(after) == STAMP


def test_fragments_are_independent_of_the_pin_they_were_staged_on(table: Table, rows: Rows) -> None:
    staged = write_rows.stage_fragments(table, rows([20]))
    moved = table.at(write_rows.delete_addresses(table, addresses(table, pc.field("n") < 9)))
    after = table.at(write_rows.insert_fragments(moved, staged))
    assert values(after) == {"k9": 9, "k20": 20}
    assert len(set(row_ids(after).values())) == 2


@pytest.mark.slow
def test_another_process_stages_and_this_one_commits(table: Table) -> None:
    program = """
import sys
import pyarrow as pa
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables import write_rows
from omnigraph.storage.tables.table import Table, TablePin

table = Table(Location.parse(sys.argv[1]), TablePin(int(sys.argv[2]), None, 0))
schema = pa.schema([table.schema.field("@id"), table.schema.field("n")])
rows = pa.table({"@id": ["k30", "k31"], "n": [30, 31]}, schema=schema)
print(*write_rows.stage_fragments(table, rows), sep="\\n")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, table.location.uri, str(table.pin.version)],
        capture_output=True,
        text=True,
        check=True,
    )
    after = table.at(write_rows.insert_fragments(table, ran.stdout.splitlines()))
    assert values(after) == {**values(table), "k30": 30, "k31": 31}


def test_delete(table: Table) -> None:
    pin = write_rows.delete_addresses(
        table, addresses(table, pc.field("n").isin([0, 2, 4, 6, 8])), STAMP
    )
    after = table.at(pin)
    assert sorted(values(after).values()) == [1, 3, 5, 7, 9]
    assert row_ids(after) == {f"k{n}": n for n in [1, 3, 5, 7, 9]}
    assert stamp_of(after) == STAMP


def test_delete_everything_and_go_on(table: Table, rows: Rows) -> None:
    after = table.at(write_rows.delete_addresses(table, addresses(table, pc.field("n") >= 0)))
    assert values(after) == {}
    again = after.at(table_writes.insert(after, rows([1])))
    assert row_ids(again) == {"k1": 10}


def test_addresses_may_repeat(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    assert values(table.at(write_rows.delete_addresses(table, [1, 1, 0]))) == {"k2": 2}


@pytest.mark.parametrize("address", [0, 99, 7 << 32], ids=["gone", "beyond", "no fragment"])
def test_addresses_of_another_version_are_refused(local: Table, rows: Rows, address: int) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    table = table.at(write_rows.delete_addresses(table, [0]))
    with pytest.raises(StorageError, match="another version"):
        write_rows.delete_addresses(table, [address])


def test_an_update_keeps_row_ids_and_creation(table: Table) -> None:
    dataset = table.dataset()
    created = dataset.to_table(columns=[ID, "_row_created_at_version"]).to_pylist()
    changed = with_n(located(table, pc.field(ID).isin(["k1", "k7"])), 100)
    after = table.at(table_writes.update_rows(table, changed, stamp=STAMP))
    assert values(after) == {**values(table), "k1": 100, "k7": 100}
    assert row_ids(after) == row_ids(table)
    kept = after.dataset().to_table(columns=[ID, "_row_created_at_version"]).to_pylist()
    assert sorted(kept, key=str) == sorted(created, key=str)
    assert stamp_of(after) == STAMP


def test_update_insert_and_delete_in_one_version(table: Table, rows: Rows) -> None:
    changed = with_n(located(table, pc.field(ID).isin(["k1", "k7"])), 100)
    gone = addresses(table, pc.field(ID).isin(["k2", "k8"]))
    with measure() as counted:
        pin = table_writes.update_rows(table, changed, inserted=rows([30, 31]), deleted=gone)
    after = table.at(pin)
    expected = {**values(table), "k1": 100, "k7": 100, "k30": 30, "k31": 31}
    del expected["k2"], expected["k8"]
    assert values(after) == expected
    before = row_ids(table)
    assert {key: before[key] for key in expected if key in before}.items() <= row_ids(after).items()
    assert len(set(row_ids(after).values())) == len(expected)
    # Two deletion files, a data file, the transaction and the manifest.
    assert counted.puts == 5
    assert counted.lists == 0


def test_an_insert_with_deletes_only(table: Table, rows: Rows) -> None:
    gone = addresses(table, pc.field("n") > 0)
    after = table.at(table_writes.update_rows(table, None, inserted=rows([50]), deleted=gone))
    assert values(after) == {"k0": 0, "k50": 50}


def test_a_large_update_spreads_over_fragments(
    local: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_rows, "MAX_ROWS_PER_FILE", 4)
    table = local.at(table_writes.insert(local, rows(range(10))))
    changed = with_n(located(table, pc.field("n") >= 0), 5)
    after = table.at(table_writes.update_rows(table, changed, inserted=rows(range(20, 29))))
    assert len(after.dataset().get_fragments()) == 5
    assert after.pin.row_count == 19
    ids = row_ids(after)
    assert {key: ids[key] for key in row_ids(table)} == row_ids(table)
    assert len(set(ids.values())) == 19
    again = after.at(table_writes.update_rows(after, with_n(located(after, pc.field("n") >= 0), 6)))
    assert row_ids(again) == ids


def test_contradictions_in_an_update_are_refused(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    one = located(table, pc.field("n") == 1)
    with pytest.raises(ValueError, match="twice"):
        table_writes.update_rows(table, pa.concat_tables([one, one]))
    with pytest.raises(ValueError, match="updated and deleted"):
        table_writes.update_rows(table, one, deleted=one["_rowaddr"])
    after = table.at(table_writes.update_rows(table, one))
    with pytest.raises(StorageError, match="another version"):
        table_writes.update_rows(after, one)
    with pytest.raises(StorageError, match="no column 'other'"):
        table_writes.update_rows(table, one.append_column("other", pa.array([1])))


def test_upsert(table: Table, rows: Rows) -> None:
    after = table.at(table_writes.upsert(table, rows([3, 40], shift=100), stamp=STAMP))
    assert values(after) == {**values(table), "k3": 103, "k40": 140}
    assert row_ids(after)["k3"] == row_ids(table)["k3"]
    assert stamp_of(after) == STAMP


def test_an_upsert_of_repeated_keys_is_refused(local: Table, rows: Rows) -> None:
    with pytest.raises(StorageError, match="repeat a value of '@id'"):
        table_writes.upsert(local, pa.concat_tables([rows([1]), rows([1])]))


def test_overwrite(table: Table, rows: Rows) -> None:
    after = table.at(table_writes.overwrite(table, rows([1, 2], shift=7), STAMP))
    assert values(after) == {"k1": 8, "k2": 9}
    assert set(row_ids(after).values()).isdisjoint(row_ids(table).values())
    dataset = after.dataset()
    assert dataset.has_stable_row_ids
    assert [field.name() for field in dataset.lance_schema.unenforced_primary_key()] == [ID]
    nothing = after.at(table_writes.overwrite(after, rows([])))
    assert values(nothing) == {}
    assert nothing.schema == table.schema
    assert table_writes.overwrite(nothing, rows([])) is nothing.pin


def test_commits_on_one_pin_do_not_know_of_each_other(table: Table, rows: Rows) -> None:
    pins: list[TablePin] = []

    def write(number: int) -> None:
        pins.append(table_writes.insert(table, rows([number])))

    threads = [threading.Thread(target=write, args=[number]) for number in range(20, 28)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({pin.version for pin in pins}) == 8
    assert all(table.at(pin).count(pc.field("n") >= 20) == 1 for pin in pins)


def test_a_long_chain_costs_the_same_at_every_depth(local: Table, rows: Rows) -> None:
    table = local
    costs: list[int] = []
    for number in range(60):
        with measure() as counted:
            table = table.at(table_writes.insert(table, rows([number])))
        costs.append(counted.total)
    assert set(costs[1:]) == {3}
    assert table.pin.row_count == 60


def test_a_failed_commit_leaves_the_pin(table: Table, rows: Rows) -> None:
    with faults.armed("before_commit", matching="table"), pytest.raises(StorageError):
        table_writes.insert(table, rows([20]))
    with faults.armed("after_commit"), pytest.raises(StorageError):
        table_writes.insert(table, rows([20]), STAMP)
    assert len(values(table)) == 10
    # The caller does not know the id of what was committed, and commits again.
    assert table.at(table_writes.insert(table, rows([20]), STAMP)).count() == 11
