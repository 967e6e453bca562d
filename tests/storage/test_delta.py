"""The difference between two versions of a table: what came, what went, what stayed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.lang.structural import ID
from omnigraph.storage.indexes.table_indexes import compact
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.storage.tables.version_diff import FragmentDelta, fragment_delta
from omnigraph.storage.tables.write_rows import delete_addresses
from tests.storage.sample import Rows
from tests.table_indexing import create_index
from tests.table_writes import insert, overwrite, update_rows

NONE: frozenset[int] = frozenset()


@pytest.fixture
def table(local: Table, rows: Rows) -> Table:
    """Nine rows in three fragments."""
    for start in (0, 3, 6):
        local = local.at(insert(local, rows(range(start, start + 3))))
    return local


def address(table: Table, *names: str) -> np.ndarray:
    found = table.scan([ID], with_row_address=True).to_pylist()
    places = {row[ID]: row[ROW_ADDRESS] for row in found}
    return np.array([places[name] for name in names], dtype=np.uint64)


def ids(delta: FragmentDelta) -> list[str]:
    return sorted(delta.rows([ID]).column(ID).to_pylist())


def test_the_same_version_has_no_difference(table: Table) -> None:
    delta = fragment_delta(table, table)
    assert (delta.added, delta.added_rows, delta.touched, delta.gone) == ((), 0, NONE, NONE)
    assert ids(delta) == []
    assert delta.rows([ID, "n"]).column_names[:2] == [ID, "n"]
    assert delta.keeps(address(table, "k0", "k8"))


def test_inserted_rows_are_added(table: Table, rows: Rows) -> None:
    after = table.at(insert(table, rows([20, 21])))
    delta = fragment_delta(table, after)
    assert (ids(delta), delta.added_rows, delta.touched) == (["k20", "k21"], 2, NONE)
    assert delta.keeps(address(table, "k0", "k4", "k8"))
    assert delta.keeps([])


def test_deleted_rows_are_not_kept(table: Table) -> None:
    after = table.at(delete_addresses(table, address(table, "k1")))
    delta = fragment_delta(table, after)
    assert (delta.added, len(delta.touched), delta.gone) == ((), 1, NONE)
    assert delta.keeps(address(table, "k0", "k2", "k5"))
    assert not delta.keeps(address(table, "k1"))
    assert not delta.keeps(address(table, "k0", "k1"))


def test_a_fragment_that_loses_all_rows_is_gone(table: Table) -> None:
    after = table.at(delete_addresses(table, address(table, "k3", "k4", "k5")))
    delta = fragment_delta(table, after)
    assert len(delta.gone) == 1
    assert not delta.keeps(address(table, "k4"))
    assert delta.keeps(address(table, "k2", "k6"))


def test_updated_rows_are_added_and_not_kept(table: Table) -> None:
    found = table.scan(with_row_id=True, with_row_address=True)
    changed = found.filter(pa.compute.equal(found[ID], "k4"))
    column = changed.column_names.index("n")
    changed = changed.set_column(column, "n", pa.array([99], pa.int64()))
    after = table.at(update_rows(table, changed))
    delta = fragment_delta(table, after)
    assert ids(delta) == ["k4"]
    assert delta.rows(["n"]).column("n").to_pylist() == [99]
    assert not delta.keeps(address(table, "k4"))
    assert delta.keeps(address(table, "k3", "k5"))


def test_an_index_makes_no_difference(table: Table) -> None:
    after = table.at(create_index(table, ID, "BTREE"))
    delta = fragment_delta(table, after)
    assert (delta.added, delta.touched) == ((), NONE)
    assert delta.keeps(address(table, "k0", "k8"))


def test_a_compaction_moves_every_row(table: Table) -> None:
    after = table.at(compact(table))
    delta = fragment_delta(table, after)
    assert delta.added_rows == 9
    assert len(ids(delta)) == 9
    assert not delta.keeps(address(table, "k0"))
    assert delta.keeps([])


def test_an_overwrite_leaves_nothing(table: Table, rows: Rows) -> None:
    """Fragment ids begin anew there, so that numbers alone would say that nothing happened."""
    after = table.at(overwrite(table, rows([50, 51, 52])))
    delta = fragment_delta(table, after)
    assert ids(delta) == ["k50", "k51", "k52"]
    assert len(delta.gone) == 3
    assert not delta.keeps(address(table, "k0"))


def test_two_lines_of_history_are_told_apart(table: Table, rows: Rows) -> None:
    """Both gave their new fragment the same number."""
    one = table.at(insert(table, rows([30])))
    other = table.at(insert(table, rows([31])))
    delta = fragment_delta(one, other)
    assert ids(delta) == ["k31"]
    assert not delta.keeps(address(one, "k30"))
    assert delta.keeps(address(one, "k0"))


def test_rows_deleted_before_stay_deleted(table: Table, rows: Rows) -> None:
    before = table.at(delete_addresses(table, address(table, "k1")))
    after = before.at(insert(before, rows([40])))
    delta = fragment_delta(before, after)
    assert (ids(delta), delta.touched) == (["k40"], NONE)
    assert delta.keeps(address(before, "k0", "k2"))


def test_as_many_rows_deleted_elsewhere_are_told_apart(table: Table) -> None:
    """Two versions of one fragment that lost as many rows, but not the same ones."""
    one = table.at(delete_addresses(table, address(table, "k1")))
    other = table.at(delete_addresses(table, address(table, "k2")))
    delta = fragment_delta(one, other)
    assert not delta.keeps(address(one, "k2"))
