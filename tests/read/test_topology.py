"""Topologies: compressing, folding, growing and looking up, against plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.access.csr import Adjacency, Topology, Way, adjacency, folded
from omnigraph.read.execute.sorting import distinct_pairs, sort_pairs

NODES = 6
Edges = list[tuple[int, int]]
edge_lists = st.lists(st.tuples(st.integers(0, NODES), st.integers(0, NODES)), max_size=20)
WAYS: tuple[Way, ...] = ("out", "in", "both")


def topology(edges: Edges, first_row: int = 0) -> Topology:
    sources, targets = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return Topology(sources, targets, np.arange(first_row, first_row + len(edges)))


def steps(edges: Edges, way: Way) -> list[tuple[int, int, int]]:
    """Every step as (from, to, edge); a loop is one step even both ways."""
    found = []
    for row, (source, target) in enumerate(edges):
        if way in ("out", "both"):
            found.append((source, target, row))
        if way == "in" or (way == "both" and source != target):
            found.append((target, source, row))
    return found


def content(ways: Adjacency) -> list[tuple[int, ...]]:
    """All of an adjacency, in its order."""
    every = np.arange(len(ways.starts) - 1)
    origins, targets, edges = ways.expand(every, with_rows=ways.rows is not None)
    rows = targets if edges is None else edges
    return list(zip(every[origins].tolist(), targets.tolist(), rows.tolist(), strict=True))


@given(edge_lists)
def test_steps_and_edges(edges: Edges) -> None:
    made = topology(edges)
    for way in WAYS:
        wanted = steps(edges, way)
        assert Counter(content(made.edges(way))) == Counter(wanted)
        folded_pairs = [(source, target) for source, target, _ in content(made.steps(way))]
        assert folded_pairs == sorted({(source, target) for source, target, _ in wanted})


@given(edge_lists, edge_lists)
def test_grown_is_rebuilt(edges: Edges, more: Edges) -> None:
    base = topology(edges)
    for way in WAYS:
        base.edges(way)
        base.steps(way)
    added = topology(more, len(edges))
    grown = base.grown(added.sources, added.targets, added.rows)
    rebuilt = topology(edges + more)
    for way in WAYS:
        assert sorted(content(grown.edges(way))) == sorted(content(rebuilt.edges(way)))
        assert content(grown.steps(way)) == content(rebuilt.steps(way))
        for found in (grown.edges(way), grown.steps(way)):
            assert int(found.starts[-1]) == len(found.targets)
            pairs = [pair[:2] for pair in content(found)]
            assert pairs == sorted(pairs), "targets of a source ascend"


@given(edge_lists)
def test_growing_keeps_only_what_was_derived(edges: Edges) -> None:
    base = topology(edges)
    base.steps("out")
    grown = base.grown(base.sources, base.targets, base.rows + len(edges))
    assert {name for name, value in vars(grown).items() if isinstance(value, Adjacency)} <= {
        "out",
        "out_folded",
    }
    assert content(grown.steps("out")) == content(base.steps("out"))


@given(edge_lists, edge_lists)
def test_has(edges: Edges, pairs: Edges) -> None:
    asked = [*pairs, (-1, 0), (0, -1), (NODES + 5, 0), (0, NODES + 5)]
    sources, targets = np.array(asked, dtype=np.int64).T
    made = topology(edges)
    for way in WAYS:
        there = {(source, target) for source, target, _ in steps(edges, way)}
        wanted = [pair in there for pair in asked]
        assert made.steps(way).has(sources, targets).tolist() == wanted
        assert made.edges(way).has(sources, targets).tolist() == wanted


@given(edge_lists, st.lists(st.integers(-1, NODES + 5), max_size=8))
def test_expand_and_degrees(edges: Edges, asked: list[int]) -> None:
    ways = topology(edges).edges("out")
    origins, targets, _ = ways.expand(np.array(asked, dtype=np.int64))
    wanted = [
        (place, target)
        for place, node in enumerate(asked)
        for source, target in sorted(edges)
        if source == node
    ]
    assert list(zip(origins.tolist(), targets.tolist(), strict=True)) == wanted
    degrees = [sum(source == node for source, _ in edges) for node in asked]
    assert ways.degrees(np.array(asked, dtype=np.int64)).tolist() == degrees


@given(edge_lists)
def test_folding_what_is_folded_changes_nothing(edges: Edges) -> None:
    made = topology(edges)
    once = folded(made.sources, made.targets)
    pairs = topology([(source, target) for source, target, _ in content(once)])
    assert content(folded(pairs.sources, pairs.targets)) == content(once)


numbers = st.integers(0, 2**33) | st.integers(0, 3)


@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_pairs_are_sorted_and_told_apart(pairs: Edges) -> None:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    assert [pairs[place] for place in sort_pairs(first, second)] == sorted(pairs)
    one, other = distinct_pairs(first, second)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == sorted(set(pairs))


@pytest.mark.parametrize("rows", [None, np.empty(0, dtype=np.int64)])
def test_nothing_at_all(rows: np.ndarray[tuple[int], np.dtype[np.int64]] | None) -> None:
    nothing = np.empty(0, dtype=np.int64)
    ways = adjacency(nothing, nothing, rows)
    somebody = np.array([0, 3, -1])
    assert ways.degrees(somebody).tolist() == [0, 0, 0]
    assert not ways.has(somebody, somebody).any()
    assert ways.expand(somebody)[1].tolist() == []


@given(edge_lists, st.sets(st.integers(0, NODES)))
def test_moved_is_rebuilt(edges: Edges, isolated: set[int]) -> None:
    """Nodes without edges are taken away, so that the positions of the others move."""
    gone = isolated - {end for edge in edges for end in edge}
    left = [node for node in range(NODES + 1) if node not in gone]
    moves = np.array([left.index(node) if node in left else -1 for node in range(NODES + 1)])
    base = topology(edges)
    for way in WAYS:
        base.edges(way)
        base.steps(way)
    rebuilt = topology([(left.index(source), left.index(target)) for source, target in edges])
    for with_derived in (True, False):
        moved = base.moved(moves, moves, with_derived=with_derived)
        for way in WAYS:
            assert content(moved.edges(way)) == content(rebuilt.edges(way))
            assert content(moved.steps(way)) == content(rebuilt.steps(way))
    assert base.moved(None, None, with_derived=True) is base
