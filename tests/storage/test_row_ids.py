"""Row ids as runs: positions there and back, against plain Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.storage.tables.row_ids import RowIds, row_ids_of
from tests.write.writing import compact_all, mutate, table_of

numbers = st.sets(st.integers(0, 40), max_size=20)


def of(values: set[int]) -> RowIds:
    return RowIds.of(np.array(sorted(values, key=lambda number: (number % 7, number)), np.int64))


def listed(found: RowIds) -> list[int]:
    return [int(row_id) for row_id in found.at(np.arange(found.count))]


@given(numbers)
def test_positions_count_what_is_before(values: set[int]) -> None:
    found = of(values)
    assert found.count == len(values)
    assert listed(found) == sorted(values)
    wanted = np.array(sorted(values), dtype=np.int64)
    assert found.positions_of(wanted).tolist() == list(range(len(values)))
    every = np.arange(45)
    assert found.hold(every).tolist() == [number in values for number in every.tolist()]


@given(st.lists(numbers, max_size=4))
def test_joined(several: list[set[int]]) -> None:
    joined = RowIds.joined([of(values) for values in several])
    assert listed(joined) == sorted(set().union(*several))


@given(numbers, numbers)
def test_two_of_them(one: set[int], other: set[int]) -> None:
    assert of(one).meet(of(other)) == bool(one & other)
    assert of(one).begin_with(of(other)) == (sorted(one)[: len(other)] == sorted(other))


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", "node Person { name: String @key  age: I32? }")
    people = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(30)]
    made.load(people, mode="append")
    return made


def test_row_ids_of_a_table_through_its_history(graph: og.Graph) -> None:
    def check() -> None:
        table = table_of(graph, "node:Person")
        stored = table.scan([], with_row_id=True).column("_rowid").to_pylist()
        assert listed(row_ids_of(table)) == sorted(stored)

    check()
    for change in (
        'update Person set { age: 70 } where name = "p2"',
        'insert Person { name: "new" }',
        'delete Person where name = "p4"',
        "update Person set { age: 71 } where age > 20",
        'delete Person where name = "new"',
    ):
        mutate(graph, change)
        check()
    compact_all(graph)
    check()
    graph.load([{"type": "Person", "data": {"name": "p1"}}], mode="overwrite")
    check()
    mutate(graph, 'delete Person where name = "p1"')
    check()
