"""The walks of the architecture page: every module that one names is at work, and they are few."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from tests.docs.walks import at_work, modules, walk

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
QUERY = "query q($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age } }"
INSERT = "query q($n: String) { insert Person { name: $n, age: 1 } }"
UPDATE = 'query q($a: I32) { update Person set { age: $a } where name = "ann" }'
MOST = {
    "A point query": 14,
    "A load of three rows": 20,
    "A schema change": 20,
    "A load on Spark": 30,
}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", SCHEMA)
    load_three(graph, "ann", "ben")
    return graph


def load_three(graph: og.Graph, one: str, other: str) -> object:
    """Two nodes and the edge between them."""
    rows: list[dict[str, object]] = [{"type": "Person", "data": {"name": n}} for n in (one, other)]
    return graph.load([*rows, {"edge": "Knows", "from": one, "to": other}], mode="append")


@pytest.mark.parametrize("title", MOST)
def test_walks_are_short(title: str) -> None:
    assert 5 < len(modules(walk(title))) <= MOST[title]


def test_a_point_query(graph: og.Graph) -> None:
    found = at_work(lambda: graph.query(QUERY, params={"n": "ann"}))
    assert set(modules(walk("A point query"))) - found == set()


def test_a_load_of_three_rows(graph: og.Graph) -> None:
    found = at_work(lambda: load_three(graph, "cat", "dan"))
    assert set(modules(walk("A load of three rows"))) - found == set()


def test_a_schema_change(graph: og.Graph) -> None:
    text = SCHEMA.replace("age: I32?", 'age: I64? @unique  city: String @default("Delft")')
    queries = {"q.gq": QUERY}
    change = text + "\nnode City { name: String @key }"
    found = at_work(lambda: graph.apply_schema(change, queries=queries))
    assert set(modules(walk("A schema change"))) - found == set()


def test_a_merge(graph: og.Graph) -> None:
    graph.branches.create("dev")
    graph.mutate(UPDATE, params={"a": 1}, branch="dev")
    graph.mutate(INSERT, params={"n": "eve"}, branch="dev")
    graph.mutate(UPDATE, params={"a": 2})
    found = at_work(lambda: graph.branches.merge("dev", resolve="source"))
    assert set(modules(walk("A merge"))) - found == set()
