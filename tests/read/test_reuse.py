"""Caches reuse what they know of other versions; what of those is gone, they do without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest import snapshot
from omnigraph.read.access.column_cache import columns
from omnigraph.read.access.topology_cache import topologies
from omnigraph.storage import cache_budget
from omnigraph.storage.tables import row_lookup
from omnigraph.storage.tables.handles import handles
from omnigraph.storage.tables.reachable_files import files_of
from omnigraph.storage.tables.table import Table
from tests.table_writes import all_files
from tests.write.writing import compact_all, mutate, table_of

SCHEMA = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person
"""
TYPES = ("node:Person", "edge:Knows")
WALK = "query walk() { match { $p: Person $p knows $q } return { $p.name, $q.age } }"
ALL = "query all() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
POINT = 'query one() { match { $p: Person { name: "p2" } } return { $p.age } }'
Lines = list[dict[str, Any]]


def lines(shift: int = 0) -> Lines:
    people: Lines = [
        {"type": "Person", "data": {"name": f"p{n}", "age": n + shift}} for n in range(5)
    ]
    return people + [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n + 1) % 5}"} for n in range(5)]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", SCHEMA)
    made.load(lines(), mode="append")
    return made


def answers(graph: og.Graph) -> list[list[tuple[Any, ...]]]:
    found = [graph.query(text).rows for text in (WALK, ALL, POINT)]
    return [sorted(tuple(row.values()) for row in rows) for rows in found]


def remove_what_the_head_does_not_need(graph: og.Graph) -> int:
    """Leave the files of the present versions, and nothing else; returns how many were removed."""
    removed = 0
    for key in TYPES:
        table = table_of(graph, key)
        for name in all_files(table) - files_of(table):
            Path(table.location.path, name).unlink()
            removed += 1
    return removed


def forgets_handles(graph: og.Graph) -> None:
    for key in TYPES:
        handles.forget(table_of(graph, key).location)


def moved(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "new" age: 7 } insert Knows { from: "p0" to: "p3" }')
    compact_all(graph)


CHANGES: dict[str, Callable[[og.Graph], object]] = {
    "a node more": lambda graph: mutate(graph, 'insert Person { name: "new" age: 7 }'),
    "a node changed": lambda graph: mutate(
        graph, 'update Person set { age: 70 } where name = "p2"'
    ),
    "an edge more": lambda graph: mutate(graph, 'insert Knows { from: "p0" to: "p3" }'),
    "a node less": lambda graph: mutate(graph, 'delete Person where name = "p2"'),
    "all rewritten": lambda graph: graph.load(lines(10), mode="overwrite"),
    "all moved": moved,
}


@pytest.mark.parametrize("with_handles", [True, False], ids=["handles kept", "handles dropped"])
@pytest.mark.parametrize("change", CHANGES)
def test_the_head_is_read_though_files_of_cached_versions_are_gone(
    graph: og.Graph, change: str, with_handles: bool
) -> None:
    answers(graph)
    CHANGES[change](graph)
    expected = stored_answers(graph)
    if not with_handles:
        forgets_handles(graph)
        row_lookup.fragment_maps.clear()
    assert remove_what_the_head_does_not_need(graph)
    assert answers(graph) == expected
    assert answers(graph) == expected


def stored_answers(graph: og.Graph) -> list[list[tuple[Any, ...]]]:
    """The same answers from the rows as they are stored, past all that queries keep."""
    people = graph.table("Person").to_table().to_pylist()
    edges = graph.table("Knows").to_table().to_pylist()
    ages = {row[ID]: row["age"] for row in people}
    walk = sorted((row[SRC], ages[row[DST]]) for row in edges)
    return [walk, sorted(ages.items()), [(ages[name],) for name in ("p2",) if name in ages]]


def test_a_version_that_is_gone_is_not_tried_again(graph: og.Graph) -> None:
    answers(graph)
    old = topologies.use().entries
    mutate(graph, 'insert Person { name: "new" age: 7 }')
    forgets_handles(graph)
    row_lookup.fragment_maps.clear()
    remove_what_the_head_does_not_need(graph)
    answers(graph)
    assert topologies.use().entries == old


def test_a_map_is_not_learnt_from_a_version_that_is_gone(graph: og.Graph) -> None:
    before = table_of(graph, "node:Person")
    row_lookup.find_rows(before, ID, before.scan([ID]).column(ID), (ID,))
    mutate(graph, 'insert Person { name: "new" age: 7 }')
    after = table_of(graph, "node:Person")
    remove_what_the_head_does_not_need(graph)
    handles.forget(before.location)
    row_lookup.fragment_maps.learn(before, after)
    assert names(after, "new", "p1", "nobody") == ["new", "p1"]


def names(table: Table, *wanted: str) -> list[str]:
    found = row_lookup.find_rows(table, ID, pa.array(wanted), (ID,))
    return sorted(found.column(ID).to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("max_bytes", [0, 1_000, 100_000])
def test_answers_do_not_depend_on_the_budget(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, max_bytes: int
) -> None:
    expected = answers(graph)
    cache_budget.budget.clear()
    monkeypatch.setattr(cache_budget.budget, "_max_bytes", max_bytes)
    for change in ("a node more", "an edge more", "a node less"):
        CHANGES[change](graph)
        small = answers(graph)
        assert sum(use.bytes for use in cache_budget.budget.uses().values()) <= max_bytes
        assert small == stored_answers(graph)
        assert small != expected
        expected = small


def test_the_graph_tells_what_each_cache_holds(graph: og.Graph) -> None:
    answers(graph)
    answers(graph)
    told = graph.caches
    for name in ("columns", "handles", "lookups", "topologies"):
        use = told[name]
        assert use.entries > 0
        assert 0 < use.bytes <= use.max_bytes
        assert use.hits > 0
    assert told["storage_metadata"].bytes > 0


def test_what_a_topology_derives_later_is_counted(graph: og.Graph) -> None:
    topologies.clear()
    graph.query(WALK)
    out = topologies.use()
    graph.query("query into() { match { $q: Person $p $k:knows $q } return { $p.name, $k.@id } }")
    both = topologies.use()
    assert both.entries == out.entries == 1
    assert both.bytes > out.bytes


def test_versions_that_share_their_edges_count_them_once(graph: og.Graph) -> None:
    pairs = [(f"p{n % 5}", f"p{n % 3}") for n in range(2_000)]
    graph.load([{"edge": "Knows", "from": start, "to": end} for start, end in pairs], mode="append")
    topologies.clear()
    graph.query(WALK)
    one = topologies.use()
    mutate(graph, 'update Person set { age: 70 } where name = "p2"')
    graph.query(WALK)
    two = topologies.use()
    assert (one.entries, two.entries) == (1, 2)
    assert two.bytes - one.bytes < 1_000 < one.bytes


def test_a_warm_query_makes_no_snapshot_again(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers(graph)
    shown = graph.snapshot()
    made: list[object] = []
    monkeypatch.setattr(snapshot, "snapshot_of", lambda *args: made.append(args))
    assert answers(graph) == expected
    assert graph.snapshot() is shown
    assert not made
    monkeypatch.undo()
    mutate(graph, 'insert Person { name: "new" age: 7 }')
    assert graph.snapshot() is not shown
    assert graph.snapshot().tables["edge:Knows"].pinned == shown.tables["edge:Knows"].pinned


# -- memory follows the rows there are ---------------------------------------------------------

ROWS = 2_000
OF_ROWS = ("columns", "topologies", "ids", "lookups", "row_ids")


def rewrite(graph: og.Graph, shift: int) -> None:
    people: Lines = [
        {"type": "Person", "data": {"name": f"p{n}", "age": n + shift}} for n in range(ROWS)
    ]
    edges: Lines = [
        {"edge": "Knows", "from": f"p{n}", "to": f"p{(n * 7 + 1) % ROWS}"} for n in range(ROWS)
    ]
    graph.load(people + edges, mode="overwrite")


def held() -> int:
    return sum(use.bytes for name, use in cache_budget.budget.uses().items() if name in OF_ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("each_time", [True, False], ids=["asked each time", "asked at the end"])
def test_overwriting_again_and_again_leaves_as_much_in_memory(
    graph: og.Graph, each_time: bool
) -> None:
    cache_budget.budget.clear()
    rewrite(graph, 0)
    answers(graph)
    once = held()
    for shift in range(1, 12):
        rewrite(graph, shift)
        if each_time:
            answers(graph)
    expected = stored_answers(graph)
    assert answers(graph) == expected
    assert held() <= 1.3 * once


def test_a_version_that_another_branch_reads_is_not_given_up_twice(graph: og.Graph) -> None:
    expected = answers(graph)
    graph.branches.create("old")
    rewrite(graph, 3)

    def ask() -> int:
        before = columns.use().misses, topologies.use().misses
        assert graph.query(ALL, branch="old").table.num_rows == len(expected[1])
        assert graph.query(WALK, branch="old").table.num_rows == len(expected[0])
        assert graph.query(ALL).table.num_rows == ROWS
        assert graph.query(WALK).table.num_rows == ROWS
        after = columns.use().misses, topologies.use().misses
        return sum(after) - sum(before)

    assert ask() > 0
    ask()
    assert ask() == 0
