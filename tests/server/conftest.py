"""A film graph behind an application in this process, in each state that a server can be in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.server.serving import Served, serving


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server in the Open state over a graph of its own."""
    with serving(tmp_path / "film.omni") as found:
        yield found


@pytest.fixture
def client(served: Served) -> TestClient:
    """A client of it."""
    return served.client
