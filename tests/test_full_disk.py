"""A graph on a disk without free space: it opens, tells what it could not mend, and can be read."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve.genesis import CLAIM_NAME
from omnigraph.manifest.root_copies import COPY_NAMES, IR_NAME
from omnigraph.storage.objects import meter
from tests import faults
from tests.film_graph import SCHEMA, files

ADD = "query add($name: String) { insert Person { name: $name } }"
NAMES = "query names() { match { $p: Person } return { $p.name } }"


def full() -> errors.StorageError:
    return errors.StorageError("no space left on device", kind="permanent")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("there is no mount here")
    place = tmp_path / "disk"
    place.mkdir()
    command = [mount, "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if mounted.returncode != 0:
        pytest.skip(f"mounting is not permitted: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run([umount, "--lazy", str(place)], check=True, timeout=30)


def fill(place: Path) -> Path:
    """Take all free space, to the last byte."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (65_536, 512, 1):
            try:
                while file.write(b"x" * size):
                    pass
            except OSError:
                continue
    return ballast


def names(graph: og.Graph) -> list[str]:
    return sorted(graph.table("Person").to_table()["name"].to_pylist())


def test_a_graph_on_a_full_disk_opens_and_is_mended_when_there_is_space(small_disk: Path) -> None:
    root = small_disk / "film.omni"
    og.init(root, SCHEMA).mutate(ADD, params={"name": "Ann"})
    (root / IR_NAME).unlink()
    (root / CLAIM_NAME).touch()
    ballast = fill(small_disk)
    graph = og.open(root)
    (notice,) = graph.notices
    assert IR_NAME in notice
    assert "space" in notice
    assert names(graph) == ["Ann"]
    assert not (root / CLAIM_NAME).exists()
    with pytest.raises(errors.StorageError) as refused:
        graph.mutate(ADD, params={"name": "Ben"})
    assert refused.value.kind == "permanent"
    ballast.unlink()
    graph.mutate(ADD, params={"name": "Cat"})
    assert names(graph) == ["Ann", "Cat"]
    assert og.open(root).notices == [f"rewrote {IR_NAME} from the manifest"]


@pytest.mark.parametrize("name", COPY_NAMES)
def test_a_copy_that_cannot_be_written_is_a_notice(tmp_path: Path, name: str) -> None:
    root = tmp_path / "film.omni"
    og.init(root, SCHEMA)
    (root / name).unlink()
    (root / CLAIM_NAME).touch()
    with faults.armed("before_put", full, times=None) as fault:
        graph = og.open(root)
    assert fault.fired == 1
    assert graph.notices == [
        "the files beside the manifest were not put right: no space left on device"
    ]
    assert not (root / CLAIM_NAME).exists()
    assert graph.query(NAMES).rows == []
    assert og.open(root).notices == [f"rewrote {name} from the manifest"]


def test_a_sweep_that_cannot_write_is_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "film.omni"
    og.init(root, SCHEMA)

    def stopped(*_: object) -> None:
        raise full()

    monkeypatch.setattr("omnigraph.write.recovery.sweep.sweep", stopped)
    (notice,) = og.open(root).notices
    assert notice.endswith("no space left on device")


def test_a_claim_that_cannot_be_removed_is_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "film.omni"
    og.init(root, SCHEMA)
    (root / CLAIM_NAME).touch()

    def refuse(_: object, name: str) -> None:
        raise errors.StorageError(f"deleting {name}: denied", kind="configuration")

    before = files(root)
    with monkeypatch.context() as patch, meter.measure() as counted:
        patch.setattr("omnigraph.storage.objects.control_objects.ControlObjects.delete", refuse)
        (notice,) = og.open(root).notices
    assert CLAIM_NAME in notice
    assert counted.puts == 0
    assert files(root) == before


def test_a_graph_on_a_full_disk_is_cleaned(small_disk: Path) -> None:
    root = small_disk / "film.omni"
    graph = og.init(root, SCHEMA)
    for number in range(12):
        graph.mutate(ADD, params={"name": f"p{number}"})
    fill(small_disk)
    with pytest.raises(errors.StorageError):
        graph.mutate(ADD, params={"name": "late"})
    report = og.open(root).cleanup(1, grace=timedelta(0))
    assert report.commits_reclaimed == 12
    assert report.bytes_removed > 100_000
    graph.mutate(ADD, params={"name": "next"})
    assert len(names(og.open(root))) == 13
    assert (root / "__reserve").exists()


@pytest.mark.slow
def test_maintenance_on_a_full_disk_makes_space_and_goes_on(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.maintain.wanted.MANY_COMMITS", 1)
    monkeypatch.setattr("omnigraph.maintain.wanted.FEW_FRAGMENTS", 1)
    root = small_disk / "film.omni"
    graph = og.init(root, SCHEMA)
    for number in range(20):
        graph.mutate(ADD, params={"name": f"p{number:02}"})
    before = names(graph)
    ballast = fill(small_disk)
    report = graph.maintain(keep=1, grace=timedelta(0))
    assert {(step.work, step.outcome) for step in report.steps} == {
        ("optimize", "failed"),
        ("cleanup", "done"),
    }
    assert names(graph) == before
    ballast.unlink()
    assert graph.maintain().failed == ()
    assert names(graph) == before


@pytest.mark.slow
def test_optimizing_on_a_full_disk_changes_nothing(small_disk: Path) -> None:
    root = small_disk / "film.omni"
    graph = og.init(root, SCHEMA)
    for number in range(20):
        graph.mutate(ADD, params={"name": f"p{number:02}"})
    head, before = graph.snapshot().commit_id, names(graph)
    ballast = fill(small_disk)
    with pytest.raises(errors.StorageError) as refused:
        graph.optimize()
    assert refused.value.kind == "permanent"
    assert og.verify(root, deep=True).is_sound
    assert (graph.snapshot().commit_id, names(graph)) == (head, before)
    assert graph.status().level != "damaged"
    ballast.unlink()
    assert graph.optimize().commit_id is not None
    assert names(og.open(root)) == before
    assert og.verify(root, deep=True).is_sound
