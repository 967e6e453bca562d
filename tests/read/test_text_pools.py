"""BM25 among some of the nodes, through an index: as if all of them had been ranked."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph as og
from omnigraph.read.search import words
from omnigraph.storage.indexes.search import text_hits

SCHEMA = """
node Author { name: String @key  city: String @index }
node Note {
    slug: String @key
    text: String @index
    day: I32 @index
    hour: I32
    tags: [String]?
}
edge Wrote: Author -> Note
"""
COUNT = 3_000
RANDOM = np.random.default_rng(11)
# Few words and short texts: many are equally good.
COMMON = ["red", "fox", "hen", "old", "blue", "cart"]


def notes() -> pa.Table:
    picked = RANDOM.integers(0, len(COMMON), (COUNT, 4))
    sizes = RANDOM.integers(1, 5, COUNT)
    texts = [
        " ".join(COMMON[word] for word in row[:size])
        for row, size in zip(picked, sizes, strict=True)
    ]
    # A word that only the notes of one day have, and one that they never have.
    days = RANDOM.integers(0, 100, COUNT)
    texts = [
        f"{text} {'dawn' if day == 7 else 'dusk'}" for text, day in zip(texts, days, strict=True)
    ]
    return pa.table(
        {
            "slug": [f"n{n:05}" for n in RANDOM.permutation(COUNT)],
            "text": texts,
            "day": pa.array(days, pa.int32()),
            "hour": pa.array(RANDOM.integers(0, 24, COUNT), pa.int32()),
            "tags": [["x"] if hour % 2 else [] for hour in range(COUNT)],
        }
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.init(tmp_path_factory.mktemp("pools") / "graph", SCHEMA)
    made = notes()
    authors = pa.table(
        {"name": [f"a{n}" for n in range(40)], "city": [f"c{n % 8}" for n in range(40)]}
    )
    wrote = pa.table(
        {
            "from": [f"a{n}" for n in RANDOM.integers(0, 40, COUNT)],
            "to": made["slug"],
        }
    )
    graph.load({"Note": made, "Author": authors, "Wrote": wrote}, mode="append")
    graph.ensure_indices()
    return graph


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """How storage was told about a pool."""
    ways: list[str] = []

    def noted(*args: Any, **options: Any) -> Any:
        pool, limit = options.get("among"), options.get("limit")
        told = {pc.Expression: "condition", np.ndarray: "nodes", type(None): "nothing"}[type(pool)]
        if limit is not None:
            ways.append(told)
        return text_hits(*args, **options)

    monkeypatch.setattr(words, "text_hits", noted)
    return ways


def ranked(graph: og.Graph, match: str, query: str, limit: int, tail: str = "") -> list[Any]:
    text = (
        f"query q($q: String) {{ match {{ {match} }} return {{ $d.slug }} "
        f"order {{ bm25($d.text, $q){tail} }} limit {limit} }}"
    )
    return list(graph.query(text, params={"q": query}).rows)


MATCHES = {
    "all": ("$d: Note", {"nothing"}),
    "one day": ("$d: Note { day: 7 }", {"condition"}),
    "one of two days": ("$d: Note $d.day in [3, 4]", {"condition", "nodes"}),
    "half of the days": ("$d: Note $d.day < 50", {"nothing"}),
    "an hour": ("$d: Note { hour: 5 }", {"nodes", "nothing"}),
    "one day, and an hour": ("$d: Note { day: 7, hour: 5 }", {"nodes"}),
    "no day": ("$d: Note { day: 700 }", set()),
    "tagged": ('$d: Note { day: 7 } $d.tags contains "x"', {"nodes", "nothing"}),
    "of a city": ('$a: Author { city: "c3" } $a wrote $d', {"nothing", "nodes"}),
    "of an author": ('$a: Author { name: "a3" } $a wrote $d', {"nodes", "nothing"}),
}
QUERIES = ["fox", "red hen", "old blue cart", "dawn", "dusk fox", "nowhere", "dawn nowhere"]


@pytest.mark.slow
@pytest.mark.parametrize("more", [1, 16])
@pytest.mark.parametrize("name", MATCHES)
def test_a_pool_is_ranked_as_a_whole(
    graph: og.Graph, asked: list[str], monkeypatch: pytest.MonkeyPatch, name: str, more: int
) -> None:
    match, ways = MATCHES[name]
    cases = list(product(QUERIES, (1, 10, 60, 5_000), ("", ", $d.hour desc")))
    wanted = [ranked(graph, match, *case) for case in cases]
    assert not asked
    # From here on the table counts as a large one.
    monkeypatch.setattr(words, "ANALYZED", 0)
    monkeypatch.setattr(words, "_MORE", more)
    for case, rows in zip(cases, wanted, strict=True):
        assert ranked(graph, match, *case) == rows, case
    assert set(asked) <= ways
    assert asked or not ways
