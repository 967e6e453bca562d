"""The façade: opening graphs, what is refused with nothing written, branches, time travel."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import lance
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve.genesis import CLAIM_NAME
from omnigraph.manifest.root_copies import COPY_NAMES, IR_NAME, STATE_NAME
from omnigraph.manifest.rows import FORMAT_KEY
from omnigraph.manifest.snapshot import SOURCE_NAME
from omnigraph.storage.objects import meter
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.version import INTERNAL_SCHEMA
from tests.film_graph import SCHEMA, files, insert_row


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    return og.init(root, SCHEMA)


def test_read_only_writes_nothing(root: Path, graph: og.Graph) -> None:
    graph.branches.create("b")
    (root / IR_NAME).unlink()
    (root / SOURCE_NAME).write_text("edited")
    (root / CLAIM_NAME).write_text("{}")
    before = files(root)
    with meter.measure() as counted, og.open(root, read_only=True) as reader:
        assert reader.schema == SCHEMA
        reader.snapshot("b")
        reader.table("Person").to_table()
        commit = reader.commits.list()[0]
        reader.snapshot(commit=reader.commits.get(commit.id).id)
        reader.branches.list()
    assert (counted.puts, counted.deletes) == (0, 0), str(counted)
    assert files(root) == before
    assert reader.notices == []


LOOKER = """
import os, sys
import omnigraph as og

def look(root):
    graph = og.open(root, read_only=True)
    assert graph.table("Person").count_rows() == 0
    assert graph.snapshot("b").commit_id == graph.commits.list()[0].id
    assert graph.branches.list() == ["b", "main"]

root, familiar = sys.argv[1:]
look(familiar)  # imports what is imported late: the user below may not read this installation
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)  # permission bits do not bind the superuser
look(root)
graph = og.open(root)
try:
    graph.mutate('query add() { insert Person { name: "Ann" } }')
except og.errors.StorageError as error:
    print(error.kind)
"""


@pytest.mark.slow
def test_looking_works_without_the_right_to_write_and_writing_says_so(
    root: Path, graph: og.Graph
) -> None:
    graph.branches.create("b")
    # Not below tmp_path, which only its owner may enter.
    with TemporaryDirectory() as directory:
        open_to_all = Path(directory) / "film.omni"
        og.init(open_to_all, SCHEMA).branches.create("b")
        places = [Path(directory), open_to_all, *open_to_all.rglob("*")]
        for path in places:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", LOOKER, str(open_to_all), str(root)],
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        finally:
            for path in places:
                path.chmod(0o755 if path.is_dir() else 0o644)
    assert (ran.returncode, ran.stdout) == (0, "configuration\n"), ran.stderr


def test_read_only_refuses_changes(root: Path, graph: og.Graph) -> None:
    graph.branches.create("b")
    reader = og.open(root, read_only=True)
    for change in (reader.branches.create, reader.branches.delete):
        with pytest.raises(errors.BadRequest, match="read-only"):
            change("b")
    assert graph.branches.list() == ["b", "main"]


@pytest.mark.parametrize("name", COPY_NAMES)
@pytest.mark.parametrize("edited", [False, True])
def test_a_copy_that_lags_is_rewritten_and_reported(
    root: Path, graph: og.Graph, name: str, edited: bool
) -> None:
    right = (root / name).read_bytes()
    if edited:
        (root / name).write_bytes(right.replace(b"Person", b"Persona") + b" ")
    else:
        (root / name).unlink()
    reopened = og.open(root)
    assert reopened.notices == [f"rewrote {name} from the manifest"]
    assert (root / name).read_bytes() == right
    assert reopened.schema == graph.schema
    assert og.open(root).notices == []


def test_the_state_copy_seals_the_schema(root: Path, graph: og.Graph) -> None:
    state = json.loads((root / STATE_NAME).read_text())
    contract = graph.snapshot().schema
    assert state["schema_ir_hash"] == contract.ir_hash
    assert state["schema_shape_hash"] == contract.shape_hash
    assert (root / IR_NAME).read_text() == contract.ir


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("present", [False, True])
def test_no_graph_is_refused(tmp_path: Path, read_only: bool, present: bool) -> None:
    root = tmp_path / "nothing"
    if present:
        root.mkdir()
    with pytest.raises(errors.NotFound, match="there is no graph at"):
        og.open(root, read_only=read_only)
    assert root.exists() is present
    assert not present or files(root) == {}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("stamp", "message"),
    [
        ("6", "storage format 6 .*export it"),
        (str(INTERNAL_SCHEMA + 1), "upgrade the program"),
        ("x", "no format stamp"),
        (None, "no format stamp"),
    ],
)
def test_another_format_is_refused(
    root: Path, graph: og.Graph, stamp: str | None, message: str, read_only: bool
) -> None:
    manifest = lance.dataset(f"{root}/__manifest/main")
    manifest.update_schema_metadata({FORMAT_KEY.decode(): stamp}, replace=True)
    before = files(root)
    with pytest.raises(errors.UnsupportedFormat, match=message):
        og.open(root, read_only=read_only)
    with pytest.raises(errors.UnsupportedFormat):
        graph.snapshot()
    assert files(root) == before


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("object_type", ["graph_commit", "schema", "table_version", "graph_head"])
def test_an_inconsistent_manifest_is_refused(
    root: Path, graph: og.Graph, object_type: str, read_only: bool
) -> None:
    lance.dataset(f"{root}/__manifest/main").delete(f"object_type = '{object_type}'")
    before = files(root)
    with pytest.raises(errors.StorageError, match="manifest is inconsistent"):
        og.open(root, read_only=read_only)
    assert files(root) == before
    assert graph.read_only is False


def test_an_unreadable_row_is_refused(root: Path, graph: og.Graph) -> None:
    lance.dataset(f"{root}/__manifest/main").update({"metadata": "'{'"})
    before = files(root)
    with pytest.raises(errors.StorageError, match="a row that cannot be read"):
        og.open(root)
    assert files(root) == before
    assert graph.location.is_local


def test_an_unreadable_manifest_is_refused(root: Path, graph: og.Graph) -> None:
    for path in (root / "__manifest" / "main" / "_versions").glob("*.manifest"):
        path.write_bytes(b"garbage")
    before = files(root)
    with pytest.raises(errors.StorageError):
        og.open(root)
    assert files(root) == before
    assert graph.location.is_local


def test_a_place_without_create_only_puts_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(self: ControlObjects, name: str, data: bytes) -> bool:
        self.replace(name, data)
        return True

    with monkeypatch.context() as patch:
        patch.setattr(ControlObjects, "create", careless)
        with pytest.raises(errors.StorageError, match="second writer") as caught:
            og.init(root, SCHEMA)
    assert caught.value.kind == "configuration"
    assert not files(root)


def test_an_open_with_nothing_to_mend_writes_nothing(root: Path, graph: og.Graph) -> None:
    before = files(root)
    with meter.measure() as counted:
        opened = og.open(root)
    assert (counted.puts, counted.deletes) == (0, 0), str(counted)
    assert files(root) == before
    assert opened.notices == graph.notices == []


def test_a_claim_left_behind_goes_with_the_next_open(root: Path, graph: og.Graph) -> None:
    (root / CLAIM_NAME).write_text("{}")
    assert og.open(root).notices == graph.notices
    assert not (root / CLAIM_NAME).exists()


# -- branches and commits ----------------------------------------------------------


def test_branches_come_and_go(root: Path, graph: og.Graph) -> None:
    assert graph.branches.create(" b ") == "b"
    assert graph.branches.create("c", from_branch="b") == "c"
    assert og.open(root, read_only=True).branches.list() == ["b", "c", "main"]
    assert graph.snapshot("c").commit_id == graph.snapshot().commit_id
    assert graph.snapshot("c").branch == "c"
    assert graph.branches.delete("b") == "b"
    assert graph.snapshot("c").commit_id == graph.snapshot().commit_id
    graph.branches.delete("c")
    assert graph.branches.list() == ["main"]


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("main", errors.BadRequest),
        ("", errors.BadRequest),
        ("a b", errors.BadRequest),
        ("../x", errors.BadRequest),
        ("__schema_apply_lock__", errors.BadRequest),
        ("b", errors.Conflict),
        ("b/c", errors.Conflict),
    ],
)
def test_branches_that_cannot_be(graph: og.Graph, name: str, error: type[Exception]) -> None:
    graph.branches.create("b")
    with pytest.raises(error):
        graph.branches.create(name)
    assert graph.branches.list() == ["b", "main"]


def test_what_does_not_exist(graph: og.Graph) -> None:
    for call in (graph.snapshot, graph.commits.list, graph.branches.delete):
        with pytest.raises(errors.BranchNotFound, match="there is no branch x"):
            call("x")
    with pytest.raises(errors.BranchNotFound):
        graph.branches.create("y", "x")
    for missing in ("x", "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        with pytest.raises(errors.NotFound, match=f"no commit {missing}"):
            graph.commits.get(missing)
        with pytest.raises(errors.NotFound):
            graph.table("Person", snapshot=missing)


def test_the_public_names_come_when_asked_for() -> None:
    assert "open" in dir(og)
    with pytest.raises(AttributeError, match="'nonsense'"):
        og.nonsense  # type: ignore[attr-defined]  # noqa: B018 - the access is the test


# -- time travel -------------------------------------------------------------------


def names_at(graph: og.Graph, **where: str) -> list[str]:
    return sorted(graph.table("Person", **where).to_table()["name"].to_pylist())


@pytest.mark.slow
def test_every_commit_shows_what_it_published(root: Path, graph: og.Graph) -> None:
    first = graph.snapshot().commit_id
    commits = {insert_row(graph, "node:Person", f"p{n:02}"): n + 1 for n in range(20)}
    for handle in (graph, og.open(root), og.open(root, read_only=True)):
        assert names_at(handle, snapshot=first) == []
        for commit, count in commits.items():
            assert names_at(handle, snapshot=commit) == [f"p{n:02}" for n in range(count)]
        assert [commit.id for commit in handle.commits.list()] == [*list(commits)[::-1], first]
        assert handle.snapshot().tables["node:Person"].version == 21
        assert handle.snapshot().tables["node:Film"].version == 1


def test_branches_go_their_own_way(root: Path, graph: og.Graph) -> None:
    shared = insert_row(graph, "node:Person", "shared")
    graph.branches.create("b")
    ours = insert_row(graph, "node:Person", "ours", branch="b", actor="ann")
    theirs = insert_row(graph, "node:Person", "theirs")
    for handle in (graph, og.open(root, read_only=True)):
        assert names_at(handle) == ["shared", "theirs"]
        assert names_at(handle, branch="b") == ["ours", "shared"]
        # A commit is found on whatever branch it is.
        assert names_at(handle, snapshot=ours) == ["ours", "shared"]
        assert names_at(handle, snapshot=shared) == ["shared"]
        assert handle.commits.get(ours).branch == "b"
        assert handle.commits.get(ours).parent_id == handle.commits.get(theirs).parent_id == shared
        assert [commit.id for commit in handle.commits.list("b", actor="ann")] == [ours]
    graph.branches.delete("b")
    for handle in (graph, og.open(root)):
        with pytest.raises(errors.NotFound):
            handle.snapshot(commit=ours)
        with pytest.raises(errors.BranchNotFound):
            names_at(handle, branch="b")
        assert names_at(handle) == ["shared", "theirs"]


def test_a_recreated_branch_starts_anew(graph: og.Graph) -> None:
    graph.branches.create("b")
    insert_row(graph, "node:Person", "old", branch="b")
    graph.branches.delete("b")
    graph.branches.create("b")
    assert names_at(graph, branch="b") == []
    insert_row(graph, "node:Person", "new", branch="b")
    assert names_at(graph, branch="b") == ["new"]
