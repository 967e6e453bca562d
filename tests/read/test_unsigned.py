"""Unsigned numbers: filters mean the same in memory, in storage and through an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.read.access import entities

SCHEMA = """\
node Part {
    name: String @key
    label: String?
    made: DateTime? @index
    small: U32? @index
    large: U64? @index
    lots: [U64]?
}
"""
SMALL = (0, 1, 2**31, 2**32 - 1, None)
LARGE = (0, 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, None)
CLAUSES = (
    "$p.large = 0",
    "$p.large > 9223372036854775807",
    "$p.large >= 9007199254740993",
    "$p.large < 9007199254740993",
    "$p.large != 9223372036854775807",
    "$p.large in [0, 9223372036854775807, 5]",
    "$p.large is null",
    "$p.large is not null",
    "$p.small <= 4294967295",
    "$p.small = 4294967295",
    "$p.small > 4294967295",
    "$p.small in [1, 2147483648]",
    "$p.small >= 1 $p.small < 4294967295",
    "not { $p.small > 1 }",
    "any { $p.small = 0 } or { $p.large = 1 }",
    '$p.small > 0 $p.label = "it\'s"',
    '$p.large > 0 $p.made >= datetime("2024-01-01T00:00:00Z")',
    "$p.small > 0 $p.lots contains 7",
    "$p.large > 1.5",
)


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "type": "Part",
            "data": {
                "name": f"p{at}/{n}",
                "label": "it's" if n % 2 else "'",
                "made": f"202{n % 6}-03-01T00:00:00Z",
                "small": small,
                "large": large,
                "lots": [7] if n % 3 else None,
            },
        }
        for at, small in enumerate(SMALL)
        for n, large in enumerate(LARGE)
    ]


def _names(graph: og.Graph, clause: str) -> list[str]:
    source = (
        f"query q() {{ match {{ $p: Part {clause} }} return {{ $p.name }} order {{ $p.name }} }}"
    )
    return [row["p.name"] for row in graph.query(source).rows]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "graph", SCHEMA)
    made.load(_rows(), mode="append")
    return made


def test_a_filter_means_the_same_everywhere(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_memory = {clause: _names(graph, clause) for clause in CLAUSES}
    assert len(in_memory["$p.large > 9223372036854775807"]) == 2 * len(SMALL)
    monkeypatch.setattr(entities, "MANY", -1)
    assert {clause: _names(graph, clause) for clause in CLAUSES} == in_memory
    graph.ensure_indices()
    assert {clause: _names(graph, clause) for clause in CLAUSES} == in_memory


def test_storage_is_told_of_all_of_a_condition(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entities, "MANY", -1)
    clause = '$p.small > 0 $p.label = "it\'s" $p.large is not null $p.lots contains 7'
    source = f"query q() {{ match {{ $p: Part {clause} }} return {{ $p.name }} }}"
    scan = graph.explain(source, analyze=True).to_json()["operators"][0]
    assert len(scan["pushed"]) == 3
    assert scan["in_memory"] == ["$p.lots contains 7"]


def test_a_mutation_finds_its_rows(graph: og.Graph) -> None:
    changed = graph.mutate('query q() { update Part set { label: "big" } where large > 1 }')
    assert changed.affected_nodes == 4 * len(SMALL)
    gone = graph.mutate("query q() { delete Part where small = 4294967295 }")
    assert gone.affected_nodes == len(LARGE)
    assert len(_names(graph, '$p.label = "big"')) == 4 * (len(SMALL) - 1)
