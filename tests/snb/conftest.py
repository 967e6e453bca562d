"""One small social network, as rows and as a graph, for all tests of it."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph import Graph
from tests.snb.network import FILES, Row, generate, lines


@pytest.fixture(scope="session")
def network() -> dict[str, list[Row]]:
    return generate(seed=7)


@pytest.fixture(scope="session")
def graph(network: dict[str, list[Row]], tmp_path_factory: pytest.TempPathFactory) -> Graph:
    where = tmp_path_factory.mktemp("snb") / "graph"
    made = omnigraph.init(where, schema=FILES / "snb.pg")
    made.load("\n".join(lines(network)), mode="append")
    return made
