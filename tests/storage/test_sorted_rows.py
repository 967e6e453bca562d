"""Rows in the order of their ids, however small the runs, and without holding them all."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.rows.external_sort import SortLimits
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.sorted_scan import sorted_batches
from omnigraph.storage.tables.table import Table, create_table
from tests.storage.sample import SCHEMA, make_rows
from tests.table_writes import insert

TINY = SortLimits(run_rows=3, fan_in=2, batch_rows=2)
IDS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True, max_size=40)


def make_table(directory: Path, rows: list[pa.Table]) -> Table:
    location = Location.parse(str(directory))
    table = Table(location, create_table(location, SCHEMA))
    for part in rows:
        table = table.at(insert(table, part))
    return table


def ids_of(table: Table, limits: SortLimits) -> list[str]:
    batches = sorted_batches(table, [ID], limits=limits)
    return [id_ for batch in batches for id_ in batch[ID].to_pylist()]


def test_an_empty_table_has_no_batches(tmp_path: Path) -> None:
    assert list(sorted_batches(make_table(tmp_path, []))) == []


def test_all_columns_stay_together(tmp_path: Path) -> None:
    rows = make_rows([5, 3, 12, 1, 40, 7, 2])
    table = make_table(tmp_path, [rows.slice(0, 3), rows.slice(3)])
    found = pa.Table.from_batches(sorted_batches(table, limits=TINY))
    assert found.to_pylist() == rows.sort_by(ID).to_pylist()


def test_batches_are_as_small_as_asked(tmp_path: Path) -> None:
    table = make_table(tmp_path, [make_rows(range(50))])
    for limits in (TINY, SortLimits(batch_rows=2)):
        assert max(batch.num_rows for batch in sorted_batches(table, limits=limits)) <= 2
    narrow = sorted_batches(table, limits=SortLimits(batch_bytes=1))
    assert [batch.num_rows for batch in narrow] == [1] * 50


def test_row_addresses_come_along(tmp_path: Path) -> None:
    table = make_table(tmp_path, [make_rows([3, 1, 2])])
    [batch] = sorted_batches(table, [ID], with_row_address=True)
    assert batch["_rowaddr"].to_pylist() == [1, 2, 0]


@pytest.mark.slow
@given(ids=IDS, run_rows=st.integers(1, 20), fan_in=st.integers(2, 4), data=st.data())
def test_the_size_of_runs_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    ids: list[str],
    run_rows: int,
    fan_in: int,
    data: st.DataObject,
) -> None:
    rows = pa.table({ID: ids, "n": range(len(ids))}, schema=SCHEMA.remove(3).remove(2))
    cut = data.draw(st.integers(0, len(ids)))
    table = make_table(tmp_path_factory.mktemp("table"), [rows.slice(0, cut), rows.slice(cut)])
    limits = SortLimits(run_rows=run_rows, fan_in=fan_in, batch_rows=data.draw(st.integers(1, 9)))
    wanted = sorted(ids, key=str.encode)
    assert ids_of(table, SortLimits()) == wanted
    assert ids_of(table, limits) == wanted


def test_runs_end_by_bytes_too(tmp_path: Path) -> None:
    table = make_table(tmp_path, [make_rows(range(200, 0, -1))])
    limits = SortLimits(run_bytes=200, batch_rows=4, fan_in=3)
    assert ids_of(table, limits) == sorted(f"k{number}" for number in range(1, 201))


def test_one_run_needs_no_file_and_several_leave_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    table = make_table(tmp_path / "table", [make_rows(range(30))])
    batches = sorted_batches(table, limits=TINY)
    next(batches)
    # The files have no names: even a killed process leaves nothing behind.
    assert list(scratch.iterdir()) == []
    del batches
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    assert len(list(sorted_batches(table))) == 1
    with pytest.raises(StorageError, match="TMPDIR") as refused:
        list(sorted_batches(table, limits=TINY))
    assert refused.value.kind == "configuration"


@pytest.mark.slow
@pytest.mark.parametrize("step", [7919, 1], ids=["shuffled", "in order"])
def test_memory_does_not_grow_with_the_table(tmp_path: Path, step: int) -> None:
    limits = SortLimits(run_rows=2_000, run_bytes=1 << 20, fan_in=4, batch_rows=500)
    peaks = []
    for size in (8_000, 32_000):
        ids = [f"k{index * step % 65_537:06}" for index in range(size)]
        rows = make_rows(range(size)).set_column(0, SCHEMA.field(ID), pa.array(ids))
        table = make_table(tmp_path / str(size), [rows])
        del rows
        gc.collect()
        before = pa.total_allocated_bytes()
        seen = peak = 0
        for batch in sorted_batches(table, limits=limits):
            seen += batch.num_rows
            peak = max(peak, pa.total_allocated_bytes() - before)
        assert seen == size
        peaks.append(peak)
    small, large = peaks
    assert large <= small * 1.5
    assert large < 4 * limits.run_bytes
