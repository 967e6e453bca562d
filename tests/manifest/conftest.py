"""Manifests to test: on the local disk, and on a real S3-compatible server."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.manifest.store import Manifest
from omnigraph.storage.objects.location import Location
from tests.manifest.graphs import make_manifest


@pytest.fixture
def root(tmp_path: Path) -> Location:
    return Location.parse(str(tmp_path / "graph"))


@pytest.fixture
def manifest(root: Location) -> Manifest:
    return make_manifest(root)


@pytest.fixture(params=["local", "s3"])
def any_root(request: pytest.FixtureRequest, tmp_path: Path) -> Location:
    """A graph root, once on each kind of storage."""
    if request.param == "s3":
        return Location.parse(request.getfixturevalue("s3_bucket"))
    return Location.parse(str(tmp_path / "graph"))
