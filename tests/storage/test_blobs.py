from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import Blob

from omnigraph.errors import StorageError
from omnigraph.lang.structural import ID
from omnigraph.storage.indexes import table_indexes
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, create_table
from tests import table_writes
from tests.storage.sample import validate

SCHEMA = pa.schema(
    [
        pa.field(ID, pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        lance.blob_field("blob"),
    ]
)
CONTENT: dict[str, bytes | None] = {
    "small": b"small",
    "none": None,
    "empty": b"",
    "middle": b"m" * 100_000,
    "large": b"l" * 5_000_000,
}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    location = Location.parse(str(tmp_path / "blobs"))
    blobs = lance.blob_array(
        [Blob.empty() if content == b"" else content for content in CONTENT.values()]
    )
    columns = [pa.array(list(CONTENT)), pa.array([1] * len(CONTENT)), blobs]
    empty = Table(location, create_table(location, SCHEMA))
    return empty.at(table_writes.insert(empty, pa.table(columns, schema=SCHEMA)))


def content(table: Table) -> dict[str, bytes | None]:
    found = table.scan([ID, "blob"], with_blobs=True)
    return dict(zip(found[ID].to_pylist(), found["blob"].to_pylist(), strict=True))


def test_content_comes_back(table: Table) -> None:
    assert content(table) == CONTENT
    [batch] = table.batches(["blob"], pc.field(ID) == "small", with_blobs=True)
    assert batch["blob"].to_pylist() == [b"small"]


def test_an_update_of_other_columns_keeps_the_blobs(table: Table) -> None:
    found = table.scan(with_row_id=True, with_row_address=True, with_blobs=True)
    found = found.set_column(1, "n", pa.array([2] * found.num_rows))
    after = table.at(table_writes.update_rows(table, found))
    assert content(after) == CONTENT
    assert after.count(pc.field("n") == 2) == len(CONTENT)
    validate(after)
    compacted = after.at(table_indexes.compact(after))
    assert content(compacted) == CONTENT


def test_an_update_without_the_bytes_is_refused(table: Table) -> None:
    described = table.scan(with_row_id=True, with_row_address=True)
    with pytest.raises(StorageError):
        table_writes.update_rows(table, described)
    partial = table.scan([ID, "n"], with_row_id=True, with_row_address=True)
    with pytest.raises(StorageError, match="needs 'blob' too"):
        table_writes.update_rows(table, partial)


def test_an_update_of_blobs(table: Table) -> None:
    found = table.scan([ID, "n"], pc.field(ID) == "large", with_row_id=True, with_row_address=True)
    found = found.append_column(SCHEMA.field("blob"), lance.blob_array([b"new"]))
    after = table.at(table_writes.update_rows(table, found))
    assert content(after) == {**CONTENT, "large": b"new"}
