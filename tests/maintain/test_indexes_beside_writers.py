"""Building indexes while others write: nobody is disturbed, no row is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.manifest.publish_request import AdvanceTable, PendingCommit, PublishRequest
from omnigraph.write.publish.staging import stamp
from tests import faults
from tests.maintain.indexing import LONG, book, check_filters, cites, ids, library, load, states
from tests.table_writes import update_rows
from tests.write.writing import compact_all, image, mutate, overtaken, table_of

pytestmark = pytest.mark.slow

BOOK = "node:Book"
Change = Callable[[og.Graph], object]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return library(tmp_path / "library.omni")


def insert_and_compact(graph: og.Graph) -> None:
    load(graph, book(51))
    compact_all(graph)


CHANGES: dict[str, Change] = {
    "insert": lambda graph: load(graph, book(50, blurb=f"{LONG}new")),
    "update": lambda graph: load(graph, book(3, blurb=f"{LONG}new", pages=77), mode="merge"),
    "delete": lambda graph: mutate(graph, "delete Book where pages < 5"),
    "overwrite": lambda graph: load(graph, book(60), cites(60, 60), mode="overwrite"),
    "edges": lambda graph: load(graph, cites(3, 9), cites(9, 3)),
    "compact": insert_and_compact,
}


REWRITTEN = {"overwrite", "compact"}
"""The changes after which nothing is left that an index was built on."""


@pytest.mark.parametrize("point", ["rows_written", "table_staged"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_others_write_meanwhile_is_kept(graph: og.Graph, change: str, point: str) -> None:
    apart = library(Path(f"{graph.location}.apart"))
    CHANGES[change](apart)
    expected = image(apart)
    with overtaken(graph, point, CHANGES[change]) as fault:
        report = graph.ensure_indices()
    assert fault.fired == 1
    assert report.commit_id == graph.commits.list()[0].id
    assert {key: set(rows) for key, rows in image(graph).items() if key == BOOK} == {
        BOOK: set(expected[BOOK])
    }
    assert len(image(graph)["edge:Cites"]) == len(expected["edge:Cites"])
    assert {name: row["pages"] for name, row in image(graph)[BOOK].items()} == {
        name: row["pages"] for name, row in expected[BOOK].items()
    }
    check_filters(graph)
    left = {(one.type_key, one.property, one.kind) for one in graph.index_status().pending}
    done = {(one.type_key, one.property, one.kind) for one in report.changes}
    assert len(done) + len(left) == 13
    assert len(report.pending) == len(left)
    assert {key[0] for key in left} <= ({BOOK} if change in REWRITTEN else set())
    graph.ensure_indices()
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    check_filters(graph)


def slip_in(graph: og.Graph) -> None:
    """A commit past the turns that writers of one process take."""
    shown = graph.snapshot().tables[BOOK]
    commit = PendingCommit.mint("rival")
    table = table_of(graph, BOOK)
    rows = table.scan(filter=pc.field("pages") == 3, with_row_id=True, with_row_address=True)
    at = rows.column_names.index("blurb")
    rows = rows.set_column(at, "blurb", pa.array([f"{LONG}new"] * rows.num_rows))
    pin = update_rows(table, rows, stamp=stamp(commit.id, "rival", "logical"))
    change = AdvanceTable(shown.identity, shown.version, pin)
    graph.manifest.publish("main", PublishRequest(commit, (change,)))


def test_a_long_build_is_not_repeated_because_somebody_wrote(graph: og.Graph) -> None:
    built: list[str] = []

    def watch(point: str, target: str) -> None:
        if point == "rows_written":
            built.append(target)

    with faults.watched(watch), overtaken(graph, "publish_ready", slip_in, times=3) as fault:
        graph.ensure_indices()
    assert fault.fired == 3
    assert built == ["edge:Cites", BOOK]
    lagging = states(graph)[BOOK, "blurb", "NGRAM"]
    assert (lagging.state, lagging.rows_covered, lagging.rows_total) == ("partial", 19, 20)
    found = pc.match_substring(pc.field("blurb"), "new")
    assert ids(table_of(graph, BOOK).scan([ID], found)) == ["book 0003"]
    check_filters(graph)


def test_two_that_build_the_same(graph: og.Graph) -> None:
    with overtaken(graph, "table_staged", lambda other: other.ensure_indices()):
        report = graph.ensure_indices()
    assert report.commit_id is None, "the other one has done it all"
    assert [one.segments for one in states(graph).values() if one.kind] == [1] * 13
    load(graph, book(50))
    with overtaken(graph, "table_staged", lambda other: other.ensure_indices()):
        graph.ensure_indices()
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    check_filters(graph)


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "compact"])
def test_a_writer_is_not_disturbed(graph: og.Graph, change: str) -> None:
    with overtaken(graph, "changes_checked", lambda other: other.ensure_indices()) as fault:
        CHANGES[change](graph)
    assert fault.fired == 1
    operations = [commit.metadata.get("operation") for commit in graph.commits.list()[:2]]
    assert operations[1] == "ensure_indices"
    check_filters(graph)


def test_a_merge_is_not_disturbed(graph: og.Graph) -> None:
    graph.branches.create("dev")
    load(graph, book(50), branch="dev")
    with overtaken(graph, "changes_checked", lambda other: other.ensure_indices()):
        graph.branches.merge("dev")
    assert "book 0050" in image(graph)[BOOK]
    check_filters(graph)


def test_racing_writers(graph: og.Graph) -> None:
    """Writers and builders in one process and on handles of their own, for some rounds."""
    errors: list[BaseException] = []
    wrote: list[str] = []
    stop = threading.Event()

    def work(step: Callable[[og.Graph, int], object], start: int) -> None:
        mine = og.open(str(graph.location))
        number = start
        try:
            while not stop.is_set():
                step(mine, number)
                number += 1
        except BaseException as error:  # noqa: BLE001 - told by the test
            errors.append(error)

    def insert(mine: og.Graph, number: int) -> None:
        load(mine, book(number))
        wrote.append(f"book {number:04}")

    def update(mine: og.Graph, number: int) -> None:
        load(mine, book(3, pages=number), mode="merge")

    threads = [
        threading.Thread(target=work, args=(step, start))
        for step, start in ((insert, 1_000), (insert, 5_000), (update, 100))
    ]
    for thread in threads:
        thread.start()
    commits = []
    try:
        for _ in range(6):
            commits.append(graph.ensure_indices().commit_id)
            check_filters(graph)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert None not in commits, "there was always something to do, and it was done"
    assert set(wrote) <= set(image(graph)[BOOK])
    assert len(wrote) > 6
    check_filters(graph)
    graph.ensure_indices()
    books = table_of(graph, BOOK)
    for number in (1_000, 5_000):
        assert ids(books.scan([ID], pc.field("pages") == number)) == [f"book {number:04}"]
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
