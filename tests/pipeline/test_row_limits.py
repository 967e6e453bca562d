"""One set of limits for every way in: what a graph has taken can be exported and loaded again."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from tests.pipeline.engines import content, run_tasks_here
from tests.write.writing import unchanged

SCHEMA = """
node Note {
    name: String @key
    text: String?
    more: String?
    texts: [String]?
    numbers: [I64]?
    bits: [Bool]?
    times: [DateTime]?
    vector: Vector(140000)?
    content: Blob?
}
"""
LONG = 34_000_000
"""More than 32 MiB as text."""
MANY = 140_000

Way = Callable[[og.Graph, dict[str, Any]], object]


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks_here(monkeypatch)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", SCHEMA)


def by_mutation(graph: og.Graph, row: dict[str, Any]) -> object:
    kinds = {
        "name": "String",
        "text": "String",
        "more": "String",
        "texts": "[String]",
        "numbers": "[I64]",
        "bits": "[Bool]",
        "times": "[DateTime]",
        "vector": "Vector(140000)",
        "content": "Blob",
    }
    declared = ", ".join(f"${name}: {kinds[name]}" for name in row)
    given = ", ".join(f"{name}: ${name}" for name in row)
    return graph.mutate(f"query q({declared}) {{ insert Note {{ {given} }} }}", params=row)


def by_line(graph: og.Graph, row: dict[str, Any]) -> object:
    spelled = dict(row)
    if "content" in row:
        spelled["content"] = "base64:" + base64.b64encode(row["content"]).decode()
    return graph.load(json.dumps({"type": "Note", "data": spelled}), mode="append", engine="inline")


def by_record_on_spark(graph: og.Graph, row: dict[str, Any]) -> object:
    return graph.load([{"type": "Note", "data": row}], mode="append", engine="spark")


def _table(row: dict[str, Any]) -> pa.Table:
    return pa.table({name: pa.array([value]) for name, value in row.items()})


def by_frame(graph: og.Graph, row: dict[str, Any]) -> object:
    return graph.load({"Note": _table(row)}, mode="append", engine="inline")


def by_frame_on_spark(graph: og.Graph, row: dict[str, Any]) -> object:
    return graph.load({"Note": _table(row)}, mode="append", engine="spark")


def by_csv(graph: og.Graph, row: dict[str, Any]) -> object:
    spelled = {name: v if isinstance(v, str) else json.dumps(v) for name, v in row.items()}
    cells = ['"' + text.replace('"', '""') + '"' for text in spelled.values()]
    path = Path(graph.location.path).parent / "Note.csv"
    path.write_text(",".join(row) + "\n" + ",".join(cells) + "\n", newline="")
    return graph.load(path, mode="append", engine="spark")


WAYS = [by_mutation, by_line, by_record_on_spark, by_frame, by_frame_on_spark, by_csv]
LARGE: dict[str, dict[str, Any]] = {
    "text": {"text": "é" * (LONG // 2)},
    "list of texts": {"texts": ["a,b"] * MANY},
    "list of numbers": {"numbers": [2**62] * MANY},
    "list of truth values": {"bits": [True, False] * (MANY // 2)},
    "vector": {"vector": [0.1] * MANY},
    "blob": {"content": b"\xff" * (LONG * 3 // 4)},
}


@pytest.mark.slow
def test_what_is_large_comes_back(graph: og.Graph, tmp_path: Path) -> None:
    for at, (kind, row) in enumerate(LARGE.items()):
        way = by_frame if at % 2 else by_mutation
        way(graph, {"name": kind, **row})
    exported = list(graph.export())
    path = tmp_path / "all.jsonl"
    path.write_text("\n".join(exported))
    for engine in ("inline", "spark"):
        copy = og.init(tmp_path / engine, SCHEMA)
        copy.load(path, mode="append", engine=engine)
        assert list(copy.export()) == exported


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("row", "resource"),
    [
        ({"text": "x" * 40_000, "more": "y" * 40_000}, "graph_batch_line_bytes"),
        ({"text": "\x01" * 12_000}, "graph_batch_line_bytes"),
        ({"texts": ["é" * 100] * 400}, "graph_batch_line_bytes"),
        ({"numbers": [1] * 1100}, "graph_batch_json_structural_slots"),
        ({"bits": [True] * 600, "numbers": [1] * 600}, "graph_batch_json_structural_slots"),
    ],
    ids=["texts", "escapes", "list of texts", "list", "lists"],
)
def test_what_is_too_large_is_refused_everywhere(
    graph: og.Graph,
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    row: dict[str, Any],
    resource: str,
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "64KiB")
    with unchanged(graph), pytest.raises(errors.ResourceLimit) as caught:
        way(graph, {"name": "a", **row})
    assert caught.value.details["resource"] == resource
    assert caught.value.details["limit"] == (65_536 if "bytes" in resource else 1024)
    assert "OMNIGRAPH_ROW_BYTES" in str(caught.value)


@pytest.mark.parametrize("way", WAYS[:5])
@pytest.mark.parametrize("skips", [False, True])
def test_a_small_row_beside_it_changes_nothing(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, way: Way, skips: bool
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "64KiB")
    rows = pa.table({"name": ["a", "b"], "text": ["fine", "x" * 70_000]})
    on_error = "skip" if skips else "fail"
    for engine in ("inline", "spark"):
        with unchanged(graph), pytest.raises(errors.ResourceLimit, match="node:Note 'b'"):
            graph.load({"Note": rows}, mode="append", engine=engine, on_error=on_error)
    way(graph, {"name": "c", "text": "x" * 60_000})


@pytest.mark.parametrize(
    "fill", ["x", "é", '"', "\x01", "\n", "\\", "🐢"], ids=["x", "é", "quote", "1", "n", "b", "t"]
)
def test_whatever_a_mutation_takes_a_load_takes(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: str
) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "64KiB")
    width = len(json.dumps(fill, ensure_ascii=False).encode()) - 2
    taken = 0
    for room in range(-40, 800, 60):
        count = (65_536 - room) // width
        try:
            by_mutation(graph, {"name": f"n{room}", "text": fill * count})
        except errors.ResourceLimit:
            continue
        taken += 1
    assert 0 < taken < 14
    exported = "".join(f"{line}\n" for line in graph.export())
    for engine in ("inline", "spark"):
        copy = og.init(tmp_path / engine, SCHEMA)
        copy.load(exported, mode="append", engine=engine)
        assert content(copy) == content(graph)


def test_a_setting_that_is_no_size(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_ROW_BYTES", "much")
    with (
        unchanged(graph),
        pytest.raises(errors.StorageError, match="OMNIGRAPH_ROW_BYTES is 'much'"),
    ):
        by_mutation(graph, {"name": "a"})
