from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.lang.structural import ID
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables import write_rows
from omnigraph.storage.tables.new_columns import (
    NewColumn,
    WrittenColumns,
    commit_columns,
    write_columns,
)
from omnigraph.storage.tables.reachable_files import files_of
from omnigraph.storage.tables.table import Table, create_table
from tests import table_indexing, table_writes
from tests.storage.sample import Rows, validate
from tests.table_writes import all_files


def test_a_new_table(empty: Table) -> None:
    files = files_of(empty)
    assert files == {
        "_versions/18446744073709551614.manifest",
        f"_transactions/0-{empty.pin.transaction_uuid}.txn",
    }
    assert files <= all_files(empty)


def test_every_version_names_its_own(empty: Table, rows: Rows) -> None:
    table = empty.at(table_writes.insert(empty, rows(range(10))))
    inserted = files_of(table)
    assert len(inserted) == 3
    table = table.at(write_rows.delete_addresses(table, [1, 2]))
    assert {name.split("/")[0] for name in files_of(table) - inserted} == {
        "_deletions",
        "_transactions",
        "_versions",
    }
    table = table.at(table_indexing.create_index(table, "text", "INVERTED"))
    table = table.at(table_indexing.create_index(table, "n", "BTREE"))
    assert len({name.split("/")[1] for name in files_of(table) if name.startswith("_ind")}) == 2
    assert files_of(table) <= all_files(table)


def test_the_named_files_are_enough(tmp_path: Path) -> None:
    """A copy of nothing but these files is the whole version."""
    blobs = Location.parse(str(tmp_path / "blobs"))
    schema = pa.schema([pa.field(ID, pa.string(), nullable=False), lance.blob_field("blob")])
    content = [b"small", None, b"m" * 100_000, b"l" * 5_000_000]
    data = pa.table([pa.array(["a", "b", "c", "d"]), lance.blob_array(content)], schema=schema)
    table = Table(blobs, create_table(blobs, schema))
    table_writes.insert(table, data)  # files that no wanted version refers to
    table = table.at(table_writes.insert(table, data))
    table = table.at(write_rows.delete_addresses(table, [0]))
    table = table.at(table_indexing.create_index(table, ID, "BTREE"))
    assert files_of(table) < all_files(table)
    assert len([name for name in files_of(table) if name.endswith(".blob")]) == 2
    copy = Location.parse(str(tmp_path / "copy"))
    for name in files_of(table):
        target = Path(copy.path, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(Path(table.location.path, name), target)
    copied = Table(copy, table.pin)
    validate(copied)
    found = copied.dataset().to_table(
        filter=pc.field(ID).isin(["b", "c", "d"]), blob_handling="all_binary"
    )
    assert dict(zip(found[ID].to_pylist(), found["blob"].to_pylist(), strict=True)) == {
        "b": None,
        "c": content[2],
        "d": content[3],
    }


def test_after_changes_of_columns(local: Table, rows: Rows) -> None:
    table = local.at(table_writes.insert(local, rows(range(3))))
    before = files_of(table)
    column = NewColumn(pa.field("n@7", pa.float64()), source="n")
    written = WrittenColumns(write_columns(table, [column], [0]))
    table = table.at(commit_columns(table, [column], written))
    kept = {name for name in before if name.startswith("data/")}
    assert kept | set(written.names) <= files_of(table)
    assert files_of(table) <= all_files(table)


@pytest.mark.parametrize("version", [1, 7])
def test_linear_versions_too(version: int, local: Table, rows: Rows) -> None:
    dataset = local.dataset()
    for number in range(1, version):
        dataset = lance.write_dataset(rows([number]), local.location.uri, mode="append")
    table = local.at(type(local.pin)(version, None, version - 1))
    assert files_of(table) <= all_files(table)
    assert dataset.version == version
