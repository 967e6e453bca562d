"""Optimizing while others write: nobody is disturbed, nothing is lost, and it gets done."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.maintain import optimize
from tests import faults
from tests.maintain.indexing import LONG, book, check_filters, cites, load, states
from tests.maintain.test_optimize import BOOK, CITES, fragments, grown, told
from tests.storage.sample import validate
from tests.write.processes import context
from tests.write.writing import image, mutate, overtaken, table_of

pytestmark = pytest.mark.slow

Change = Callable[[og.Graph], object]

CHANGES: dict[str, Change] = {
    "insert": lambda graph: load(graph, book(50, blurb=f"{LONG}new")),
    "update": lambda graph: load(graph, book(3, blurb=f"{LONG}new", pages=77), mode="merge"),
    "delete": lambda graph: mutate(graph, "delete Book where pages < 5"),
    "overwrite": lambda graph: load(graph, book(60), cites(60, 60), mode="overwrite"),
    "schema": lambda graph: graph.apply_schema(
        graph.schema.replace("shelf: String?", "shelf: String?\n    row: I64?")
    ),
    "optimize": lambda graph: graph.optimize(),
    "clustered": lambda graph: graph.optimize(cluster=True),
    "ensure": lambda graph: graph.ensure_indices(),
}


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("seed") / "library.omni"
    graph = grown(root)
    graph.optimize()
    for number in range(20, 24):
        load(graph, book(number), cites(number, 0))
    mutate(graph, 'delete Book where title = "book 0021"')
    return root


@pytest.fixture
def graph(seed: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(seed, tmp_path / "library.omni")
    return og.open(tmp_path / "library.omni")


def shown(graph: og.Graph) -> dict[str, object]:
    """All rows, but for ids that are made up."""
    found = image(graph)
    return {BOOK: found[BOOK], CITES: sorted(map(str, found[CITES].values()))}


@pytest.mark.parametrize("point", ["changes_checked", "rows_written", "table_staged"])
@pytest.mark.parametrize("change", CHANGES)
def test_what_others_do_meanwhile_is_kept(
    graph: og.Graph, seed: Path, tmp_path: Path, change: str, point: str
) -> None:
    shutil.copytree(seed, tmp_path / "apart.omni")
    apart = og.open(tmp_path / "apart.omni")
    CHANGES[change](apart)
    with overtaken(graph, point, CHANGES[change]) as fault:
        report = graph.optimize()
    assert fault.fired == 1
    assert {one.skipped for one in report.datasets} <= {None, optimize.OVERTAKEN}
    assert shown(graph) == shown(apart)
    check_filters(graph)
    validate(table_of(graph, BOOK))
    graph.optimize()
    assert shown(graph) == shown(apart)
    assert {one.state for one in states(graph).values()} <= {"complete", "none", "pending"}
    assert fragments(graph, BOOK) == 1
    check_filters(graph)
    assert graph.optimize().commit_id is None


def test_an_insert_does_not_undo_the_work(graph: og.Graph) -> None:
    """What was built on new fragments holds although others have added some meanwhile."""
    with overtaken(graph, "table_staged", CHANGES["insert"]):
        report = graph.optimize()
    assert report.commit_id is not None
    assert told(report)[BOOK].skipped is None
    assert told(report)[BOOK].pending == ()
    assert fragments(graph, BOOK) == 2
    lagging = states(graph)[BOOK, "pages", "BTREE"]
    assert lagging.rows_total - lagging.rows_covered == 1


def test_it_gives_up_politely(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimize, "ROUNDS", 2)
    busy: list[int] = []

    def change_all(other: og.Graph) -> None:
        if not busy:  # it passes the same point itself
            busy.append(1)
            mutate(other, "update Book set { pages: 7 } where pages >= 0")
            load(other, book(100 + len(other.commits.list())))
            busy.clear()

    with overtaken(graph, "rows_written", change_all, times=None):
        report = graph.optimize(types=["Book"])
    assert report.commit_id is None
    assert told(report)[BOOK].skipped == optimize.OVERTAKEN
    assert not told(report)[BOOK].committed
    assert graph.commits.list()[0].actor == "other"
    assert told(graph.optimize(types=["Book"]))[BOOK].committed


def test_two_at_once_and_writers(graph: og.Graph) -> None:
    failed: list[BaseException] = []
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
            failed.append(error)

    def insert(mine: og.Graph, number: int) -> None:
        load(mine, book(number), cites(number, 0))
        wrote.append(f"book {number:04}")

    def delete(mine: og.Graph, number: int) -> None:
        load(mine, book(number), mode="merge")
        try:
            mutate(mine, f'delete Book where title = "book {number:04}"')
        except errors.ReadSetChanged as error:  # nobody else touches that row
            failed.append(error)

    threads = [
        threading.Thread(target=work, args=(step, start))
        for step, start in (
            (insert, 1_000),
            (delete, 5_000),
            (lambda mine, _: mine.optimize(), 0),
        )
    ]
    for thread in threads:
        thread.start()
    commits = []
    try:
        for _ in range(3):
            commits.append(graph.optimize().commit_id)
            check_filters(graph)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []
    found = set(image(graph)[BOOK])
    assert set(wrote) <= found
    graph.optimize()
    check_filters(graph)
    assert set(image(graph)[BOOK]) == found
    assert fragments(graph, BOOK) == 1
    assert any(one.metadata.get("operation") == "optimize" for one in graph.commits.list())


# -- two classes, one door ---------------------------------------------------------------


def run_elsewhere(root: str, deed: str) -> None:
    """What another process does."""
    graph = og.open(root, actor="other")
    if deed == "optimize":
        assert graph.optimize().commit_id is not None
    else:
        mutate(graph, 'update Book set { pages: 1 } where title = "book 0003"')


def elsewhere(graph: og.Graph, deed: str) -> None:
    process = context.Process(target=run_elsewhere, args=(str(graph.location), deed))
    process.start()
    process.join()
    assert process.exitcode == 0


def test_a_strict_delete_after_another_process_optimized_succeeds(graph: og.Graph) -> None:
    graph.snapshot()
    with faults.observed("changes_checked", lambda: elsewhere(graph, "optimize"), times=1) as fault:
        mutate(graph, 'delete Book where title = "book 0003"')
    assert fault.fired == 1
    assert "book 0003" not in image(graph)[BOOK]
    assert graph.commits.list()[1].metadata["operation"] == "optimize"
    load(graph, book(80))
    elsewhere(graph, "optimize")
    mutate(graph, 'update Book set { pages: 9 } where title = "book 0001"')
    assert image(graph)[BOOK]["book 0001"]["pages"] == 9
    check_filters(graph)


def test_a_strict_update_after_another_process_changed_the_row_is_refused(graph: og.Graph) -> None:
    graph.snapshot()
    with (
        faults.observed("changes_checked", lambda: elsewhere(graph, "update"), times=1),
        pytest.raises(errors.ReadSetChanged) as refused,
    ):
        mutate(graph, 'update Book set { pages: 9 } where title = "book 0003"')
    assert refused.value.code == "read_set_conflict"
    assert image(graph)[BOOK]["book 0003"]["pages"] == 1
    assert graph.commits.list()[0].actor == "other"


STRICT: dict[str, Change] = {
    "update": lambda graph: mutate(graph, 'update Book set { pages: 9 } where title = "book 0003"'),
    "update many": lambda graph: mutate(graph, "update Book set { pages: 9 } where pages >= 10"),
    "delete many": lambda graph: mutate(graph, "delete Book where pages >= 10"),
    "delete edges": lambda graph: mutate(graph, 'delete Cites where to = "book 0000"'),
    "insert": lambda graph: mutate(graph, 'insert Book { title: "new", genre: "crime" }'),
    "upsert": lambda graph: load(graph, book(3, pages=9), mode="merge"),
    "overwrite": lambda graph: load(graph, cites(3, 3), mode="overwrite"),
    "schema": lambda graph: graph.apply_schema(
        graph.schema.replace("pages: I64?", "stars: I64 @default(3)\n    pages: I64?")
    ),
    "required": lambda graph: graph.apply_schema(
        graph.schema.replace("pages: I64? @index", "pages: I64 @index")
    ),
    "merge": lambda graph: graph.branches.merge("dev"),
}


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("change", STRICT)
def test_whoever_was_overtaken_by_maintenance_alone_goes_through(
    graph: og.Graph,
    change: str,
    clustered: bool,
) -> None:
    graph.branches.create("dev")
    load(graph, book(70), book(0, pages=5), mode="merge", branch="dev")
    mutate(graph, 'delete Book where title = "book 0010"', branch="dev")
    shutil.copytree(str(graph.location), f"{graph.location}.again")
    STRICT[change](graph)
    expected = shown(graph)
    again = og.open(f"{graph.location}.again")
    with overtaken(again, "changes_checked", lambda one: one.optimize(cluster=clustered)) as fault:
        STRICT[change](again)
    assert fault.fired == 1
    assert shown(again) == expected
    assert "optimize" in [commit.metadata.get("operation") for commit in again.commits.list()]
    validate(table_of(again, BOOK))
    check_filters(again)
