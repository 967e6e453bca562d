"""What `init --force` may remove: what an init that died has left, and not one file more."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve.genesis import CLAIM_NAME, Remains, find_remains
from omnigraph.manifest.root_copies import COPY_NAMES
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from tests import faults
from tests.film_graph import SCHEMA, check_complete, files, insert_row

TABLE = "nodes/0000000000000001-0000000000000006"
FIRST = "_versions/18446744073709551614.manifest"
TRANSACTION = "_transactions/0-95e94380-5d47-478a-86aa-1b67d214ae03.txn"
WRITTEN_TO = f"{TABLE} (a table that was written to)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


def put(root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(name)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "nodes/src/app.js",
        "edges/notes.txt",
        "nodes/0000000000000001-0000000000000006",
        "nodes/0000000000000001/_versions/18446744073709551614.manifest",
        f"nodes/old/{TABLE}/{FIRST}",
    ],
)
def test_files_of_somebody_else_are_never_removed(root: Path, name: str, force: bool) -> None:
    put(root, name)
    put(root, CLAIM_NAME)
    put(root, f"{TABLE[:-1]}7/{TRANSACTION}")
    before = files(root)
    with pytest.raises(errors.AlreadyInitialized, match="move it away") as caught:
        og.init(root, SCHEMA, force=force)
    assert caught.value.details["found"] == [name]
    assert name in str(caught.value)
    assert files(root) == before


@pytest.mark.parametrize("force", [False, True])
def test_the_tables_of_a_graph_wait_for_its_manifest(root: Path, force: bool) -> None:
    graph = og.init(root, SCHEMA)
    insert_row(graph, "node:Person", "Ann")
    written_to = graph.snapshot().tables["node:Person"].table.path
    backup = root.with_name("backup")
    (root / "__manifest").rename(backup)
    before = files(root)
    with pytest.raises(errors.AlreadyInitialized, match="restore __manifest") as caught:
        og.init(root, SCHEMA, force=force)
    assert caught.value.details["found"] == [f"{written_to} (a table that was written to)"]
    assert files(root) == before
    backup.rename(root / "__manifest")
    assert og.open(root).table("Person").to_table()["name"].to_pylist() == ["Ann"]


def test_empty_tables_without_a_manifest_give_way(root: Path) -> None:
    og.init(root, SCHEMA)
    (root / "__manifest").rename(root.with_name("elsewhere"))
    with pytest.raises(errors.AlreadyInitialized, match="--force"):
        og.init(root, SCHEMA)
    og.init(root, "node Other {\n    x: I32\n}\n", force=True)
    check_complete(root, 1)
    assert len({name.split("/")[1] for name in files(root) if name.startswith("nodes/")}) == 1


@pytest.mark.parametrize(
    "name",
    [
        FIRST,
        f"{FIRST}#1",
        TRANSACTION,
        "_versions/latest_version_hint.json",
        "_versions/.tmp33x4Kk",
        "_transactions/.tmpB22s3e",
    ],
)
def test_a_table_that_was_only_begun_is_remains(root: Path, name: str) -> None:
    put(root, f"{TABLE}/{name}")
    objects = ControlObjects(Location.parse(str(root)))
    assert find_remains(objects) == Remains((f"{TABLE}/{name}",), ())
    og.init(root, SCHEMA, force=True)
    check_complete(root)
    assert f"{TABLE}/{name}" not in files(root)


@pytest.mark.parametrize(
    "name",
    [
        "data/a9a9fa4d3cb559f5f2cfa58341.lance",
        "_versions/18446744073709551613.manifest",
        "_versions/d9223372036854775809.manifest",
        "_transactions/7-95e94380-5d47-478a-86aa-1b67d214ae03.txn",
        "_deletions/0-1-2.arrow",
        "_indices/95e94380-5d47-478a-86aa-1b67d214ae03/index.idx",
        "_refs/branches/b.json",
        "_versions/notes.txt",
        "notes.txt",
    ],
)
def test_a_table_that_was_written_to_is_none(root: Path, name: str) -> None:
    put(root, f"{TABLE}/{FIRST}")
    put(root, f"{TABLE}/{name}")
    objects = ControlObjects(Location.parse(str(root)))
    assert find_remains(objects) == Remains((f"{TABLE}/{FIRST}",), (WRITTEN_TO,))


def test_many_others_are_counted() -> None:
    assert Remains((), ("a", "b", "c")).describe_others() == "a, b, c"
    assert Remains((), ("a", "b", "c", "d", "e")).describe_others() == "a, b, c and 2 more"


def test_what_appears_after_the_first_look_is_not_removed_either(root: Path) -> None:
    put(root, f"{TABLE}/{TRANSACTION}")
    before = files(root)
    with (
        faults.observed("after_put", lambda: put(root, "nodes/app.js"), matching=CLAIM_NAME),
        pytest.raises(errors.AlreadyInitialized, match=r"nodes/app\.js"),
    ):
        og.init(root, SCHEMA, force=True)
    assert files(root) == {**before, "nodes/app.js": b"nodes/app.js"}


def test_remains_are_told_apart_in_a_bucket_too(s3_bucket: str) -> None:
    place = Location.parse(s3_bucket).join("film.omni")
    objects = ControlObjects(place)
    for name in (*COPY_NAMES, CLAIM_NAME, f"{TABLE}/{TRANSACTION}", "nodes/app.js"):
        objects.replace(name, b"")
    before = objects.list()
    with pytest.raises(errors.AlreadyInitialized, match=r"nodes/app\.js"):
        og.init(str(place), SCHEMA, force=True)
    assert objects.list() == before
    objects.delete("nodes/app.js")
    og.init(str(place), SCHEMA, force=True)
    assert f"{TABLE}/{TRANSACTION}" not in objects.list()
