"""Building indexes: what is built, what it covers, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pytest
from lance.query import MatchQuery, PhraseQuery

import omnigraph as og
from omnigraph.errors import BadRequest, BranchNotFound
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.maintain import index_choice
from omnigraph.maintain.index_choice import choose, intents_of
from omnigraph.storage.indexes import build
from omnigraph.storage.indexes.build import REFINE, index_name, probes
from omnigraph.storage.indexes.table_indexes import is_indexed, text_index
from omnigraph.storage.indexes.table_indexes import vector_index as vector_index_of
from omnigraph.write.publish.staging import is_maintenance
from tests.maintain.cleaning import clean, forget_all
from tests.maintain.indexing import (
    LONG,
    book,
    check_filters,
    cites,
    ids,
    library,
    load,
    nearest,
    plan_of,
    states,
    truly_nearest,
)
from tests.table_indexing import WantedIndex, create_index, create_indexes
from tests.table_writes import stamp_of
from tests.write.writing import image, mutate, table_of, unchanged

BOOK = "node:Book"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return library(tmp_path / "library.omni")


# -- what is wanted ----------------------------------------------------------------------


def test_the_schema_says_what_is_built(graph: og.Graph) -> None:
    report = graph.ensure_indices()
    assert {(one.type_key, one.property, one.kind) for one in report.changes} == {
        ("edge:Cites", "id", "BTREE"),
        ("edge:Cites", "src", "BTREE"),
        ("edge:Cites", "dst", "BTREE"),
        (BOOK, "id", "BTREE"),
        (BOOK, "title", "BTREE"),
        (BOOK, "title", "INVERTED"),
        (BOOK, "blurb", "NGRAM"),
        (BOOK, "blurb", "INVERTED"),
        (BOOK, "shelf", "BTREE"),
        (BOOK, "shelf", "INVERTED"),
        (BOOK, "genre", "BTREE"),
        (BOOK, "pages", "BTREE"),
        (BOOK, "out", "BTREE"),
    }
    assert {one.action for one in report.changes} == {"built"}
    assert report.pending == ()
    found = states(graph)
    assert {one.state for one in found.values() if one.kind is not None} == {"complete"}
    assert all(one.rows_covered == one.rows_total for one in found.values() if one.kind)
    unbuilt = {key[:2]: one.reason for key, one in found.items() if one.state == "none"}
    assert unbuilt == {
        (BOOK, "genre, pages"): "@index of several properties builds nothing",
        ("edge:Cites", "page"): "@index on a property of an edge builds nothing",
    }


def test_what_is_pending_and_why(tmp_path: Path) -> None:
    schema = "node Note { name: String @key  like: Vector(2)? @index }"
    graph = og.init(tmp_path / "notes.omni", schema)
    report = graph.ensure_indices()
    assert report.commit_id is None
    assert {(one.property, one.reason) for one in report.pending} == {
        ("id", "the table is empty"),
        ("name", "the table is empty"),
        ("like", "the table is empty"),
    }
    load(graph, {"type": "Note", "data": {"name": "a"}})
    assert [one.reason for one in graph.index_status().pending if one.property == "like"] == [
        "no row has a vector"
    ]
    load(graph, {"type": "Note", "data": {"name": "b", "like": [1, 0]}})
    report = graph.ensure_indices()
    assert [(one.property, one.reason) for one in report.pending] == [
        ("like", "2 rows are compared exactly: an index is built from 20,000 on")
    ]
    assert {one.property for one in report.changes} == {"id", "name"}


# -- the commit --------------------------------------------------------------------------


def test_one_maintenance_commit_that_changes_no_row(graph: og.Graph) -> None:
    before, old = image(graph), graph.snapshot()
    report = graph.ensure_indices(actor="ann")
    assert image(graph) == before
    commit = graph.commits.list()[0]
    assert (commit.id, commit.actor, commit.parent_id) == (report.commit_id, "ann", old.commit_id)
    assert commit.metadata["operation"] == "ensure_indices"
    for key, shown in graph.snapshot().tables.items():
        assert shown.version == old.tables[key].version + 1, "all indexes of a table at once"
        stamp = stamp_of(table_of(graph, key))
        assert is_maintenance(stamp)
        assert stamp is not None
        assert stamp.properties["omnigraph.commit"] == commit.id
    assert not list(graph.diff(old.commit_id, commit.id))
    assert not list(Path(str(graph.location)).glob("__recovery/*"))


def test_nothing_to_do_is_no_commit(graph: og.Graph) -> None:
    graph.ensure_indices()
    with unchanged(graph):
        report = graph.ensure_indices()
    assert (report.commit_id, report.changes, report.pending) == (None, (), ())


def test_a_branch_has_its_own(graph: og.Graph) -> None:
    graph.branches.create("dev")
    with unchanged(graph):
        report = graph.ensure_indices("dev")
    assert report.branch == "dev"
    assert not graph.index_status("dev").pending
    assert graph.index_status().pending
    check_filters(graph, "dev")
    with pytest.raises(BranchNotFound):
        graph.ensure_indices("gone")
    graph.branches.merge("dev")
    assert not graph.index_status().pending, "the merge took the tables over with their indexes"
    check_filters(graph)


def test_a_graph_that_is_only_looked_at_builds_nothing(graph: og.Graph) -> None:
    looking = og.open(str(graph.location), read_only=True)
    assert looking.index_status() == graph.index_status()
    with unchanged(graph), pytest.raises(BadRequest, match="read-only"):
        looking.ensure_indices()


def test_cleanup_leaves_what_indexes_are_made_of(graph: og.Graph) -> None:
    graph.ensure_indices()
    load(graph, book(50, blurb=f"{LONG}new"))
    graph.ensure_indices()
    clean(graph)
    forget_all()
    graph = og.open(str(graph.location))
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    check_filters(graph)
    assert words(graph, MatchQuery("blurbs", "blurb")) == ids(table_of(graph, BOOK).scan([ID]))


# -- rows that come later ----------------------------------------------------------------


def words(graph: og.Graph, query: MatchQuery | PhraseQuery) -> list[str]:
    found = table_of(graph, BOOK).dataset()
    return ids(
        found.to_table(columns=[ID], full_text_query=query, disable_scoring_autoprojection=True)
    )


def test_later_rows_are_found_at_once_and_covered_next_time(graph: og.Graph) -> None:
    graph.ensure_indices()
    load(graph, book(50, blurb=f"{LONG}new"), book(3, blurb=f"{LONG}new", pages=7), mode="merge")
    load(graph, cites(3, 50))
    check_filters(graph)
    assert words(graph, MatchQuery("new", "blurb")) == ["book 0003", "book 0050"]
    lagging = states(graph)[BOOK, "pages", "BTREE"]
    assert (lagging.state, lagging.rows_covered, lagging.rows_total) == ("partial", 19, 21)
    assert lagging.uncovered_fragments == 1
    assert states(graph)[BOOK, "genre", "BTREE"].state == "partial"
    report = graph.ensure_indices()
    done = {(one.property, one.kind): (one.action, one.rows) for one in report.changes}
    assert done["pages", "BTREE"] == ("extended", 2)
    assert done["blurb", "NGRAM"] == ("extended", 2)
    assert done["blurb", "INVERTED"] == ("rebuilt", 21), "else it would answer with old words"
    assert done["src", "BTREE"] == ("extended", 1)
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    assert states(graph)[BOOK, "pages", "BTREE"].segments == 2
    check_filters(graph)
    assert words(graph, MatchQuery("new", "blurb")) == ["book 0003", "book 0050"]
    assert words(graph, MatchQuery("0003", "blurb")) == []


@pytest.mark.slow
def test_many_parts_become_one(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_choice, "MAX_SEGMENTS", 3)
    graph.ensure_indices()
    seen = []
    for number in range(50, 54):
        load(graph, book(number))
        graph.ensure_indices()
        seen.append(states(graph)[BOOK, "pages", "BTREE"].segments)
        check_filters(graph)
    assert seen == [2, 3, 1, 2]


def test_a_table_that_has_doubled_is_indexed_anew(graph: og.Graph) -> None:
    graph.ensure_indices()
    load(graph, *(book(number) for number in range(50, 80)))
    report = graph.ensure_indices()
    assert {one.action for one in report.changes if one.type_key == BOOK} == {"rebuilt"}
    assert states(graph)[BOOK, "pages", "BTREE"].segments == 1


def test_an_overwritten_table_is_indexed_anew(graph: og.Graph) -> None:
    graph.ensure_indices()
    load(graph, book(90), cites(90, 90), mode="overwrite")
    assert states(graph)[BOOK, "pages", "BTREE"].state == "pending"
    check_filters(graph)
    graph.ensure_indices()
    assert states(graph)[BOOK, "pages", "BTREE"].rows_covered == 1
    check_filters(graph)


def test_deleted_rows_stay_deleted(graph: og.Graph) -> None:
    graph.ensure_indices()
    mutate(graph, "delete Book where pages > 9")
    check_filters(graph)
    assert words(graph, MatchQuery("blurbs", "blurb")) == [f"book {n:04}" for n in range(10)]
    assert graph.ensure_indices().commit_id is None, "what is gone needs no index"


# -- what asks them ----------------------------------------------------------------------


def test_filters_are_answered_by_the_indexes(graph: og.Graph) -> None:
    graph.ensure_indices()
    load(graph, book(50, blurb=f"{LONG}new"))
    books = table_of(graph, BOOK)
    title, blurb, shelf = (pc.field(name) for name in ("title", "blurb", "shelf"))
    for wanted, kind in (
        (title == "book 0003", "BTree"),
        (title.isin(["book 0003", "book 0050"]), "BTree"),
        (pc.starts_with(title, "book 00"), "BTree"),
        (shelf == "shelf 3", "BTree"),
        (pc.starts_with(shelf, "shelf"), "BTree"),
        (pc.match_substring(blurb, "number 0003"), "NGram"),
        (pc.field("pages") < 3, "BTree"),
        (pc.field("genre") == "crime", "BTree"),
        (pc.field(ID) == "book 0003", "BTree"),
    ):
        assert f"({kind})" in plan_of(books, wanted), str(wanted)
    assert is_indexed(books, "title")
    assert not is_indexed(books, "blurb")
    assert all(is_indexed(table_of(graph, "edge:Cites"), end) for end in (SRC, DST))


def test_words_and_phrases(graph: og.Graph) -> None:
    graph.ensure_indices()
    found = text_index(table_of(graph, BOOK), "blurb")
    assert found is not None
    assert found.with_position
    assert not found.uncovered
    all_books = ids(table_of(graph, BOOK).scan([ID]))
    assert words(graph, MatchQuery("Blurb", "blurb")) == all_books, "stemmed, in any case"
    assert words(graph, MatchQuery("the", "blurb")) == [], "a stop word"
    assert words(graph, PhraseQuery("nothing in particular", "blurb")) == all_books
    assert words(graph, PhraseQuery("particular nothing", "blurb")) == []
    assert text_index(table_of(graph, BOOK), "pages") is None


def test_of_two_indexes_of_a_column_only_the_first_is_asked(graph: og.Graph) -> None:
    """Which is why a text has one that answers filters: a second one would only cost."""
    books = table_of(graph, BOOK)
    equal, within = pc.field("shelf") == "shelf 3", pc.match_substring(pc.field("shelf"), "elf 3")
    tree, parts = WantedIndex("shelf", "BTREE"), WantedIndex("shelf", "NGRAM")
    for order, asked in (((tree, parts), equal), ((parts, tree), within)):
        both = books.at(create_indexes(books, order))
        answered = ["ScalarIndexQuery" in plan_of(both, wanted) for wanted in (equal, within)]
        assert answered == [asked is equal, asked is within]


def test_a_text_that_becomes_a_key_is_compared(graph: og.Graph) -> None:
    """The index of its parts goes, because nobody would ask another one beside it."""
    books = table_of(graph, BOOK)
    books = books.at(create_index(books, "title", "NGRAM"))
    wanted = next(
        one
        for one in intents_of(graph.catalog)[BOOK].wanted
        if (one.property, one.purpose) == ("title", "lookup")
    )
    choice = choose(books, wanted)
    assert (choice.kind, choice.action) == ("BTREE", "build")
    assert choice.instead_of == (index_name(books, "title", "NGRAM"),)


# -- vectors -----------------------------------------------------------------------------

VECTORS = "node Note { name: String @key  like: Vector(16)? @index }"


def notes(vectors: np.ndarray, start: int = 0) -> str:
    return "\n".join(
        json.dumps({"type": "Note", "data": {"name": f"n{start + at:06}", "like": one}})
        for at, one in enumerate(vectors.astype(float).round(4).tolist())
    )


def clustered(count: int, seed: int) -> np.ndarray:
    middles = np.random.default_rng(7).standard_normal((60, 16))
    rng = np.random.default_rng(seed)
    return middles[rng.integers(0, 60, count)] + 0.5 * rng.standard_normal((count, 16))


@pytest.fixture
def many_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    for module in (index_choice, build):
        monkeypatch.setattr(module, "EXACT_BELOW", 3_000)
    graph = og.init(tmp_path / "notes.omni", VECTORS)
    graph.load(notes(clustered(3_000, 1)), mode="append")
    return graph


def recall(graph: og.Graph) -> float:
    table = table_of(graph, "node:Note")
    asked = probes(table.pin.row_count)
    rows = table.scan([ID, "like"])
    hits = 0
    for query in clustered(20, 99).astype(np.float32):
        found = nearest(table, "like", query, nprobes=asked, refine_factor=REFINE)
        hits += len(set(found) & set(truly_nearest(rows, "like", query)))
    return hits / 200


def test_vectors_are_indexed_by_cosine(many_vectors: og.Graph) -> None:
    graph = many_vectors
    report = graph.ensure_indices()
    assert ("like", "IVF_FLAT", 3_000) in {(c.property, c.kind, c.rows) for c in report.changes}
    found = vector_index_of(table_of(graph, "node:Note"), "like")
    assert found is not None
    assert (found.metric, found.kind, found.uncovered) == ("cosine", "IVF_FLAT", frozenset())
    assert recall(graph) >= 0.95
    load(graph, {"type": "Note", "data": {"name": "bare"}})
    assert graph.index_status().pending == ()
    kind = ("node:Note", "like", "IVF_FLAT")
    assert states(graph)[kind].reason == "the rows that are not covered have no vector"
    graph.load(notes(clustered(40, 2), 5_000), mode="append")
    assert recall(graph) >= 0.95
    report = graph.ensure_indices()
    assert ("like", "extended", 40) in {(c.property, c.action, c.rows) for c in report.changes}
    assert states(graph)[kind].state == "complete"
    assert recall(graph) >= 0.95


def test_an_updated_vector_is_not_found_where_it_was(many_vectors: og.Graph) -> None:
    graph = many_vectors
    graph.ensure_indices()
    table = table_of(graph, "node:Note")
    there = clustered(1, 5)[0].astype(np.float32)
    first = nearest(table, "like", there)[0]
    load(
        graph,
        {"type": "Note", "data": {"name": first, "like": (-there).astype(float).tolist()}},
        mode="merge",
    )
    for _ in range(2):
        table = table_of(graph, "node:Note")
        assert first not in nearest(table, "like", there)
        assert nearest(table, "like", -there)[0] == first
        graph.ensure_indices()


@pytest.mark.slow
def test_quantised_vectors(many_vectors: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "QUANTISED_FROM", 3_000)
    graph = many_vectors
    report = graph.ensure_indices()
    assert ("like", "IVF_RQ") in {(one.property, one.kind) for one in report.changes}
    assert recall(graph) >= 0.95
    monkeypatch.setattr(build, "QUANTISED_FROM", 10_000)
    graph.load(notes(clustered(3_500, 3), 5_000), mode="append")
    report = graph.ensure_indices()
    assert ("like", "IVF_FLAT") in {(one.property, one.kind) for one in report.changes}
    assert len([one for one in states(graph) if one[1] == "like"]) == 1
    assert recall(graph) >= 0.95


@pytest.mark.parametrize(
    ("rows", "parts", "looked_at"),
    [
        (100, 1, 20),
        (20_000, 40, 20),
        (900_000, 1_800, 120),
        (4_000_000, 4_000, 267),
    ],
)
def test_how_many_partitions_are_looked_at(rows: int, parts: int, looked_at: int) -> None:
    assert build.partitions(rows) == parts
    assert probes(rows) == looked_at
    deeper = [probes(rows, depth) for depth in (10, 100, 1_000, rows)]
    assert deeper == sorted(deeper)
    assert deeper[-1] == max(parts, 20)
