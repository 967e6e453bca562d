"""Searches through indexes: the same as without, also for what was written since."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.manifest.changes import CommitIntent
from omnigraph.read.search import analysis, ranking, vectors, words
from omnigraph.storage.indexes import create_index
from omnigraph.storage.table import Table, TablePin
from omnigraph.storage.text_search import text_hits
from omnigraph.storage.vector_search import nearest_hits
from omnigraph.write.stamps import stamp
from tests.lang.fixture_file import Case
from tests.read import search_model as model
from tests.read.search_graph import make_search_graph, memo, search_data
from tests.read.search_reading import same_rows
from tests.read.test_hybrid_searches import DATA, HYBRID, read
from tests.write.writing import compact_all, maintain, mutate, table_of

SIZE = 3_000
CLUSTERS = 60
DIMENSION = 16
NUMBERS = np.random.default_rng(7)
ODD = (
    "The red fox runs",
    "a fox running to the old hen",
    "Café society in the Straße",
    "not a move, and moved",
    "ΟΔΟΣ",
    "हिन्दी भाषा",
    None,
    "",
    "to have and to have",
    "don't stop, snake_case",
    "a" * 39 + " " + "b" * 40,
    "fox fox hen",
    "Ⓐb ½ ① ﬁne İstanbul",
    "hen, the fox: hen",
)
QUERIES = (
    *("fox", "FOX hens", "the fox", "running", "cafe", "strasse", "straße", "οδοσ", "Οδος"),
    *("हिन", "not", "have", "", "...", "don't", "b" * 40, "a" * 39, "ab", "12", "1", "istanbul"),
    *("fox fox", "fox the hen", "hen fox", "old hen", "snake case", "fox AND hen", "f*", '"fox"'),
)
TEXT_AND_VECTOR = {
    "node:Memo": (("subject", "INVERTED"), ("body", "INVERTED"), ("v", "IVF_FLAT")),
    "node:Desk": (("motto", "INVERTED"), ("w", "IVF_FLAT")),
}


@pytest.fixture(autouse=True)
def through_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every table for a large one."""
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(vectors, "DIRECT", 0)


def build_indexes(graph: og.Graph, branch: str = "main") -> None:
    def work(key: str, table: Table, commit: CommitIntent) -> TablePin:
        pin = table.pin
        for column, kind in TEXT_AND_VECTOR.get(key, ()):
            stamped = stamp(commit.id, "index", "maintenance")
            pin = create_index(table.at(pin), column, kind, stamp=stamped)  # type: ignore[arg-type]
        return pin

    assert maintain(graph, branch, work)


@pytest.fixture
def asked_storage(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What storage was asked for; a test that finds nothing here has tested something else."""
    asked: list[str] = []

    def note(name: str, real: Any) -> Any:
        def called(*args: Any, **options: Any) -> Any:
            asked.append(name)
            return real(*args, **options)

        return called

    monkeypatch.setattr(words, "text_hits", note("text", text_hits))
    monkeypatch.setattr(vectors, "nearest_hits", note("vector", nearest_hits))
    return asked


def codes(graph: og.Graph, body: str, **options: Any) -> list[str]:
    source = f"query q($q: String?, $v: Vector(3)?) {{ match {{ $d: Memo {body} }}"
    return [row["d.code"] for row in graph.query(source, **options).rows]


def matching(graph: og.Graph, call: str, query: str, **options: Any) -> list[str]:
    body = f"{call}($d.subject, $q) }} return {{ $d.code }} order {{ $d.code }}"
    return codes(graph, body, params={"q": query}, **options)


def scored(graph: og.Graph, query: str) -> dict[str, float]:
    text = (
        "query q($q: String) { match { $d: Memo } "
        "return { $d.code as c, bm25($d.subject, $q) as s } order { bm25($d.subject, $q) } }"
    )
    return {row["c"]: row["s"] for row in graph.query(text, params={"q": query}).rows}


# -- words -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def odd_graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    memos = [memo(f"t{n:02}", text) for n, text in enumerate(ODD)]
    graph = make_search_graph(tmp_path_factory.mktemp("odd") / "graph", search_data(memos))
    build_indexes_of_text(graph)
    return graph


def build_indexes_of_text(graph: og.Graph) -> None:
    def work(key: str, table: Table, commit: CommitIntent) -> TablePin:
        if key != "node:Memo":
            return table.pin
        return create_index(
            table, "subject", "INVERTED", stamp=stamp(commit.id, "index", "maintenance")
        )

    assert maintain(graph, "main", work)


@pytest.mark.parametrize("query", QUERIES)
def test_an_index_finds_the_same_texts(
    odd_graph: og.Graph, asked_storage: list[str], query: str
) -> None:
    for call, holds in (("search", model.has_any), ("match_text", model.has_phrase)):
        wanted = [f"t{n:02}" for n, text in enumerate(ODD) if holds(text, query)]
        assert matching(odd_graph, call, query) == wanted, call
    assert asked_storage == ["text"] * (2 if model.terms(query) else 0)


@pytest.mark.parametrize("query", QUERIES)
def test_an_index_that_covers_all_gives_the_same_scores(odd_graph: og.Graph, query: str) -> None:
    wanted = model.bm25({f"t{n:02}": text for n, text in enumerate(ODD)}, query)
    found = scored(odd_graph, query)
    assert found == pytest.approx(wanted, rel=1e-5)
    ranks = [round(wanted[code], 5) for code in found]
    assert ranks == sorted(ranks, reverse=True)


def test_the_words_of_an_index_are_ours(odd_graph: og.Graph) -> None:
    """Every character, or one in so many of the great alphabets, inside a word."""
    characters = [
        chr(point)
        for point in range(0x80, sys.maxunicode)
        if unicodedata.category(chr(point)) not in ("Cn", "Cs", "Co")
        and (point < 0x3000 or point % 97 == 0)
    ]
    texts = [f"w{n}x{character}yz" for n, character in enumerate(characters)]
    for start in range(0, len(texts), 2_000):
        text = " ".join(["first", *texts[start : start + 2_000]])
        assert analysis.query_terms(text) == _words_of_storage(odd_graph, text)


ENGLISH = """
    the quick brown foxes were jumping lazily over his dogs; should they have been, yourself or
    themselves, not nor only very own because cannot would could during once
"""
STEMMED = """
    generous generation communism arsenal pasted university universal skiing skis dying news
    inning proceed exceed herring happily conditional triplicate relational hopefulness added
    evening internal international interval organization emergency biologist lateral
"""


@pytest.mark.parametrize("text", [ENGLISH, STEMMED])
def test_words_are_stemmed_and_left_out_alike(odd_graph: og.Graph, text: str) -> None:
    assert analysis.query_terms(f"first {text}") == _words_of_storage(odd_graph, f"first {text}")


def _words_of_storage(graph: og.Graph, text: str) -> list[tuple[str, int]]:
    """What Lance itself makes of a text; it says so when a search is analyzed."""
    from lance.query import MatchQuery

    dataset = table_of(graph, "node:Memo").dataset()
    scanner = dataset.scanner(columns=["_score"], full_text_query=MatchQuery(text, "subject"))
    shown = re.search(r"tokenized_query=\[(.*?)\], metrics=", scanner.analyze_plan(), re.DOTALL)
    assert shown is not None
    pairs = re.findall(r'\("((?:[^"\\]|\\.)*)", (\d+)\)', shown[1])
    return [(_unescaped(word), int(place)) for word, place in pairs]


def _unescaped(text: str) -> str:
    return re.sub(r"\\u\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), text)


# -- everything together -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = make_search_graph(tmp_path_factory.mktemp("hybrid") / "graph", DATA)
    build_indexes(graph)
    return graph


@pytest.mark.parametrize("first", [1, 64])
@pytest.mark.parametrize("case", HYBRID, ids=[case.name for case in HYBRID])
def test_hybrid_search_through_indexes(
    hybrid: og.Graph, case: Case, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "FEWEST", first)
    monkeypatch.setattr(ranking, "TRIED", 1)
    source, params, wanted = read(case)
    found = hybrid.query(source, params=params).rows
    if "any order" in case.sections:
        found, wanted = sorted(found, key=repr), sorted(wanted, key=repr)
    assert same_rows(found, wanted), found


# -- what was written since --------------------------------------------------------------------


def test_what_was_written_since_is_right_at_once(tmp_path: Path, asked_storage: list[str]) -> None:
    held = search_data([memo(f"t{n:02}", text) for n, text in enumerate(ODD)])
    graph = make_search_graph(tmp_path / "graph", held)
    build_indexes_of_text(graph)
    before = graph.snapshot().commit_id
    old = held.copy()
    graph.branches.create("work")

    mutate(graph, 'update Memo set { subject: "a green hen" } where code = "t00"')
    mutate(graph, 'insert Memo { code: "new", subject: "the very red fox" }')
    mutate(graph, 'delete Memo where code = "t01"')
    mutate(graph, 'update Memo set { subject: "now a fox" } where code = "t06"')
    rows = held.nodes["Memo"]
    rows["t00"]["subject"], rows["t06"]["subject"] = "a green hen", "now a fox"
    rows["new"] = memo("new", "the very red fox")
    del rows["t01"]
    _compare(graph, held.nodes["Memo"])
    _compare(graph, old.nodes["Memo"], snapshot=before)
    _compare(graph, old.nodes["Memo"], branch="work")
    assert asked_storage

    mutate(graph, 'update Memo set { subject: "red again" } where code = "t00"')
    mutate(graph, 'delete Memo where code = "new"')
    rows["t00"]["subject"] = "red again"
    del rows["new"]
    _compare(graph, rows)
    build_indexes_of_text(graph)
    _compare(graph, rows)
    compact_all(graph)
    _compare(graph, rows)


def _compare(graph: og.Graph, rows: dict[str, dict[str, Any]], **options: Any) -> None:
    for query in ("red", "green hen", "fox", "running", "red fox", "the very red", "again"):
        for call, holds in (("search", model.has_any), ("match_text", model.has_phrase)):
            wanted = sorted(code for code, row in rows.items() if holds(row["subject"], query))
            assert matching(graph, call, query, **options) == wanted, (call, query)
        found = codes(
            graph,
            "} return { $d.code } order { bm25($d.subject, $q) }",
            params={"q": query},
            **options,
        )
        texts = {code: row["subject"] for code, row in rows.items()}
        assert sorted(found) == sorted(model.bm25(texts, query)), query


# -- vectors -----------------------------------------------------------------------------------

VECTOR_SCHEMA = f"""\
node Point {{ name: String @key  cluster: I32  v: Vector({DIMENSION})? }}
edge Next: Point -> Point
"""


def _points() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    centres = NUMBERS.normal(size=(CLUSTERS, DIMENSION))
    spread = NUMBERS.normal(size=(SIZE, DIMENSION)) * 0.25
    return (centres[np.arange(SIZE) % CLUSTERS] + spread).astype(np.float32)


@pytest.fixture(scope="module")
def points(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[og.Graph, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    made = _points()
    graph = og.init(tmp_path_factory.mktemp("points") / "graph", VECTOR_SCHEMA)
    rows: list[dict[str, Any]] = [
        {"type": "Point", "data": {"name": f"p{n}", "cluster": n % CLUSTERS, "v": v.tolist()}}
        for n, v in enumerate(made)
    ]
    rows += [{"type": "Point", "data": {"name": "zero", "cluster": -1, "v": [0.0] * DIMENSION}}]
    rows += [{"type": "Point", "data": {"name": "none", "cluster": -1, "v": None}}]
    rows += [{"edge": "Next", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(0, SIZE - 1, 97)]
    graph.load(rows, mode="append")
    index_points(graph)
    return graph, made


def index_points(graph: og.Graph) -> None:
    def work(key: str, table: Table, commit: CommitIntent) -> TablePin:
        if key != "node:Point":
            return table.pin
        return create_index(table, "v", "IVF_FLAT", stamp=stamp(commit.id, "index", "maintenance"))

    assert maintain(graph, "main", work)


def nearest(
    graph: og.Graph, query: Sequence[float], clauses: str = "", limit: int = 10, tail: str = ""
) -> list[dict[str, Any]]:
    text = (
        f"query q($v: Vector({DIMENSION})) {{ match {{ $d: Point {clauses} }} "
        "return { $d.name as name, nearest($d.v, $v) as far } "
        f"order {{ nearest($d.v, $v) }} limit {limit} {tail} }}"
    )
    return list(graph.query(text, params={"v": [float(x) for x in query]}).rows)


def exact(
    made: np.ndarray[tuple[int, int], np.dtype[np.float32]], query: Any
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    wide = made.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1) * np.linalg.norm(query)
    return np.argsort(1 - wide @ query / lengths, kind="stable")


def test_an_index_finds_nearly_all_that_are_nearest(points: Any, asked_storage: list[str]) -> None:
    graph, made = points
    found = wanted = 0
    for query in made[::150] + NUMBERS.normal(size=(1, DIMENSION)) * 0.05:
        true = {f"p{n}" for n in exact(made, query)[:10]}
        found += len(true & {row["name"] for row in nearest(graph, query)})
        wanted += 10
    assert set(asked_storage) == {"vector"}
    assert found / wanted >= 0.95


def test_distances_through_an_index(points: Any) -> None:
    graph, made = points
    for row in nearest(graph, made[5], limit=20):
        at = int(row["name"][1:])
        assert row["far"] == pytest.approx(
            model.cosine(made[at].tolist(), made[5].tolist()), abs=1e-5
        )


@pytest.mark.parametrize(
    ("clauses", "kept"),
    [
        ("$d.cluster = 59", lambda n: n % CLUSTERS == 59),
        ("$d next $e", lambda n: n % 97 == 0 and n < SIZE - 1),
        ("$e next $d $e.cluster > 30", lambda n: n % 97 == 1 and (n - 1) % CLUSTERS > 30),
        ("not { $d next $e } $d.cluster = 7", lambda n: n % CLUSTERS == 7 and n % 97 != 0),
    ],
)
def test_what_is_far_away_fills_the_limit(points: Any, clauses: str, kept: Any) -> None:
    """A filter that only distant vectors pass."""
    graph, made = points
    query = made[0]
    wanted = [f"p{n}" for n in exact(made, query) if kept(int(n))]
    limit = min(len(wanted), 15)
    rows = nearest(graph, query, clauses, limit=limit)
    assert [row["name"] for row in rows] == wanted[:limit]


def test_every_vector_and_no_other_is_found_in_the_end(points: Any) -> None:
    graph, _ = points
    names = [row["name"] for row in nearest(graph, [1.0] * DIMENSION, limit=SIZE + 10)]
    assert sorted(names) == sorted(["zero", *(f"p{n}" for n in range(SIZE))])
    shown = nearest(graph, [0.0] * DIMENSION, limit=3)
    assert [row["name"] for row in shown] == ["p0", "p1", "p10"]
    assert {row["far"] for row in shown} == {1.0}


def test_an_index_that_misses_most_costs_no_row(
    points: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an index does not find is found by looking at every vector."""

    def few(*args: Any, **options: Any) -> Any:
        found, distances = nearest_hits(*args, **options)
        return found[:40:2], distances[:40:2]

    monkeypatch.setattr(vectors, "nearest_hits", few)
    graph, made = points
    rows = nearest(graph, made[0], "$d.cluster = 59", limit=50)
    assert [row["name"] for row in rows] == [
        f"p{n}" for n in exact(made, made[0]) if n % CLUSTERS == 59
    ]
    assert len(nearest(graph, made[0], limit=100)) == 100


def test_pages_through_an_index_neither_repeat_nor_leave_out(points: Any) -> None:
    graph, made = points
    query = made[3]
    pages = [nearest(graph, query, limit=25, tail=f"offset {at}") for at in range(0, 100, 25)]
    whole = nearest(graph, query, limit=100)
    assert [row["name"] for page in pages for row in page] == [row["name"] for row in whole]


def test_vectors_written_since_are_found_at_once(tmp_path: Path, asked_storage: list[str]) -> None:
    made = _points()[:400]
    graph = og.init(tmp_path / "graph", VECTOR_SCHEMA)
    graph.load(
        [
            {"type": "Point", "data": {"name": f"p{n}", "cluster": 0, "v": v.tolist()}}
            for n, v in enumerate(made)
        ],
        mode="append",
    )
    index_points(graph)
    query = made[17]
    assert nearest(graph, query, limit=1)[0]["name"] == "p17"

    change = "query q($n: String, $v: Vector(16)?) { %s }"
    moved = {"n": "p17", "v": (-made[17]).tolist()}
    graph.mutate(change % "update Point set { v: $v } where name = $n", params=moved)
    closer = {"n": "new", "v": query.tolist()}
    graph.mutate(change % "insert Point { name: $n, cluster: 1, v: $v }", params=closer)
    second = nearest(graph, query, limit=2)[1]["name"]
    mutate(graph, f'delete Point where name = "{second}"')
    names = [row["name"] for row in nearest(graph, query, limit=401)]
    assert names[0] == "new"
    assert names[-1] == "p17"
    assert second not in names
    graph.mutate(
        change % "update Point set { v: $v } where name = $n", params={"n": "new", "v": None}
    )
    assert "new" not in [row["name"] for row in nearest(graph, query, limit=5)]
    assert "vector" in asked_storage


def test_equal_vectors_at_the_cut_are_told_apart_by_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_storage: list[str]
) -> None:
    monkeypatch.setattr(ranking, "FEWEST", 1)
    monkeypatch.setattr(ranking, "TRIED", 1)
    graph = og.init(tmp_path / "graph", VECTOR_SCHEMA)
    near, far = [1.0] * DIMENSION, [1.0, *[-1.0] * (DIMENSION - 1)]
    graph.load(
        [
            {"type": "Point", "data": {"name": f"p{n:03}", "cluster": n, "v": near}}
            for n in range(120)
        ]
        + [
            {"type": "Point", "data": {"name": f"q{n:03}", "cluster": n, "v": far}}
            for n in range(400)
        ],
        mode="append",
    )
    index_points(graph)
    text = (
        f"query q($v: Vector({DIMENSION})) {{ match {{ $d: Point }} return {{ $d.name as name }} "
        "order { nearest($d.v, $v), $d.cluster desc } limit 3 }"
    )
    found = [row["name"] for row in graph.query(text, params={"v": near}).rows]
    assert found == ["p119", "p118", "p117"]
    assert asked_storage == ["vector", "vector"]
