"""Pages of rankings: of one order, whatever the size of a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.read.search import fusion, ranking, tiers, vectors, words
from omnigraph.storage.indexes import build
from omnigraph.storage.indexes.build import VectorKind
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.table_indexing import create_index
from tests.write.writing import maintain

SIZE = 1_500
TAIL = 150
DIMENSION = 8
WHOLE = 40
SCHEMA = f"""\
node Text {{ name: String @key  n: I32 @index  words: String  more: String
  v: Vector({DIMENSION})  w: Vector({DIMENSION}) }}
edge Next: Text -> Text
"""
NEAREST, OTHER = "nearest($d.v, $v)", "nearest($d.w, $v)"
BM25, MORE = 'bm25($d.words, "ant bee fly")', 'bm25($d.more, "cat dog")'
RANKINGS = (
    NEAREST,
    BM25,
    f"rrf({NEAREST}, {BM25})",
    f"rrf({BM25}, {NEAREST}, 2)",
    f"rrf({NEAREST}, {OTHER})",
    f"rrf({BM25}, {MORE})",
    f"rrf({NEAREST}, {BM25}, 1000)",
)
MATCHES = (
    "$d: Text",
    "$d: Text $d.n < 4",
    "$d: Text $d.n = 3",
    "$d: Text $d next $e",
    "$e: Text $e.n < 6 $e next $d",
)
VOCABULARY = (
    *("ant", "bee", "cat", "dog", "elk", "fly", "gnu", "hen"),
    *("ibis", "jay", "kite", "lark", "mole", "newt", "owl"),
)


@pytest.fixture(autouse=True)
def large_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every table for a large one, of which an index sees a small part at first."""
    monkeypatch.setattr(vectors, "DIRECT", 0)
    monkeypatch.setattr(vectors, "SCATTERED", 0)
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(ranking, "FEWEST", 4)
    monkeypatch.setattr(ranking, "TRIED", 1)
    monkeypatch.setattr(tiers, "FIRST", 12)
    monkeypatch.setattr(tiers, "FIRST_ROUGH", 6)
    monkeypatch.setattr(fusion, "WINDOW", 10)
    monkeypatch.setattr(ranking, "WINDOW", 10)
    monkeypatch.setattr(build, "_FEWEST_PROBES", 1)
    monkeypatch.setattr(build, "_ROWS_PER_PARTITION", 25)


def _lines(random: np.random.Generator, numbers: range) -> Iterator[dict[str, Any]]:
    for n in numbers:
        # Some vectors and texts are the same: then the ids decide.
        source = random if n % 5 else np.random.default_rng(n % 3)
        drawn = source.normal(size=(2, DIMENSION))
        texts = [" ".join(source.choice(VOCABULARY, source.integers(1, 9))) for _ in range(2)]
        yield {
            "type": "Text",
            "data": {
                "name": f"t{n * 7919 % 10_007:05}",
                "n": int(n % 8),
                "words": texts[0],
                "more": texts[1],
                "v": drawn[0].tolist(),
                "w": drawn[1].tolist(),
            },
        }


def _graph(root: Path, seed: int, kind: VectorKind) -> og.Graph:
    random = np.random.default_rng(seed)
    graph = og.init(root, SCHEMA)
    lines = list(_lines(random, range(SIZE)))
    names = [line["data"]["name"] for line in lines]
    edges = [
        {"edge": "Next", "from": names[n], "to": names[random.integers(0, SIZE)]}
        for n in range(0, SIZE, 3)
    ]
    graph.load([*lines, *edges], mode="append")

    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
        pin = table.pin
        if key == "node:Text":
            stamped = stamp(commit.id, "index", "maintenance")
            for column in ("words", "more"):
                pin = create_index(table.at(pin), column, "INVERTED", stamp=stamped)
            for column in ("v", "w"):
                pin = create_index(table.at(pin), column, kind, stamp=stamped)
            pin = create_index(table.at(pin), "n", "BTREE", stamp=stamped)
        return pin

    assert maintain(graph, "main", work)
    # What no index covers.
    graph.load(list(_lines(random, range(SIZE, SIZE + TAIL))), mode="append")
    return graph


@pytest.fixture(
    scope="module",
    params=[
        ("IVF_FLAT", 1),
        pytest.param(("IVF_FLAT", 2), marks=pytest.mark.slow),
        pytest.param(("IVF_RQ", 3), marks=pytest.mark.slow),
    ],
    ids=str,
)
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    kind, seed = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_ROWS_PER_PARTITION", 25)
        return _graph(tmp_path_factory.mktemp("pages") / "graph", seed, kind)


def _read(graph: og.Graph, match: str, ranked: str, limit: int, offset: int = 0) -> list[Any]:
    shown = "$d.name as d, $e.name as e" if "$e" in match else "$d.name as d"
    text = (
        f"query q($v: Vector({DIMENSION})) {{ match {{ {match} }} "
        f"return {{ {shown}, {ranked} as s }} order {{ {ranked} }} limit {limit} offset {offset} }}"
    )
    query = np.random.default_rng(5).normal(size=DIMENSION).tolist()
    return list(graph.query(text, params={"v": query}).rows)


@pytest.mark.pairwise
@pytest.mark.parametrize("ranked", RANKINGS)
@pytest.mark.parametrize("match", MATCHES)
def test_pages_are_pages_of_one_order(graph: og.Graph, match: str, ranked: str) -> None:
    whole = _read(graph, match, ranked, WHOLE)
    assert len(whole) == WHOLE
    assert len({(row["d"], row.get("e")) for row in whole}) == WHOLE
    pages = [_read(graph, match, ranked, 5, at) for at in range(0, WHOLE, 5)]
    assert [row for page in pages for row in page] == whole
    if ranked.startswith("rrf"):
        sums = [row["s"] for row in whole]
        assert sums == sorted(sums, reverse=True)


def test_pages_of_two_rankings_of_different_nodes(graph: og.Graph) -> None:
    ranked = f'rrf({NEAREST}, bm25($e.words, "ant bee"))'
    for match in MATCHES[3:]:
        whole = _read(graph, match, ranked, WHOLE)
        pages = [_read(graph, match, ranked, 8, at) for at in range(0, WHOLE, 8)]
        assert [row for page in pages for row in page] == whole


@pytest.mark.parametrize("ranked", [NEAREST, f"rrf({NEAREST}, {BM25})"])
def test_the_whole_order_has_every_row_once(graph: og.Graph, ranked: str) -> None:
    every = _read(graph, "$d: Text", ranked, 2 * SIZE)
    assert len(every) == len({row["d"] for row in every}) == SIZE + TAIL
    for limit in (1, 9, 13, 100, 700):
        assert _read(graph, "$d: Text", ranked, limit) == every[:limit]


def test_the_first_tier_is_in_the_order_of_distances(graph: og.Graph) -> None:
    far = [row["s"] for row in _read(graph, "$d: Text", NEAREST, tiers.FIRST_ROUGH)]
    assert far == sorted(far)


def test_a_filter_changes_no_score(graph: og.Graph) -> None:
    """Also of texts that were written since the index was built."""
    scores = {row["d"]: row["s"] for row in _read(graph, "$d: Text", BM25, 2 * SIZE)}
    for match in MATCHES[1:4]:
        for limit in (5, 2 * SIZE):
            found = _read(graph, match, BM25, limit)
            assert {row["d"]: row["s"] for row in found} == {
                row["d"]: scores[row["d"]] for row in found
            }


def test_fused_places_count_within_a_window() -> None:
    first, second = np.arange(100), np.arange(99, -1, -1)
    known = fusion.fused([first, second], 60)
    # The eleventh is within the second window, of 80, and its other place of 90 is not.
    assert known.scores.at(np.array([0, 10, 49])).tolist() == pytest.approx(
        [1 / 61, 1 / 71, 1 / 110 + 1 / 111]
    )
