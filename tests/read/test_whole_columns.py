"""When a column is read as a whole: as soon as rows read one by one have cost as much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.lang.structural import ID
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.read.access import entities
from omnigraph.read.access.column_cache import ColumnCache
from omnigraph.read.access.entities import Entities
from omnigraph.storage.cache_budget import CacheBudget
from tests.write.writing import table_of

SCHEMA = "node Person { name: String @key  age: I32?  about: String?  v: Vector(8)? }"
COUNT = 1_000
SIZES = {"age": 4, "about": 60, "v": 32}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("columns") / "graph", SCHEMA)
    rows = {
        "name": [f"p{n:04}" for n in range(COUNT)],
        "age": pa.array(range(COUNT), pa.int32()),
        "about": [f"{n:056}" for n in range(COUNT)],
        "v": [[float(n)] * 8 for n in range(COUNT)],
    }
    made.load({"Person": pa.table(rows)}, mode="append")
    return made


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "SMALL_TABLE", 0)


def people(graph: og.Graph, max_bytes: int = 2**20) -> Entities:
    type_ = catalog_of(graph.snapshot().schema).nodes["Person"]
    return Entities(type_, table_of(graph, "node:Person"), ColumnCache(CacheBudget(max_bytes)))


@pytest.mark.parametrize("name", SIZES)
def test_rows_that_cost_as_much_as_the_column(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Ten rows at a time, each as dear as a tenth of the column or a little more."""
    monkeypatch.setattr(entities, "ROW_BYTES", SIZES[name] * COUNT // 55)
    found = people(graph)
    whole = []
    for start in range(0, 100, 10):
        rows = np.arange(start, start + 10)
        assert len(found.values(name, rows)) == 10
        whole.append(found.cache.holds(found.table, name))
    assert whole[:4] == [False] * 4
    assert whole[-1]


def test_the_same_row_costs_once(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "ROW_BYTES", 400)
    found = people(graph)
    for _ in range(100):
        assert found.values("age", np.array([17])).to_pylist() == [17]
    assert not found.cache.holds(found.table, "age")


def test_what_cannot_be_kept_is_never_read_as_a_whole(graph: og.Graph) -> None:
    found = people(graph, max_bytes=20_000)
    values = found.values("about", np.arange(COUNT - 1))
    assert values.to_pylist()[5] == f"{5:056}"
    assert not found.cache.holds(found.table, "about")
    found.values("age", np.arange(COUNT - 1))
    assert found.cache.holds(found.table, "age")


def test_rows_that_are_kept_one_by_one_are_bounded(graph: og.Graph) -> None:
    found = people(graph, max_bytes=58_000)
    found.values("about", np.array([0]))
    before = found.cache.use().bytes
    for start in range(0, COUNT, 7):
        rows = np.arange(start, min(start + 7, COUNT))
        # Some of the last ones again.
        again = np.concatenate([np.maximum(rows[:1] - 3, 0), rows])
        assert found.values("about", again).to_pylist() == [f"{n:056}" for n in again.tolist()]
        assert found.cache.use().bytes - before <= 58_000 // 64 + 7 * 80
    assert not found.cache.holds(found.table, "about")


def test_a_key_is_read_from_the_ids(graph: og.Graph, tmp_path: Path) -> None:
    found = people(graph)
    assert found.values("name", np.array([3, 5])).to_pylist() == ["p0003", "p0005"]
    assert found.cache.partly(found.table, ID) is not None
    assert found.cache.partly(found.table, "name") is None
    numbered = og.init(
        tmp_path / "graph",
        "node Seat { row: I32 @key } node Pair { a: String  b: String  @key(a, b) }",
    )
    numbered.load(
        [
            {"type": "Seat", "data": {"row": 7}},
            {"type": "Pair", "data": {"a": "x", "b": "y"}},
        ],
        mode="append",
    )
    assert numbered.query("query q() { match { $s: Seat } return { $s.row } }").rows == [
        {"s.row": 7}
    ]
    asked = "query q() { match { $p: Pair } return { $p.a, $p.b } }"
    assert numbered.query(asked).rows == [{"p.a": "x", "p.b": "y"}]
