"""Listings with sizes and ages, deleting in bulk, and directories that are left empty."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from omnigraph.storage.objects import control_objects, meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.reachable_files import version_of


def test_entries_say_how_large_and_how_old(location: Location) -> None:
    control = ControlObjects(location)
    assert list(control.entries()) == []
    begun = time.time()
    control.replace("b/x", b"123")
    control.replace("a", b"1")
    control.replace("bb/y", b"")
    found = {entry.name: entry for entry in control.entries()}
    assert {name: entry.size for name, entry in found.items()} == {"a": 1, "b/x": 3, "bb/y": 0}
    # A server counts whole seconds, and its clock may be another.
    assert all(abs(entry.modified / 1e6 - begun) < 60 for entry in found.values())
    assert [entry.name for entry in control.entries("b")] == ["b/x"]


def test_on_a_disk_every_file_counts(tmp_path: Path) -> None:
    (tmp_path / "x#1").write_text("cut short")
    os.utime(tmp_path / "x#1", (5, 7))
    control = ControlObjects(Location.parse(str(tmp_path)))
    (entry,) = control.entries()
    assert (entry.name, entry.size, entry.modified) == ("x#1", 9, 7_000_000)
    control.delete_all(["x#1"])
    assert list(control.entries()) == []


def test_many_go_in_few_requests(location: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_objects, "_BULK", 2)
    control = ControlObjects(location)
    for name in ("a", "b/c", "d", "e"):
        control.replace(name, b"1")
    with meter.measure() as counted:
        control.delete_all(["a", "missing", "b/c", "d"])
    assert control.list() == ["e"]
    assert counted.deletes == (4 if location.is_local else 2)
    control.delete_all([])
    assert control.list() == ["e"]


def test_empty_directories(tmp_path: Path) -> None:
    for name in ("t/other/deep", "t/emptied/deep", "t/full"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "t/full/x").write_text("?")
    control = ControlObjects(Location.parse(str(tmp_path)))
    control.drop_empty("t", emptied=["t", "t/emptied", "t/emptied/deep", "t/full"])
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*"))
    assert left == ["t", "t/full", "t/full/x", "t/other", "t/other/deep"]
    control.drop_empty("missing", emptied=[])


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("_versions/18446744073709551614.manifest", 1),
        ("_versions/d9872300488201071553.manifest", 9872300488201071553),
        ("_versions/latest_version_hint.json", None),
        ("_versions/x.manifest", None),
        ("data/5.manifest", None),
    ],
)
def test_versions_are_told_by_their_files(name: str, version: int | None) -> None:
    assert version_of(name) == version
