from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.cache_budget import CacheBudget
from omnigraph.storage.objects.location import Location
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import handles as session
from omnigraph.storage.tables.handles import (
    FRAGMENT_BYTES,
    HANDLE_BYTES,
    TableHandles,
    handles,
    open_pin,
    shared_session,
)
from omnigraph.storage.tables.table import Stamp, Table, TablePin, create_table
from tests import faults, table_writes
from tests.storage.sample import SCHEMA, Rows
from tests.table_writes import stamp_of


def test_a_new_table_is_as_the_layout_says(empty: Table) -> None:
    dataset = empty.dataset()
    assert empty.pin.version == dataset.version == 1
    assert empty.pin.row_count == dataset.count_rows() == 0
    assert dataset.has_stable_row_ids
    assert dataset.data_storage_version == "2.2"
    assert [field.name() for field in dataset.lance_schema.unenforced_primary_key()] == [ID]
    assert dataset.config() == {}
    assert empty.schema.names == SCHEMA.names
    assert stamp_of(empty) == Stamp(str(empty.pin.transaction_uuid), {})


def test_another_key_column(tmp_path: Path) -> None:
    location = Location.parse(str(tmp_path / "t"))
    schema = pa.schema([("object_id", pa.string())])
    table = Table(location, create_table(location, schema, key="object_id", transaction="mine"))
    assert table.pin.transaction_uuid == "mine"
    assert not table.schema.field("object_id").nullable
    with pytest.raises(StorageError, match="needs the column '@id'"):
        create_table(Location.parse(str(tmp_path / "u")), schema)


def test_a_table_is_never_created_twice(empty: Table, rows: Rows) -> None:
    pin = table_writes.insert(empty, rows(range(3)))
    with pytest.raises(StorageError) as refused:
        create_table(empty.location, SCHEMA)
    assert refused.value.kind == "precondition"
    assert empty.at(pin).scan().num_rows == 3
    assert empty.dataset().latest_version == 1


def test_one_of_many_creators_wins(location: Location) -> None:
    for attempt in range(3):
        place = location.join(str(attempt))
        start = threading.Barrier(4)
        results: list[TablePin | StorageError] = []

        def create(
            place: Location = place,
            start: threading.Barrier = start,
            results: list[TablePin | StorageError] = results,
        ) -> None:
            start.wait()
            try:
                results.append(create_table(place, SCHEMA))
            except StorageError as error:
                results.append(error)

        threads = [threading.Thread(target=create) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (won,) = [result for result in results if isinstance(result, TablePin)]
        lost = [result.kind for result in results if isinstance(result, StorageError)]
        assert lost == ["precondition"] * 3
        table = Table(place, won)
        assert table.dataset().latest_version == 1
        assert stamp_of(table) == Stamp(str(won.transaction_uuid), {})


def test_a_lost_acknowledgement_of_a_create(tmp_path: Path) -> None:
    location = Location.parse(str(tmp_path / "t"))
    with faults.armed("after_commit"), pytest.raises(StorageError, match="injected"):
        create_table(location, SCHEMA, transaction="mine")
    assert stamp_of(Table(location, TablePin(1, None, 0))) == Stamp("mine", {})


def test_scan(empty: Table, rows: Rows) -> None:
    table = empty.at(table_writes.insert(empty, rows(range(10))))
    assert table.scan().equals(rows(range(10)).cast(table.schema))
    assert table.scan(["n"], pc.field(ID) == "k3").to_pylist() == [{"n": 3}]
    assert table.scan(["n"], pc.field("n").isin([1, 12]) | (pc.field("n") > 8)).num_rows == 2
    assert table.scan([ID], limit=4).num_rows == 4
    found = table.scan([], pc.field("n") >= 8, with_row_id=True, with_row_address=True)
    assert found.to_pydict() == {"_rowid": [8, 9], "_rowaddr": [8, 9]}
    assert sum(batch.num_rows for batch in table.batches([ID], pc.field("n") < 5)) == 5


def test_quotes_in_a_value_are_only_a_value(local: Table) -> None:
    name = "o'hara\" or 1=1 --"
    table = local.at(table_writes.insert(local, pa.table({ID: [name, "other"]}, schema=_ids())))
    assert table.scan([ID], pc.field(ID) == name).to_pylist() == [{ID: name}]


def test_count(empty: Table, rows: Rows) -> None:
    table = empty.at(table_writes.insert(empty, rows(range(10))))
    with measure() as counted:
        assert table.count() == 10
    assert counted.total == 0
    assert table.count(pc.field("n") < 4) == 4


def test_a_missing_version_or_table_is_not_found(empty: Table) -> None:
    for location, version in [(empty.location, 7), (empty.location.join("none"), 1)]:
        with pytest.raises(StorageError) as missing:
            open_pin(location, version)
        assert missing.value.kind == "not_found"


def test_a_pin_opens_without_listing_and_once(empty: Table, rows: Rows) -> None:
    table = empty.at(table_writes.insert(empty, rows(range(3))))
    handles.forget(table.location)
    with measure() as cold:
        table.dataset()
    assert cold.lists == 0
    assert cold.total <= 2
    with measure() as warm:
        table.dataset()
    assert warm.total == 0


def test_handles_are_bounded_in_bytes_and_the_oldest_goes(tmp_path: Path, rows: Rows) -> None:
    location = Location.parse(str(tmp_path / "t"))
    table = Table(location, create_table(location, SCHEMA))
    pins = [table.pin]
    for number in range(3):
        pins.append(table_writes.insert(table.at(pins[-1]), rows([number])))
    cache = TableHandles(CacheBudget(2 * HANDLE_BYTES + 16 * 2**10))
    first = cache.open(location, pins[0].version)
    assert cache.open(location, pins[0].version) is first
    cache.open(location, pins[1].version)
    assert cache.open(location, pins[0].version) is first
    cache.open(location, pins[2].version)
    assert len(cache) == 2
    assert cache.open(location, pins[0].version) is first
    cache.forget(location)
    assert len(cache) == 0


def test_a_handle_weighs_more_with_every_fragment(local: Table, rows: Rows) -> None:
    cache = TableHandles(CacheBudget(2**30))
    table, weights = local, []
    for number in range(5):
        table = table.at(table_writes.insert(table, rows([number])))
        cache.clear()
        cache.open(table.location, table.pin.version)
        weights.append(cache.use().bytes)
    added = [after - before for before, after in pairwise(weights)]
    assert all(FRAGMENT_BYTES < more < 2 * FRAGMENT_BYTES for more in added), weights


def test_a_handle_weighs_the_row_ids_that_its_version_lists(local: Table, rows: Rows) -> None:
    """Rows that keep their ids while they move are listed one by one in every version."""
    cache = TableHandles(CacheBudget(2**30))
    table = local.at(table_writes.insert(local, rows(range(4_000))))
    cache.open(table.location, table.pin.version)
    plain = cache.use().bytes
    stored = table.scan(with_row_id=True, with_row_address=True)
    moved = stored.take([3 * ((7 * place) % 1_000) for place in range(1_000)])
    table = table.at(table_writes.update_rows(table, moved))
    cache.clear()
    cache.open(table.location, table.pin.version)
    assert cache.use().bytes - plain > 2 * moved.num_rows


def test_without_any_memory_for_caches_tables_are_read_all_the_same(
    local: Table, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    handles = TableHandles(CacheBudget(0))
    monkeypatch.setattr(session, "handles", handles)
    assert table.scan([ID]).num_rows == 3
    assert len(handles) == 0


def test_threads_share_one_handle(empty: Table) -> None:
    cache = TableHandles()
    found: list[int] = []

    def use() -> None:
        found.append(id(cache.open(empty.location, 1)))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1


def test_a_forked_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    shared_session()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(StorageError, match="spawn"):
        shared_session()


def test_locations_and_faults_import_nothing_heavy() -> None:
    code = (
        "import sys, omnigraph.storage.objects.location, "
        "omnigraph.storage.objects.control_objects, omnigraph.storage.objects.meter, "
        "omnigraph.storage.tables.table; "
        "print({'lance', 'pyarrow', 'obstore', 'numpy'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


def _ids() -> pa.Schema:
    return pa.schema([SCHEMA.field(ID)])
