"""Nearest neighbours through an index: hardly one missed, none that a query needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.read.search import ranking, vectors
from omnigraph.storage.indexes import build
from omnigraph.storage.indexes.build import VectorKind
from omnigraph.storage.indexes.search import nearest_hits
from omnigraph.storage.tables.table import Table, TablePin
from omnigraph.write.publish.staging import stamp
from tests.read import search_model as model
from tests.table_indexing import create_index
from tests.write.writing import maintain, mutate

SIZE = 3_000
CLUSTERS = 60
DIMENSION = 16
NUMBERS = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def through_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every table for a large one."""
    monkeypatch.setattr(vectors, "DIRECT", 0)
    monkeypatch.setattr(vectors, "SCATTERED", 0)


@pytest.fixture(params=[True, False], ids=["fits", "does not fit"])
def _memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether all vectors can be kept in memory."""
    monkeypatch.setattr(vectors.Vectors, "_fits", request.param)


@pytest.fixture
def asked_storage(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What storage was asked for; a test that finds nothing here has tested something else."""
    asked: list[str] = []

    def called(*args: Any, **options: Any) -> Any:
        asked.append("vector")
        return nearest_hits(*args, **options)

    monkeypatch.setattr(vectors, "nearest_hits", called)
    return asked


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


def index_points(graph: og.Graph, kind: VectorKind = "IVF_FLAT") -> None:
    def work(key: str, table: Table, commit: PendingCommit) -> TablePin:
        if key != "node:Point":
            return table.pin
        return create_index(table, "v", kind, stamp=stamp(commit.id, "index", "maintenance"))

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


@pytest.mark.slow
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


@pytest.mark.usefixtures("_memory")
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


@pytest.mark.usefixtures("_memory")
def test_every_vector_and_no_other_is_found_in_the_end(points: Any) -> None:
    graph, _ = points
    names = [row["name"] for row in nearest(graph, [1.0] * DIMENSION, limit=SIZE + 10)]
    assert sorted(names) == sorted(["zero", *(f"p{n}" for n in range(SIZE))])
    shown = nearest(graph, [0.0] * DIMENSION, limit=3)
    assert [row["name"] for row in shown] == ["p0", "p1", "p10"]
    assert {row["far"] for row in shown} == {1.0}


@pytest.mark.usefixtures("_memory")
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


@pytest.mark.usefixtures("_memory")
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
    assert len(asked_storage) > 1


def test_equal_vectors_of_a_pool_at_the_cut(tmp_path: Path, asked_storage: list[str]) -> None:
    """However many are equally near: their ids decide."""
    graph = og.init(tmp_path / "graph", VECTOR_SCHEMA)
    near = [1.0] * DIMENSION
    graph.load(
        [
            {"type": "Point", "data": {"name": f"p{n * 37 % 900:03}", "cluster": n % 3, "v": near}}
            for n in range(900)
        ],
        mode="append",
    )
    index_points(graph)
    wanted = sorted(f"p{n * 37 % 900:03}" for n in range(900) if n % 3 == 1)[:5]
    assert [row["name"] for row in nearest(graph, near, "$d.cluster = 1", limit=5)] == wanted
    assert asked_storage


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_RQ"])
def test_distances_of_a_rough_index_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_storage: list[str], kind: VectorKind
) -> None:
    monkeypatch.setattr(build, "QUANTISED_FROM", 0)
    monkeypatch.setattr(vectors.Vectors, "_fits", False)
    made = _points()[:1_200]
    graph = og.init(tmp_path / "graph", VECTOR_SCHEMA)
    graph.load(
        [
            {"type": "Point", "data": {"name": f"p{n}", "cluster": n % 4, "v": v.tolist()}}
            for n, v in enumerate(made)
        ],
        mode="append",
    )
    index_points(graph, kind)
    hits = 0
    for query in made[:20]:
        rows = nearest(graph, query, "$d.cluster = 2", limit=8)
        for row in rows:
            at = int(row["name"][1:])
            far = model.cosine(made[at].tolist(), query.tolist())
            assert row["far"] == pytest.approx(far, abs=1e-6)
        true = [f"p{n}" for n in exact(made, query) if n % 4 == 2][:8]
        hits += len(set(true) & {row["name"] for row in rows})
    assert hits / 160 >= 0.95
    assert set(asked_storage) == {"vector"}
