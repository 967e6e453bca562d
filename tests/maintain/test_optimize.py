"""Optimizing a graph: what becomes of its files and indexes, and that nothing else does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.maintain import rewrite_choice
from omnigraph.maintain.reports import DatasetOptimize, OptimizeReport
from omnigraph.manifest import publisher
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import ROW_ID
from tests.maintain.indexing import book, check_filters, cites, ids, library, load, states
from tests.storage.sample import validate
from tests.write.writing import image, mutate, table_of, unchanged

BOOK, CITES, LOG = "node:Book", "edge:Cites", "__manifest"
SEARCH = """query q($w: String) {
    match { $b: Book search($b.blurb, $w) } return { $b.title, bm25($b.blurb, $w) as score }
    order { score desc, $b.title }
}"""


def grown(root: Path, count: int = 6) -> og.Graph:
    """A library in many fragments, some of whose rows were changed or deleted."""
    graph = library(root, 4)
    for number in range(10, 10 + count):
        load(graph, book(number), cites(number, 0))
    load(graph, book(3, pages=300), mode="merge")
    mutate(graph, 'delete Book where title = "book 0002"')
    return graph


def fragments(graph: og.Graph, key: str, branch: str = "main") -> int:
    return len(layout_of(table_of(graph, key, branch)).parts)


def told(report: OptimizeReport) -> dict[str, DatasetOptimize]:
    return {one.type_key: one for one in report.datasets}


def found(graph: og.Graph, word: str) -> list[Any]:
    return graph.query(SEARCH, params={"w": word}).rows


def row_ids(graph: og.Graph, key: str) -> dict[str, int]:
    rows = table_of(graph, key).scan([ID], with_row_id=True)
    return dict(zip(rows[ID].to_pylist(), rows[ROW_ID].to_pylist(), strict=True))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return grown(tmp_path / "library.omni")


@pytest.mark.slow
def test_many_small_files_become_few(graph: og.Graph) -> None:
    before, numbers = image(graph), row_ids(graph, BOOK)
    old = graph.snapshot()
    pieces = fragments(graph, BOOK)
    hits = [found(graph, word) for word in ("particular", "0003", "0002", "0012")]
    report = graph.optimize()
    done = told(report)
    assert list(done) == [CITES, BOOK, LOG]
    assert (done[BOOK].fragments_removed, done[BOOK].fragments_added) == (pieces, 1)
    assert done[BOOK].rows_rewritten == table_of(graph, BOOK).pin.row_count == 9
    assert done[BOOK].committed
    assert not done[LOG].committed
    assert done[BOOK].published_dataset_version == old.tables[BOOK].version + 1
    assert {one.action for one in done[BOOK].indexes} == {"built"}
    assert not any(part.deletions for part in layout_of(table_of(graph, BOOK)).parts)
    assert fragments(graph, BOOK) == fragments(graph, CITES) == 1
    assert image(graph) == before
    assert row_ids(graph, BOOK) == numbers
    assert [found(graph, word) for word in ("particular", "0003", "0002", "0012")] == hits
    check_filters(graph)
    validate(table_of(graph, BOOK))
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    commit = graph.commits.list()[0]
    assert (commit.id, commit.metadata["operation"]) == (report.commit_id, "optimize")
    assert list(graph.commits.changes(commit.id).changes) == []
    assert list(graph.diff(old.commit_id, commit.id)) == []
    assert graph.snapshot(commit=old.commit_id).tables[BOOK].pinned.scan([ID]).num_rows == 9
    with unchanged(graph):
        again = graph.optimize()
    assert again.commit_id is None
    assert not any(one.has_work or one.skipped for one in again.datasets)


def test_a_dry_run_says_what_would_be_done(graph: og.Graph) -> None:
    looking = og.open(str(graph.location), read_only=True)
    with unchanged(graph):
        planned = looking.optimize(dry_run=True)
    done = graph.optimize()
    assert planned.dry_run
    assert planned.commit_id is None
    for would, did in zip(planned.datasets, done.datasets, strict=True):
        assert not would.committed
        assert (would.fragments_removed, would.fragments_added, would.rows_rewritten) == (
            did.fragments_removed,
            did.fragments_added,
            did.rows_rewritten,
        )
        assert would.indexes == did.indexes
    with pytest.raises(errors.BadRequest, match="read-only"):
        looking.optimize()


def test_some_types_of_one_branch(graph: og.Graph) -> None:
    graph.branches.create("dev")
    load(graph, book(50), branch="dev")
    main = graph.snapshot()
    report = graph.optimize("dev", types=["Book"])
    assert [one.type_key for one in report.datasets] == [BOOK, LOG]
    assert fragments(graph, BOOK, "dev") == 1
    assert fragments(graph, CITES, "dev") > 1
    assert graph.snapshot() == main
    assert told(graph.optimize("dev", types=["edge:Cites"]))[CITES].committed
    with pytest.raises(errors.NotFound, match="there is no type Bok: did you mean"):
        graph.optimize(types=["Bok"])
    with pytest.raises(errors.BadRequest, match="there is no engine 'flink'"):
        graph.optimize(engine="flink")
    with pytest.raises(errors.BranchNotFound):
        graph.optimize("gone")
    assert graph.branches.merge("dev").commit is not None
    assert "book 0050" in image(graph)[BOOK]


@pytest.mark.slow
def test_deleted_rows_and_new_rows_after_it(graph: og.Graph) -> None:
    """Rows are left where they are until enough of them are deleted; indexes are extended."""
    load(graph, *(book(number) for number in range(100, 140)))
    graph.optimize()
    mutate(graph, 'delete Book where title = "book 0100"')
    with unchanged(graph):
        assert graph.optimize().commit_id is None, "one of fifty rows is not worth it"
    load(graph, book(200))
    before = image(graph)
    done = told(graph.optimize())[BOOK]
    assert done.fragments_removed == 2
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    mutate(graph, "delete Book where pages >= 100 and pages < 120")
    done = told(graph.optimize())[BOOK]
    assert (done.fragments_removed, done.fragments_added) == (1, 1)
    gone = {f"book {number:04}" for number in range(100, 120)}
    assert set(image(graph)[BOOK]) == set(before[BOOK]) - gone
    check_filters(graph)
    mutate(graph, "delete Book where pages >= 0")
    done = told(graph.optimize())[BOOK]
    assert table_of(graph, BOOK).pin.row_count == 0
    assert done.skipped is None
    load(graph, book(7))
    graph.optimize()
    assert set(image(graph)[BOOK]) == {"book 0007"}
    check_filters(graph)


@pytest.mark.slow
def test_what_the_schema_has_dropped_goes(graph: og.Graph) -> None:
    graph.optimize()
    text = graph.schema.replace("    shelf: String? @index\n", "").replace(
        "blurb: String? @index", "blurb: String?"
    )
    graph.apply_schema(text)
    before, old = image(graph), graph.snapshot().commit_id
    shelves = {(one.property, one.kind) for one in states(graph).values() if one.state == "unasked"}
    assert len(shelves) == 4
    done = told(graph.optimize())[BOOK]
    assert set(done.indexes_dropped) == {"blurb", "shelf"}
    assert done.fragments_removed == 1
    assert "unasked" not in {one.state for one in states(graph).values()}
    table = table_of(graph, BOOK)
    (fragment,) = table.dataset().get_fragments()
    field = table.dataset().lance_schema.field("shelf")
    assert field is not None
    assert all(field.id() not in file.fields for file in fragment.metadata.files)
    assert {key: rows.keys() for key, rows in image(graph).items()} == {
        key: rows.keys() for key, rows in before.items()
    }
    validate(table)
    check_rows = graph.query("query q() { match { $b: Book { pages: 10 } } return { $b.blurb } }")
    assert check_rows.rows[0]["b.blurb"].endswith("0010")
    past = graph.query(
        'query q() { match { $b: Book { title: "book 0010" } } return { $b.pages } }', snapshot=old
    )
    assert past.rows == [{"b.pages": 10}]
    load(graph, book(60) | {"data": {k: v for k, v in book(60)["data"].items() if k != "shelf"}})
    assert graph.optimize().commit_id is not None
    assert graph.optimize().commit_id is None


@pytest.mark.slow
def test_rows_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = library(tmp_path / "g.omni", 5)
    for number in (9, 7, 8, 6):
        load(graph, book(number), cites(number, 4), cites(number, 1))
    before = image(graph)
    numbers = row_ids(graph, BOOK)
    graph.optimize()
    report = graph.optimize(cluster=True)
    books = table_of(graph, BOOK).scan([ID]).column(ID).to_pylist()
    assert books == sorted(books)
    ends = table_of(graph, CITES).scan([SRC, DST]).to_pylist()
    pairs = [(row[SRC], row[DST]) for row in ends]
    assert pairs == sorted(pairs)
    assert told(report)[BOOK].committed
    assert image(graph) == before
    assert row_ids(graph, BOOK) == numbers
    check_filters(graph)
    assert graph.optimize(cluster=True).commit_id is None
    assert graph.optimize().commit_id is None
    load(graph, book(5))
    assert told(graph.optimize(cluster=True))[BOOK].fragments_removed == 2
    books = table_of(graph, BOOK).scan([ID]).column(ID).to_pylist()
    assert books == sorted(books)
    monkeypatch.setattr(rewrite_choice, "SORTED_ROWS", 4)
    load(graph, book(0, pages=1), mode="merge")
    graph.optimize(cluster=True)
    assert set(image(graph)[BOOK]) == {*before[BOOK], "book 0005"}


@pytest.mark.slow
def test_the_log_of_a_branch_is_merged(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher, "SEAL_ENTRIES", 3)
    for number in range(30, 46):
        load(graph, book(number))
    commits = [commit.id for commit in graph.commits.list()]
    sizes = graph.manifest.view().log.log_sizes()
    assert len(sizes) >= publisher.MERGED_FROM
    monkeypatch.undo()
    planned = told(graph.optimize(dry_run=True))[LOG]
    assert (planned.fragments_removed, planned.fragments_added) == (len(sizes), 1)
    report = graph.optimize()
    merged = graph.manifest.view().log.log_sizes()
    assert merged == [sum(sizes)]
    assert [commit.id for commit in graph.commits.list()] == [report.commit_id, *commits]
    other = og.open(str(graph.location))
    assert [commit.id for commit in other.commits.list()] == [report.commit_id, *commits]
    assert other.snapshot(commit=commits[-1]).tables[BOOK].pin.row_count == 0
    load(graph, book(60))
    assert told(graph.optimize())[LOG].fragments_removed == 0


def test_what_a_handle_knows_stays_right(graph: og.Graph) -> None:
    """Topology, columns and maps of ids that were made before are of use, or made anew."""
    walk = (
        "query q() { match { $a: Book  $a cites $b } return { $a.title, $b.title } "
        "order { $a.title, $b.title } }"
    )
    late = og.open(str(graph.location))
    edges, books = late.query(walk).rows, image(late)
    graph.optimize()
    assert late.query(walk).rows == edges
    mutate(late, 'update Book set { pages: 77 } where title = "book 0003"')
    load(late, book(90), cites(90, 3))
    assert late.query(walk).rows == sorted(
        [*edges, {"a.title": "book 0090", "b.title": "book 0003"}],
        key=lambda row: list(row.values()),
    )
    assert image(late)[BOOK].keys() == books[BOOK].keys() | {"book 0090"}
    graph.optimize(cluster=True)
    rows = late.table("Book").to_table(columns=[ID], filter=pc.field("pages") == 77)
    assert ids(rows) == ["book 0003"]
