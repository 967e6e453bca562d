from __future__ import annotations

import pyarrow.compute as pc
import pytest

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables.table import Table
from tests import faults, table_writes
from tests.storage.sample import Rows


def test_nothing_is_nothing() -> None:
    with measure() as counted:
        pass
    assert counted.total == 0
    assert str(counted) == "no request"


def test_a_detached_insert_is_three_puts(empty: Table, rows: Rows) -> None:
    empty.dataset()
    with measure() as counted:
        table_writes.insert(empty, rows(range(3)))
    assert (counted.puts, counted.total) == (3, 3)


def test_reading_puts_nothing(empty: Table, rows: Rows) -> None:
    table = empty.at(table_writes.insert(empty, rows(range(3))))
    with measure() as counted:
        table.scan(["n"], pc.field(ID) == "k1")
    assert counted.gets > 0
    assert counted.puts == counted.deletes == counted.lists == 0


def test_blocks_may_nest_and_fail(empty: Table, rows: Rows) -> None:
    with measure() as outer:
        with measure() as inner:
            empty.dataset()
        with faults.armed("after_commit"), pytest.raises(StorageError), measure() as failed:
            table_writes.insert(empty, rows([1]))
    assert failed.total == 3
    assert outer.total == inner.total + 3
