"""Uploads in several parts: what is not finished is given up, and is no object."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.files import new_object
from omnigraph.storage.objects.location import Location
from tests.s3_server import S3Server

PIECE = bytes(range(256)) * (1 << 16)
"""As much as one part has."""


def test_what_ends_well_is_an_object_and_what_does_not_is_nothing(
    s3_bucket: str, s3_server: S3Server
) -> None:
    place = Location.parse(s3_bucket)
    seen: list[str] = []

    def write(name: str, *, fails: bool) -> None:
        with new_object(place.join(name)) as file:
            for _ in range(3):
                file.write(PIECE)
            seen.extend(s3_server.uploads())
            if fails:
                raise RuntimeError("the task fails")

    write("whole", fails=False)
    with pytest.raises(RuntimeError, match="the task fails"):
        write("half", fails=True)
    assert len(seen) == 2, "both had begun an upload"
    assert ControlObjects(place).list() == ["whole"]
    assert s3_server.uploads() == []


def test_a_file_that_cannot_be_put(
    s3_bucket: str, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large"
    large.write_bytes(PIECE * 2)
    objects = ControlObjects(Location.parse(s3_bucket))
    objects.put_file("there", large)
    assert objects.read("there") == PIECE * 2
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(StorageError):
        ControlObjects(Location.parse(f"{s3_bucket}/elsewhere")).put_file("not", large)
    monkeypatch.undo()
    assert s3_server.uploads() == []
