"""Tables to write to: on the local disk, and on a real S3-compatible server."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest

from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, create_table
from tests.storage.sample import SCHEMA, Rows, make_rows
from tests.storage.trap_table import rows as trap_rows


@pytest.fixture
def rows() -> Rows:
    return make_rows


@pytest.fixture(params=["local", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A place for a table, once on each kind of storage."""
    if request.param == "s3":
        return Location.parse(request.getfixturevalue("s3_bucket")).join("table")
    return Location.parse(str(tmp_path / "table"))


@pytest.fixture
def empty(location: Location) -> Table:
    """A table without rows, on each kind of storage."""
    return Table(location, create_table(location, SCHEMA))


@pytest.fixture
def local(tmp_path: Path) -> Table:
    """A table without rows on the local disk."""
    place = Location.parse(str(tmp_path / "table"))
    return Table(place, create_table(place, SCHEMA))


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """A table of ten rows at version 1."""
    path = str(tmp_path / "table")
    lance.write_dataset(
        trap_rows(*range(10)),
        path,
        mode="create",
        enable_stable_row_ids=True,
        data_storage_version="2.2",
    )
    return path
