"""The reference in the documentation is the one that the server gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.server.openapi import document
from omnigraph.server.routes import all_routes
from tests.server.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "user" / "http-reference.md"


def test_the_reference_is_that_of_the_routes(request: pytest.FixtureRequest) -> None:
    found = page(document(all_routes(), secured=True))
    if request.config.getoption("--bless"):
        PAGE.write_text(found, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == found, "run pytest --bless tests/server"
