"""Types with many properties: work follows their number, and requests do not."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.read.access import entities
from omnigraph.storage.objects.meter import measure

FEW, MANY = 250, 4_000
WHOLE = "query q() { match { $p: Part } return { $p } }"
NAMED = 'query q() { match { $p: Part { name: "b" } } return { $p } }'


def _graph(root: Path, count: int) -> og.Graph:
    properties = "\n".join(f"    p{n}: I64?" for n in range(count))
    graph = og.init(root, f"node Part {{\n    name: String @key\n{properties}\n}}")
    given = {f"p{n}": n for n in range(count)}
    rows = [{"type": "Part", "data": {"name": name, **given}} for name in ("a", "b", "c")]
    graph.load(rows, mode="append")
    return graph


def _requests(graph: og.Graph, source: str) -> int:
    with measure() as meter:
        rows = graph.query(source).rows
    assert rows[0]["p"]["p7"] == 7
    return meter.total


@pytest.mark.parametrize("whole_columns", [True, False])
def test_a_node_of_many_properties_is_read_by_few_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_columns: bool
) -> None:
    if not whole_columns:
        monkeypatch.setattr(entities, "SMALL_TABLE", 0)
        monkeypatch.setattr(entities, "ROW_BYTES", 0)
    narrow, wide = (_graph(tmp_path / str(count), count) for count in (20, 200))
    assert _requests(wide, WHOLE) <= _requests(narrow, WHOLE) + 10
    shown = ", ".join(f"$p.p{n} as p{n}" for n in range(20, 200))
    monkeypatch.undo()
    again = wide.query(f"query q() {{ match {{ $p: Part }} return {{ {shown} }} limit 1 }}")
    assert again.rows == [{f"p{n}": n for n in range(20, 200)}]


def test_several_properties_are_read_together(tmp_path: Path) -> None:
    graph = _graph(tmp_path / "graph", 100)
    shown = ", ".join(f"$p.p{n} as p{n}" for n in range(80))
    with measure() as meter:
        graph.query(f"query q() {{ match {{ $p: Part }} return {{ {shown} }} }}")
    assert meter.total < 40, str(meter)


def test_what_was_read_stays_right_as_rows_change(tmp_path: Path) -> None:
    graph = _graph(tmp_path / "graph", 100)
    assert [row["p"]["p99"] for row in graph.query(WHOLE).rows] == [99] * 3
    graph.mutate('query q() { update Part set { p99: 1 } where name = "b" }')
    graph.mutate('query q() { insert Part { name: "d", p99: 2 } }')
    graph.mutate('query q() { delete Part where name = "c" }')
    found = {row["p"]["@id"]: (row["p"]["p98"], row["p"]["p99"]) for row in graph.query(WHOLE).rows}
    assert found == {"a": (98, 99), "b": (98, 1), "d": (None, 2)}


@pytest.mark.slow
def test_work_follows_the_number_of_properties(tmp_path: Path) -> None:
    narrow, wide = (_graph(tmp_path / str(count), count) for count in (FEW, MANY))
    insert = 'query q() { insert Part { name: "b", p7: 7 } }'

    def ratio(work: Callable[[og.Graph], Any]) -> float:
        times = []
        for graph in (narrow, wide):
            start = time.process_time()
            work(graph)
            times.append(time.process_time() - start)
        return times[1] / max(times[0], 0.005)

    # Sixteen times as many properties; looking each of them up among all would be 256 times.
    for work in (
        lambda graph: graph.mutate(insert),
        lambda graph: graph.query(WHOLE).rows,
        lambda graph: graph.query(NAMED).rows,
    ):
        assert ratio(work) < 80
