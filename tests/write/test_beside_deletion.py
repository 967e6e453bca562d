"""Branches that are deleted, and made again, while somebody is inside a write to them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery import intent_scope
from omnigraph.write.recovery.sweep import stored_intents, sweep
from tests import profile
from tests.write.beside import (
    POINTS,
    add_person,
    check_sound,
    collect,
    make,
    meanwhile,
    move_on,
    shown,
    writes_to,
)
from tests.write.writing import Action, mutate

pytestmark = pytest.mark.slow

WRITES = writes_to("dev")
INTENT = ["intent_written", "intent_extended"]
FAR_FUTURE = 4_000_000_000_000_000


def delete(graph: og.Graph) -> None:
    graph.branches.delete("dev")


def recreate(graph: og.Graph) -> None:
    """Another branch of the same name, from a main that has moved on."""
    delete(graph)
    move_on(graph)
    graph.branches.create("dev")
    add_person(graph, "Zoe", "dev")


def delete_and_collect(graph: og.Graph) -> None:
    delete(graph)
    collect(graph)


def recreate_and_collect(graph: og.Graph) -> None:
    recreate(graph)
    collect(graph)


DELETIONS: dict[str, Action] = {
    "deleted": delete,
    "deleted and collected": delete_and_collect,
    "made again": recreate,
    "made again and collected": recreate_and_collect,
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch that has rows of its own."""
    place = tmp_path_factory.mktemp("pristine") / "graph"
    graph = make(str(place))
    graph.branches.create("dev")
    mutate(graph, 'insert Person { name: "Eve", age: 5 }', branch="dev")
    mutate(graph, 'update Person set { age: 6 } where name = "Eve"', branch="dev")
    return place


@pytest.fixture
def graph(pristine: Path, tmp_path: Path) -> og.Graph:
    place = tmp_path / "graph"
    shutil.copytree(pristine, place)
    return og.open(place, actor="writer")


@pytest.fixture(params=[2**30, -1], ids=["request", "announced"])
def either_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is small enough for a request, or is not."""
    monkeypatch.setattr(intent_scope, "REQUEST_BYTES", request.param)


def check_gone(graph: og.Graph, write: Action, point: str, deletion: str) -> None:
    """The write is told that its branch is gone, and no other branch has anything of it."""
    with (
        meanwhile(graph, point, DELETIONS[deletion]) as fault,
        pytest.raises(BranchNotFound),
    ):
        write(graph)
    assert fault.fired == 1
    found = shown(graph)
    assert found["main"]["node:Person"].keys() == {"Ann", "Bob", "Dan"}
    assert [commit.actor for commit in graph.commits.list() if commit.actor == "writer"] == []
    is_made = deletion.startswith("made again")
    assert found.keys() == ({"main", "dev"} if is_made else {"main"})
    if is_made:
        assert found["dev"]["node:Person"].keys() == {"Ann", "Bob", "Dan", "Zoe"}
        assert found["dev"]["edge:Knows"].keys() == {"k1"}
    check_sound(graph, "dev" if is_made else "main")
    check_name(graph, is_made=is_made)


def check_name(graph: og.Graph, *, is_made: bool) -> None:
    """The handle that has met the deletion knows what the name means after it."""
    late = 'insert Person { name: "Late" }'
    if is_made:
        mutate(graph, late, branch="dev")
        assert "Late" in shown(graph)["dev"]["node:Person"]
        return
    with pytest.raises(BranchNotFound):
        graph.snapshot("dev")
    with pytest.raises(BranchNotFound):
        mutate(graph, late, branch="dev")
    assert shown(graph).keys() == {"main"}


@pytest.mark.parametrize("deletion", DELETIONS)
def test_a_handle_that_knew_the_branch_learns_of_its_deletion(
    graph: og.Graph, deletion: str
) -> None:
    WRITES["insert"](graph)
    DELETIONS[deletion](og.open(str(graph.location), actor="other"))
    check_name(graph, is_made=deletion.startswith("made again"))
    check_sound(graph)


@pytest.mark.pairwise
@pytest.mark.usefixtures("either_size")
@pytest.mark.parametrize("deletion", DELETIONS)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("write", ["insert", "update", "append"])
def test_a_write_to_a_branch_that_is_deleted_meanwhile(
    graph: og.Graph, write: str, point: str, deletion: str
) -> None:
    check_gone(graph, WRITES[write], point, deletion)


@pytest.mark.parametrize("deletion", ["deleted and collected", "made again and collected"])
@pytest.mark.parametrize("write", ["upsert", "merge", "delete", "overwrite"])
def test_every_kind_of_write_is_told_so(graph: og.Graph, write: str, deletion: str) -> None:
    check_gone(graph, WRITES[write], "publish_ready", deletion)


@pytest.mark.parametrize("deletion", DELETIONS)
@pytest.mark.parametrize("point", INTENT)
def test_a_load_with_an_intent_to_a_branch_that_is_deleted_meanwhile(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, point: str, deletion: str
) -> None:
    monkeypatch.setattr(intent_scope, "REQUEST_BYTES", -1)
    check_gone(graph, WRITES["append"], point, deletion)
    # Its intent is settled like that of any dead writer, and cleanup takes the files.
    sweep(graph.location, graph.manifest, now=FAR_FUTURE)
    (recovery,) = graph.recoveries()
    assert recovery.recovery_kind == "OrphanedBranchDiscarded"
    assert not stored_intents(ControlObjects(graph.location)).intents
    collect(graph)
    check_sound(graph)


@pytest.mark.parametrize(
    ("point", "deletion"), profile.each_once(["publish_ready", "before_commit"], [*DELETIONS])
)
def test_a_write_to_a_branch_on_s3_that_is_deleted_meanwhile(
    s3_bucket: str, point: str, deletion: str
) -> None:
    made = make(f"{s3_bucket}/graph")
    made.branches.create("dev")
    mutate(made, 'insert Person { name: "Eve", age: 5 }', branch="dev")
    graph = og.open(f"{s3_bucket}/graph", actor="writer")
    check_gone(graph, WRITES["insert"], point, deletion)


@pytest.mark.parametrize("deletion", ["deleted", "deleted and collected"])
def test_a_write_that_was_acknowledged_before_the_deletion_is_gone_with_its_branch(
    graph: og.Graph, deletion: str
) -> None:
    with meanwhile(graph, "published", DELETIONS[deletion]) as fault:
        result = WRITES["insert"](graph)
    assert fault.fired == 1
    assert result is not None
    assert shown(graph).keys() == {"main"}
    check_sound(graph)
