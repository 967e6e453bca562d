"""The example graph of `examples/`, made as its README says."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og

EXAMPLES = Path(__file__).parents[1] / "examples"
QUERIES = EXAMPLES / "ferries.gq"


def make_ferries(place: Path) -> og.Graph:
    """The graph with all its data."""
    graph = og.init(place, EXAMPLES / "ferries.pg")
    graph.load(EXAMPLES / "ferries.jsonl", mode="append")
    return graph
