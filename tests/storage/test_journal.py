"""Journals: rows are added by whoever comes, and none is ever lost."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.logs.journal import Journal
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.location import Location
from tests.faults import armed

COLUMNS = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("at", pa.timestamp("us"))]
)
PROCESSES = 2
APPENDS = 10

starting_line: list[Barrier] = []
"""Of a worker: where all workers wait for each other."""


def journal_at(location: Location) -> Journal:
    return Journal(location, COLUMNS, key="id")


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "at": list(range(len(ids)))}, schema=COLUMNS)


def ids_of(journal: Journal) -> list[str]:
    found: list[str] = journal.read()["id"].to_pylist()
    return found


def test_an_absent_journal_has_no_rows_and_is_not_made_by_reading(location: Location) -> None:
    journal = journal_at(location)
    assert journal.read().num_rows == 0
    assert journal.read().schema == COLUMNS
    if location.is_local:
        assert not Path(location.path).exists()


def test_rows_stay_in_the_order_of_appending(location: Location) -> None:
    journal = journal_at(location)
    journal.append(rows("b", "a"))
    journal.append(rows("c"))
    journal.append(rows("a"))
    assert ids_of(journal) == ["b", "a", "c", "a"]
    assert journal.read()["at"].cast(pa.int64()).to_pylist() == [0, 1, 0, 0]
    assert ids_of(journal_at(location)) == ["b", "a", "c", "a"]


def test_rows_of_other_columns_are_refused(tmp_path: Path) -> None:
    journal = journal_at(Location.parse(str(tmp_path / "journal")))
    with pytest.raises(StorageError):
        journal.append(pa.table({"id": ["a"], "other": [1]}))
    assert journal.read().num_rows == 0


def test_a_creation_whose_answer_is_lost_goes_on(tmp_path: Path) -> None:
    journal = journal_at(Location.parse(str(tmp_path / "journal")))
    with armed("after_commit") as fault:
        journal.append(rows("a"))
    assert fault.fired == 1
    assert ids_of(journal) == ["a"]


@pytest.mark.parametrize(("point", "expected"), [("before_commit", []), ("after_commit", ["a"])])
def test_a_failed_append_added_all_or_nothing(
    tmp_path: Path, point: str, expected: list[str]
) -> None:
    journal = journal_at(Location.parse(str(tmp_path / "journal")))
    with armed(point, skip=1), pytest.raises(StorageError):
        journal.append(rows("a"))
    assert ids_of(journal) == expected
    journal.append(rows("b"))
    assert ids_of(journal) == [*expected, "b"]


def test_a_creator_that_died_leaves_the_place_usable(tmp_path: Path) -> None:
    journal = journal_at(Location.parse(str(tmp_path / "journal")))
    with armed("before_commit"), pytest.raises(StorageError):
        journal.append(rows("a"))
    assert journal.read().num_rows == 0
    journal.append(rows("b"))
    assert ids_of(journal) == ["b"]


def test_reading_an_absent_journal_is_one_listing(s3_bucket: str) -> None:
    journal = journal_at(Location.parse(s3_bucket).join("journal"))
    with meter.measure() as measured:
        journal.read()
    assert measured.total <= 2, str(measured)


def line_up(line: Barrier) -> None:
    """Begin a worker: a barrier is handed over at the start of a process, or not at all."""
    starting_line.append(line)


def append_many(uri: str, worker: int) -> None:
    """Append to a journal that nobody has made yet, at the same moment as everybody else."""
    journal = journal_at(Location.parse(uri))
    starting_line[0].wait(timeout=60)
    for number in range(APPENDS):
        journal.append(rows(f"{worker}-{number}"))


@pytest.mark.slow
def test_processes_that_create_and_append_lose_no_row(location: Location) -> None:
    spawn = multiprocessing.get_context("spawn")
    line = spawn.Barrier(PROCESSES)
    with spawn.Pool(PROCESSES, initializer=line_up, initargs=(line,)) as pool:
        pool.starmap(
            append_many, [(location.uri, worker) for worker in range(PROCESSES)], chunksize=1
        )
    found = ids_of(journal_at(location))
    for worker in range(PROCESSES):
        mine = [name for name in found if name.startswith(f"{worker}-")]
        assert mine == [f"{worker}-{number}" for number in range(APPENDS)]
    assert len(found) == PROCESSES * APPENDS
