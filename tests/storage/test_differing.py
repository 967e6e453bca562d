"""Rows that two versions do not share: found by place, named without reading what is far apart."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.lang.structural import ID
from omnigraph.storage.indexes import table_indexes
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables import version_diff, write_rows
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.version_diff import rows_only_in
from tests import table_writes
from tests.storage.sample import make_rows

PLACED = [ID, "_rowid", "_rowaddr"]


@pytest.fixture(params=[0, 64], ids=["picked", "by default"])
def _dense(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In tables as small as these, nearly all rows are dense otherwise."""
    monkeypatch.setattr(version_diff, "DENSE", request.param)


def located(table: Table, ids: list[str]) -> pa.Table:
    wanted = pc.field(ID).isin(ids)
    return table.scan(None, wanted, with_row_id=True, with_row_address=True)


def update(table: Table, ids: list[str]) -> Table:
    found = located(table, ids)
    changed = found.set_column(1, "n", pc.add(found["n"], 1000))
    return table.at(table_writes.update_rows(table, changed))


def delete(table: Table, ids: list[str]) -> Table:
    return table.at(write_rows.delete_addresses(table, located(table, ids)["_rowaddr"]))


def insert(table: Table, numbers: list[int]) -> Table:
    return table.at(table_writes.insert(table, make_rows(numbers)))


def compact(table: Table) -> Table:
    return table.at(table_indexes.compact(table))


def by_place(table: Table) -> dict[tuple[str, int], dict[str, Any]]:
    """Every row by the file that it is in and its number there."""
    fragments = table.dataset().get_fragments()
    files = {part.fragment_id: part.metadata.files[0].path for part in fragments}
    rows = table.scan([ID], with_row_id=True, with_row_address=True).to_pylist()
    return {(files[row["_rowaddr"] >> 32], row["_rowaddr"] & 0xFFFFFFFF): row for row in rows}


def check(one: Table, other: Table) -> None:
    ours, theirs = by_place(one), by_place(other)
    wanted = sorted((row for place, row in ours.items() if place not in theirs), key=str)
    found = [row for batch in rows_only_in(one, other, PLACED) for row in batch.to_pylist()]
    assert sorted(found, key=str) == wanted
    assert version_diff.count_only_in(one, other) == len(wanted)


@pytest.mark.slow
@pytest.mark.usefixtures("_dense")
@pytest.mark.parametrize("seed", range(6))
def test_rows_of_two_lines_of_versions(local: Table, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a test that can be repeated
    base = insert(local, list(range(100)))
    versions = [base]
    for line in (1, 2):
        here = base
        for step in range(6):
            known = sorted(here.scan([ID])[ID].to_pylist())
            few = chance.sample(known, 5)
            match chance.choice(["insert", "update", "update", "delete", "compact"]):
                case "insert":
                    # Both lines give the same row ids to rows of their own.
                    start = 1000 * line + 10 * step
                    here = insert(here, list(range(start, start + 10)))
                case "update":
                    here = update(here, few)
                case "delete":
                    here = delete(here, few)
                case "compact":
                    here = compact(here)
            versions.append(here)
    for one in versions:
        for other in versions:
            check(one, other)


@pytest.mark.usefixtures("_dense")
def test_a_row_id_means_nothing_across_fragments_that_are_not_shared(local: Table) -> None:
    """Both insert after the fork: the same row ids are different rows."""
    base = insert(local, list(range(50)))
    one, other = insert(base, [100, 101]), insert(base, [200, 201])
    check(one, update(other, ["k200"]))
    check(one, update(other, ["k200", "k7"]))
    check(update(one, ["k7"]), update(other, ["k7", "k8"]))


@pytest.mark.slow
def test_rows_that_were_written_again_are_named_by_few_requests(local: Table) -> None:
    base = insert(local, list(range(60_000)))
    ids = [f"k{number}" for number in range(0, 60_000, 300)]
    after = update(base, ids)
    with measure() as meter:
        found = [row for batch in rows_only_in(base, after, PLACED) for row in batch.to_pylist()]
    assert sorted(row[ID] for row in found) == sorted(ids)
    assert meter.total <= 8, str(meter)


@pytest.mark.slow
def test_rows_that_were_deleted_are_named_by_the_version_that_has_them(local: Table) -> None:
    base = insert(local, list(range(60_000)))
    ids = [f"k{number}" for number in range(0, 60_000, 3000)]
    check(base, delete(base, ids))
    check(base, delete(update(base, ids), ids[:7]))
