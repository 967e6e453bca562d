"""Spools: rows come back in order, from memory or from a file that leaves nothing behind."""

from __future__ import annotations

import gc
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import StorageError
from omnigraph.rows.external_sort import Spool

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def rows(start: int, count: int) -> pa.Table:
    numbers = list(range(start, start + count))
    return pa.table({"id": [str(number) for number in numbers], "n": numbers}, SCHEMA)


def read(spool: Spool) -> list[int]:
    return [number for table in spool.tables() for number in table.column("n").to_pylist()]


@pytest.mark.parametrize("held_bytes", [1, 200, 1 << 20])
def test_rows_come_back_in_order_and_again(tmp_path: Path, held_bytes: int) -> None:
    spool = Spool(SCHEMA, directory=str(tmp_path), held_bytes=held_bytes)
    for start in (0, 7, 14):
        spool.add(rows(start, 7))
    spool.add(rows(0, 0))
    assert (spool.rows, read(spool), read(spool)) == (21, list(range(21)), list(range(21)))


def test_nothing_gives_nothing() -> None:
    assert read(Spool(SCHEMA)) == []


@pytest.mark.slow
def test_its_file_goes_with_it(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, directory=str(tmp_path), held_bytes=1)
    spool.add(rows(0, 10))
    assert read(spool) == list(range(10))
    del spool
    # A file that is still open would be told as a warning, which fails a test.
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    spool = Spool(SCHEMA, directory=str(tmp_path / "nowhere"), held_bytes=1)
    with pytest.raises(StorageError, match="TMPDIR"):
        spool.add(rows(0, 10))
