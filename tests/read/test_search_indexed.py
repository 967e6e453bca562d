"""Searches through indexes: the same as without, also for what was written since."""

from __future__ import annotations

import re
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.read.search import analysis, ranking, vectors, words
from omnigraph.storage.indexes.search import nearest_hits, text_hits
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.lang.fixture_file import Case
from tests.read import search_model as model
from tests.read.search_graph import make_search_graph, memo, search_data
from tests.read.search_reading import same_rows
from tests.read.test_hybrid_searches import DATA, HYBRID, read
from tests.table_indexing import create_index
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
    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
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
    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
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
