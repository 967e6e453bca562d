"""Bounds of a query: time, memory and being called off; the graph works on afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import QueryCancelled, ResourceLimit, StorageError
from omnigraph.read.execute import engine
from omnigraph.read.plan.physical import Expansion
from omnigraph.storage import budget
from omnigraph.storage.budget import Budget, configured_bytes
from omnigraph.storage.cancellation import Cancellation

SCHEMA = "node N { name: String @key  v: I32? }\nedge E: N -> N\n"
NODES = 120
CROSS = "query q() { match { $a: N $b: N $c: N $d: N } return { count($a) as n } }"
WALK = "query q() { match { $a: N $a e{1,4} $b $b e $c } return { count($c) as n } }"
SMALL = "query q() { match { $a: N } return { count($a) as n } }"


class After(Cancellation):
    """Turns itself when it has been looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self.looks = looks

    @property
    def is_cancelled(self) -> bool:
        self.looks -= 1
        return self.looks < 0


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.init(tmp_path_factory.mktemp("budget") / "graph", SCHEMA)
    nodes: list[dict[str, Any]] = [
        {"type": "N", "data": {"name": str(n), "v": n}} for n in range(NODES)
    ]
    edges = [
        {"edge": "E", "from": str(n), "to": str((n * step) % NODES)}
        for n in range(NODES)
        for step in (1, 7, 11, 13)
    ]
    made.load(nodes + edges, mode="append")
    return made


@pytest.fixture(autouse=True)
def _works_afterwards(graph: og.Graph) -> Iterator[None]:
    configured_bytes.cache_clear()
    yield
    configured_bytes.cache_clear()
    assert graph.query(SMALL).rows == [{"n": NODES}]
    within = graph.query(SMALL, timeout=600, max_bytes=10**9, cancellation=Cancellation())
    assert within.rows == [{"n": NODES}]


@pytest.mark.parametrize("text", [CROSS, WALK, SMALL])
def test_time_is_up(graph: og.Graph, text: str) -> None:
    with pytest.raises(ResourceLimit, match="timeout") as refused:
        graph.query(text, timeout=0)
    assert refused.value.code == "resource_limit"
    assert refused.value.details["resource"] == "query_seconds"
    assert refused.value.details["actual"] > refused.value.details["limit"] == 0


def test_time_is_up_in_the_middle() -> None:
    late = Budget(timeout=5, started=-(10.0**9))
    with pytest.raises(ResourceLimit, match="longer than its timeout of 5 s"):
        late.look()


@pytest.mark.parametrize("expansion", ["csr", "indexed"])
@pytest.mark.parametrize("text", [CROSS, WALK])
def test_memory_is_bounded(graph: og.Graph, text: str, expansion: Expansion) -> None:
    with pytest.raises(ResourceLimit, match="bytes") as refused:
        graph.query(text, max_bytes=20_000, expansion=expansion)
    assert refused.value.details["resource"] == "query_bytes"
    assert refused.value.details["limit"] == 20_000
    assert refused.value.details["actual"] > 20_000


def test_memory_is_refused_before_it_is_taken(graph: og.Graph) -> None:
    """A product of six types would be 24 terabytes: nobody may even begin to make it."""
    names = "abcdef"
    text = f"query q() {{ match {{ {' '.join(f'${n}: N' for n in names)} }} return {{ $a.v }} }}"
    with pytest.raises(ResourceLimit):
        graph.query(text, max_bytes=2**30)


def test_memory_is_bounded_by_default(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "memory_limit", lambda: 4_000_000)
    configured_bytes.cache_clear()
    with pytest.raises(ResourceLimit) as refused:
        graph.query(CROSS)
    assert refused.value.details["limit"] == 1_000_000
    assert graph.query(SMALL).rows == [{"n": NODES}]


def test_the_default_is_configured(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_BYTES", "2MB")
    configured_bytes.cache_clear()
    with pytest.raises(ResourceLimit, match="2,000,000 it may have"):
        graph.query(CROSS)
    with pytest.raises(ResourceLimit, match="more than the 5 it may have"):
        graph.query(WALK, max_bytes=5)


def test_a_wrong_default_is_told(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_QUERY_BYTES", "lots")
    configured_bytes.cache_clear()
    with pytest.raises(StorageError, match="OMNIGRAPH_QUERY_BYTES is 'lots'"):
        graph.query(WALK)
    monkeypatch.undo()
    configured_bytes.cache_clear()


@pytest.mark.parametrize(
    ("text", "operator", "enough"),
    [
        ("$a: N $b: N $c: N } return { $a.v }", "scan $c: N", 10**8),
        ("$a: N $a e $b $b e $c } return { $a.v }", "expand $b", 10**5),
        ("$a: N $a e $b } return { $a.v } order { $b.v asc }", "order $b.v", 10**5),
    ],
)
def test_what_needs_the_memory_is_named(
    graph: og.Graph, text: str, operator: str, enough: int
) -> None:
    query = f"query q() {{ match {{ {text} }}"
    graph.query(query, max_bytes=enough)
    refusals = []
    for max_bytes in np.geomspace(1_000, enough, 30).astype(int).tolist():
        with suppress(ResourceLimit):
            graph.query(query, max_bytes=max_bytes)
            continue
        with pytest.raises(ResourceLimit) as refused:
            graph.query(query, max_bytes=max_bytes)
        refusals.append(refused.value)
    for refusal in refusals:
        assert f"`{refusal.details['operator']}`" in str(refusal)
        assert refusal.details["limit"] < refusal.details["actual"]
    assert any(refusal.details["operator"].startswith(operator) for refusal in refusals)


def test_memory_that_the_system_refuses(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(engine, "group_rows", refuse)
    with pytest.raises(ResourceLimit, match="aggregate"):
        graph.query("query q() { match { $a: N } return { count($a) as n } }")
    monkeypatch.undo()


def test_called_off_before_it_began(graph: og.Graph) -> None:
    switch = Cancellation()
    switch.cancel()
    with pytest.raises(QueryCancelled) as stopped:
        graph.query(SMALL, cancellation=switch)
    assert stopped.value.code == "query_cancelled"


@pytest.mark.parametrize("looks", range(6))
def test_called_off_on_the_way(graph: og.Graph, looks: int) -> None:
    with pytest.raises(QueryCancelled):
        graph.query(WALK, cancellation=After(looks))


def test_called_off_by_another_thread(graph: og.Graph) -> None:
    """Queries follow each other until one of them notices."""
    switch = Cancellation()
    begun = threading.Event()

    def turn() -> None:
        begun.wait()
        switch.cancel()

    other = threading.Thread(target=turn)
    other.start()

    def ask() -> None:
        while True:
            graph.query(WALK, cancellation=switch)
            begun.set()

    with pytest.raises(QueryCancelled):
        ask()
    other.join()


def test_one_query_called_off_leaves_others_alone(graph: og.Graph) -> None:
    found: list[int] = []

    def ask() -> None:
        found.extend(row["n"] for row in graph.query(SMALL).rows)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    with pytest.raises(QueryCancelled):
        graph.query(WALK, cancellation=After(2))
    for thread in threads:
        thread.join()
    assert found == [NODES] * 4


def test_a_bound_is_of_one_query_only(graph: og.Graph) -> None:
    with pytest.raises(ResourceLimit):
        graph.query(WALK, max_bytes=1)
    assert graph.query(WALK).rows[0]["n"] > 0
