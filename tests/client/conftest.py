"""One server for all tests of a module, over a graph that its tests may change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import omnigraph as og
from tests.client.running import application, new_graph, running


@dataclass(frozen=True)
class Pair:
    """A graph as it is opened here, and the same on a server."""

    url: str
    opened: og.Graph
    served: Any


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """The film graph, here and there."""
    graph = new_graph(tmp_path_factory.mktemp("served") / "film.omni")
    with running(application(graph)) as url:
        yield Pair(url, graph, og.open(url, graph="film"))
