"""What is said about ranked reads, and what they cost when they are asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.read.access.column_cache import columns
from omnigraph.read.plan.explain import Explanation
from omnigraph.read.search import ranking, vectors, words
from omnigraph.read.search.analysis import analyze
from omnigraph.storage.objects.meter import measure
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.read.search_graph import make_search_graph, memo, search_data
from tests.table_indexing import create_index
from tests.write.writing import maintain, mutate

NEAREST = "nearest($d.v, [1.0, 0.0, 0.0])"
BM25 = 'bm25($d.subject, "red fox")'
MEMOS = 200
SEARCHES = (
    'match { $d: Memo search($d.subject, "red") } return { $d.code } order { $d.code }',
    'match { $d: Memo match_text($d.subject, "red fox") } return { $d.code } order { $d.code }',
    'match { $d: Memo fuzzy($d.subject, "rad") } return { $d.code } order { $d.code }',
    f"match {{ $d: Memo }} return {{ $d.code, {NEAREST} as far }} order {{ {NEAREST} }} limit 5",
    f"match {{ $d: Memo $d.n = 3 }} return {{ $d.code }} order {{ {NEAREST} }} limit 5",
    f"match {{ $d: Memo }} return {{ $d.code, {BM25} as s }} order {{ {BM25} }} limit 5",
    f"match {{ $d: Memo $d cites $e }} return {{ $d.code }} order {{ {BM25} }} limit 5",
    f"match {{ $d: Memo }} return {{ $d.code }} order {{ rrf({NEAREST}, {BM25}) }} limit 5",
)


@pytest.fixture(params=["local", "s3"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> og.Graph:
    if request.param == "local":
        return _made(str(tmp_path / "graph"))
    return _made(f"{request.getfixturevalue('s3_bucket')}/graph")


@pytest.fixture
def local(tmp_path: Path) -> og.Graph:
    return _made(str(tmp_path / "graph"))


def _made(root: str) -> og.Graph:
    texts = ("red fox", "blue fox", "red hen", "the old red fox", None)
    memos = [
        memo(f"m{n:03}", texts[n % 5], [float(n % 7), float(n % 11), 1.0], n % 4)
        for n in range(MEMOS)
    ]
    cites = [(f"m{n:03}", f"m{n + 1:03}") for n in range(0, MEMOS - 1, 3)]
    return make_search_graph(root, search_data(memos, cites=cites))


def _index(graph: og.Graph) -> None:
    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
        if key != "node:Memo":
            return table.pin
        stamped = stamp(commit.id, "index", "maintenance")
        pin = create_index(table, "subject", "INVERTED", stamp=stamped)
        return create_index(table.at(pin), "v", "IVF_FLAT", stamp=stamped)

    assert maintain(graph, "main", work)


def _text(body: str) -> str:
    return f"query q() {{ {body} }}"


def _rank(explanation: Explanation) -> dict[str, Any]:
    return next(
        found for found in explanation.to_json()["operators"] if found["operator"] == "rank"
    )


# -- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "ways"),
    [
        (NEAREST, ["vectors in memory"]),
        (BM25, ["terms in memory"]),
        (f"rrf({BM25}, {NEAREST}, 7)", ["terms in memory", "vectors in memory"]),
    ],
)
def test_the_ranking_and_how_it_was_answered(local: og.Graph, order: str, ways: list[str]) -> None:
    body = (
        f"match {{ $d: Memo }} return {{ $d.code }} order {{ {order}, $d.n desc }} limit 3 offset 1"
    )
    planned = _rank(local.explain(_text(body)))
    ran = _rank(local.explain(_text(body), analyze=True))
    assert planned["detail"] == ran["detail"] == f"{order}, $d.n desc limit 3 offset 1"
    assert ran["ranked_by"] == ways
    assert ran["rows"] == 4
    assert "ranked_by" not in planned


def test_an_index_is_named(local: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(vectors, "DIRECT", 0)
    _index(local)
    body = f"match {{ $d: Memo }} return {{ $d.code }} order {{ rrf({NEAREST}, {BM25}) }} limit 3"
    assert _rank(local.explain(_text(body), analyze=True))["ranked_by"] == [
        "vector index",
        "text index",
    ]


def test_planning_a_ranking_reads_no_data(local: og.Graph) -> None:
    before = columns.use()
    local.explain(_text(SEARCHES[-1]))
    assert columns.use() == before


def test_what_is_filtered_and_tried(local: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "DIRECT", 0)
    monkeypatch.setattr(ranking, "FEWEST", 5)
    monkeypatch.setattr(ranking, "TRIED", 1)
    body = f"match {{ $d: Memo $d.n > 1 }} return {{ $d.code }} order {{ {NEAREST} }} limit 5"
    ran = local.explain(_text(body), analyze=True)
    scan = next(found for found in ran.to_json()["operators"] if found["operator"] == "scan")
    assert scan["rows"] == MEMOS / 2
    assert 5 <= _rank(ran)["tried"] < MEMOS / 2


# -- what it costs -------------------------------------------------------------------------------


@pytest.mark.parametrize("body", SEARCHES)
def test_asking_again_reads_nothing(graph: og.Graph, body: str) -> None:
    first = graph.query(_text(body))
    with measure() as meter:
        again = graph.query(_text(body))
    assert again.rows == first.rows
    assert len(first) > 0
    # On a local disk Lance lists past its own counters.
    assert +meter.by_operation == ({} if graph.location.is_local else {"list": 1}), str(meter)


def test_other_words_are_found_in_the_same_terms(local: og.Graph) -> None:
    local.query(_text(SEARCHES[0]))
    with measure() as meter:
        for word in ("fox", "hen blue", "old"):
            local.query(_text(SEARCHES[0].replace("red", word)))
    assert not +meter.by_operation, str(meter)


def test_texts_are_analyzed_once(local: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def counted(texts: Any) -> Any:
        sizes.append(len(texts))
        return analyze(texts)

    monkeypatch.setattr(words, "analyze", counted)
    for body in SEARCHES * 2:
        local.query(_text(body))
    assert sizes == [MEMOS]
    mutate(local, 'update Memo set { subject: "red hat" } where code = "m001"')
    for body in SEARCHES:
        local.query(_text(body))
    assert sizes == [MEMOS, MEMOS]


def test_an_indexed_search_needs_no_texts(local: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [local.query(_text(body)).rows for body in SEARCHES[:2]]
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(words, "analyze", None)
    _index(local)
    assert [local.query(_text(body)).rows for body in SEARCHES[:2]] == wanted
