"""A graph that was deleted under an open handle, and another one made in its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import obstore
import pytest

import omnigraph as og
from omnigraph.errors import GraphReplaced, NotFound
from omnigraph.storage.objects.files import bucket_store
from omnigraph.storage.objects.location import Location

OLD = "node Person { name: String @key }\nedge Knows: Person -> Person"
NEW = "node City { title: String @key\n size: I32? }\nnode Zoo { n: String @key }"
PEOPLE = "query all() { match { $p: Person } return { $p.name as name } }"
CITIES = "query all() { match { $c: City } return { $c.title as title } }"


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "graph.omni")
    bucket: str = request.getfixturevalue("s3_bucket")
    return bucket


def delete(place: str) -> None:
    location = Location.parse(place)
    if location.is_local:
        shutil.rmtree(place)
        return
    store = bucket_store(location)
    for chunk in obstore.list(store, location.prefix):
        obstore.delete(store, [found["path"] for found in chunk])


def add(graph: og.Graph, text: str, count: int) -> None:
    for number in range(count):
        graph.mutate(f"query add() {{ insert {text.format(number)} }}")


def replaced(place: str, others: int) -> og.Graph:
    """A handle on a graph whose place has been taken by one with so many commits more."""
    graph = og.init(place, OLD)
    graph.branches.create("dev")
    add(graph, 'Person {{ name: "p{}" }}', 2)
    assert len(graph.query(PEOPLE).rows) == 2
    assert graph.branches.list() == ["dev", "main"]
    delete(place)
    other = og.init(place, NEW)
    other.branches.create("side")
    add(other, 'City {{ title: "c{}" }}', 2 + others)
    return graph


CALLS: dict[str, Callable[[og.Graph], Any]] = {
    "query": lambda graph: graph.query(PEOPLE),
    "schema": lambda graph: graph.schema,
    "snapshot": lambda graph: graph.snapshot(),
    "branch": lambda graph: graph.snapshot("dev"),
    "export": lambda graph: list(graph.export()),
    "commits": lambda graph: graph.commits.list(),
    "poll": lambda graph: graph.changes.poll(start="beginning"),
    "branches": lambda graph: graph.branches.list(),
    "mutate": lambda graph: graph.mutate('query a() { insert Person { name: "x" } }'),
    "load": lambda graph: graph.load('{"type":"Person","data":{"name":"y"}}', mode="merge"),
    "create": lambda graph: graph.branches.create("new"),
    "indexes": lambda graph: graph.ensure_indices(),
    "cleanup": lambda graph: graph.cleanup(1),
}


@pytest.mark.parametrize("others", [-1, 0, 1])
def test_another_graph_in_its_place_is_told(place: str, others: int) -> None:
    """With fewer, as many or more versions than the one that was opened."""
    graph = replaced(place, others)
    for name, call in CALLS.items():
        with pytest.raises(GraphReplaced) as told:
            pytest.fail(f"{name} gave {call(graph)}")
        assert told.value.code == "graph_replaced"
        assert str(told.value).endswith("since this one was opened: open it again")
    again = og.open(place)
    assert len(again.query(CITIES).rows) == 2 + others
    assert again.branches.list() == ["main", "side"]
    add(again, 'City {{ title: "z{}" }}', 1)
    assert len(og.open(place).query(CITIES).rows) == 3 + others


def test_what_is_kept_of_a_table_is_not_taken_for_that_of_another_graph(tmp_path: Path) -> None:
    """The tables of both lie at the same places, and begin at the same version."""
    place = tmp_path / "graph.omni"
    for name, count in (("name", 1), ("title", 2), ("label", 1)):
        graph = og.init(place, f"node Thing {{ {name}: String @key\n {name}_2: String? }}")
        text = f'Thing {{{{ {name}: "t{{}}", {name}_2: "x" }}}}'
        add(graph, text, count)
        query = f"query all() {{ match {{ $t: Thing }} return {{ $t.{name}_2 as second }} }}"
        assert graph.query(query).rows == [{"second": "x"}] * count
        assert og.open(place).query(query).rows == [{"second": "x"}] * count
        shutil.rmtree(place)


def test_a_graph_that_is_gone(place: str) -> None:
    graph = og.init(place, OLD)
    delete(place)
    with pytest.raises(NotFound, match="is not there any more"):
        graph.query(PEOPLE)
    with pytest.raises(NotFound, match="is not there any more"):
        graph.mutate('query a() { insert Person { name: "x" } }')


def test_a_graph_that_was_restored_is_the_same(tmp_path: Path) -> None:
    place, saved = tmp_path / "graph.omni", tmp_path / "saved"
    graph = og.init(place, OLD)
    add(graph, 'Person {{ name: "p{}" }}', 2)
    shutil.copytree(place, saved, copy_function=shutil.copyfile)
    shutil.rmtree(place)
    shutil.copytree(saved, place, copy_function=shutil.copyfile)
    assert len(graph.query(PEOPLE).rows) == 2
    add(graph, 'Person {{ name: "q{}" }}', 1)
    assert len(og.open(place).query(PEOPLE).rows) == 3
