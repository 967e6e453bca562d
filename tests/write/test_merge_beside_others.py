"""Merges that a cleanup, or the deletion of their source, meets anywhere they pass.

A merge is there and everything reads, or it is refused with an error that says why, and
nothing has changed: it refers to files of a branch that it does not write to.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BranchNotFound, Conflict, OmniGraphError
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.write.recovery import intent_scope
from omnigraph.write.recovery.sweep import stored_intents
from tests import faults
from tests.write.beside import (
    DAY,
    add_person,
    check_sound,
    collect,
    collect_ahead,
    make,
    meanwhile,
    move_on,
    shown,
)
from tests.write.writing import Action, Rows, mutate

pytestmark = pytest.mark.slow

THERE = 'update Person set { age: 51 } where name = "Ann" insert Person { name: "Gus", age: 20 }'
HERE = 'update Person set { age: 52 } where name = "Bob"'

# -- what others do ----------------------------------------------------------------------


def delete(graph: og.Graph) -> None:
    graph.branches.delete("dev")


def delete_and_collect(graph: og.Graph) -> None:
    delete(graph)
    collect(graph)


def collect_and_delete(graph: og.Graph) -> None:
    collect(graph)
    delete(graph)


def recreate_and_collect(graph: og.Graph) -> None:
    delete(graph)
    graph.branches.create("dev")
    collect(graph)


def move_source_and_collect(graph: og.Graph) -> None:
    """The head that the merge has captured of its source is reclaimed."""
    move_on(graph, "dev")
    add_person(graph, "Zoe", "dev")
    collect(graph)


def move_target_and_collect(graph: og.Graph) -> None:
    move_on(graph)
    collect(graph)


def move_both_and_collect(graph: og.Graph) -> None:
    move_on(graph)
    move_source_and_collect(graph)


def move_source_delete_and_collect(graph: og.Graph) -> None:
    move_source_and_collect(graph)
    delete_and_collect(graph)


OTHERS: dict[str, Action] = {
    "cleanup": collect,
    "cleanup a day ahead": collect_ahead(DAY),
    "deletion": delete,
    "deletion and cleanup": delete_and_collect,
    "cleanup and deletion": collect_and_delete,
    "made again and cleanup": recreate_and_collect,
    "commits on the source and cleanup": move_source_and_collect,
    "commits on the target and cleanup": move_target_and_collect,
    "commits on both and cleanup": move_both_and_collect,
    "commits on the source, deletion and cleanup": move_source_delete_and_collect,
}
HARMLESS = {"cleanup", "commits on the target and cleanup"}
"""What no merge is refused for: its source is there and its intent stands."""


# -- the merges --------------------------------------------------------------------------


@dataclass(frozen=True)
class Story:
    """One kind of merge: what happens on main before, and how large it is."""

    here: str | None = None
    is_announced: bool = False


STORIES = {
    "takes over": Story(),
    "of rows": Story(HERE),
    "announced": Story(HERE, is_announced=True),
}
POINTS = [
    "txn_captured",
    "rows_written",
    "changes_built",
    "changes_checked",
    "table_staged",
    "publish_ready",
    "before_commit",
]
INTENT = ["intent_written", "intent_extended"]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A graph for each kind, with a branch that has commits of its own."""
    place = tmp_path_factory.mktemp("pristine")
    for name, story in STORIES.items():
        graph = make(str(place / name))
        graph.branches.create("dev")
        mutate(graph, 'insert Film { title: "Heat" }', branch="dev")
        mutate(graph, THERE, branch="dev")
        if story.here is not None:
            mutate(graph, story.here)
    return {name: place / name for name in STORIES}


@pytest.fixture
def graph(pristine: dict[str, Path], kind: str, tmp_path: Path) -> og.Graph:
    return copy_of(pristine[kind], tmp_path / "graph")


def copy_of(pristine: Path, place: Path) -> og.Graph:
    shutil.copytree(pristine, place)
    return og.open(place, actor="merger")


@pytest.fixture(autouse=True)
def size(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    most = -1 if STORIES[kind].is_announced else 2**30
    monkeypatch.setattr(intent_scope, "REQUEST_BYTES", most)


CASES = [
    (kind, point)
    for kind, story in STORIES.items()
    for point in [*POINTS, *(INTENT if story.is_announced else [])]
]


@pytest.mark.pairwise
@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize(("kind", "point"), CASES)
def test_a_merge_beside_others_is_whole_or_refused(
    graph: og.Graph, kind: str, point: str, others: str
) -> None:
    before, history = shown(graph), graph.commits.list()
    refused: OmniGraphError | None = None
    with meanwhile(graph, point, OTHERS[others]) as fault:
        try:
            merged = graph.branches.merge("dev")
        except (Conflict, BranchNotFound) as error:
            refused = error
    assert fault.fired == 1
    if refused is None:
        assert merged.commit is not None
        assert graph.commits.list()[0].id == merged.commit.id
        check_merged(shown(graph)["main"], kind)
        assert not stored_intents(ControlObjects(graph.location)).intents
    else:
        assert others not in HARMLESS, refused
        # Whatever the others have put in the place of the films, they are the same.
        assert shown(graph)["main"] == before["main"]
        assert [one for one in graph.commits.list() if one.actor == "merger"] == [
            one for one in history if one.actor == "merger"
        ]
    check_sound(graph)
    if refused is not None and "dev" in graph.branches.list():
        graph.branches.merge("dev")
        check_sound(graph)


def check_merged(found: dict[str, Rows], kind: str) -> None:
    """Both sides are in it; what was taken over is what the merge has captured."""
    people = found["node:Person"]
    assert people["Ann"]["age"] == 51
    assert people["Gus"]["age"] == 20
    assert people["Bob"]["age"] == (31 if STORIES[kind].here is None else 52)
    assert people.keys() == {"Ann", "Bob", "Dan", "Gus"}
    assert found["node:Film"].keys() == {"Alien", "Heat"}


@pytest.mark.parametrize("kind", STORIES)
def test_others_come_in_wherever_a_merge_passes(graph: og.Graph, kind: str) -> None:
    passed: set[str] = set()
    with faults.watched(lambda point, _: passed.add(point)):
        graph.branches.merge("dev")
    late = {"after_commit", "published", "intent_removed"}
    puts = {"before_put", "after_put"}
    assert passed - late - puts == {point for found, point in CASES if found == kind}


@pytest.mark.parametrize("others", ["cleanup", "deletion and cleanup", "cleanup a day ahead"])
@pytest.mark.parametrize("kind", STORIES)
def test_a_merge_that_is_published_stays(graph: og.Graph, kind: str, others: str) -> None:
    with meanwhile(graph, "published", OTHERS[others]) as fault:
        merged = graph.branches.merge("dev")
    assert fault.fired == 1
    assert merged.commit is not None
    assert graph.commits.list()[0].id == merged.commit.id
    check_merged(shown(graph)["main"], kind)
    check_sound(graph)


@pytest.mark.parametrize("others", ["cleanup", "deletion and cleanup"])
@pytest.mark.parametrize("point", ["table_staged", "publish_ready", "before_commit"])
@pytest.mark.parametrize("kind", ["takes over"])
def test_a_merge_into_another_branch_beside_others(
    graph: og.Graph, point: str, others: str, kind: str
) -> None:
    """The target has an epoch of its own, which a cleanup moves like that of main."""
    graph.branches.create("release")
    before = shown(graph)
    with meanwhile(graph, point, OTHERS[others]):
        try:
            graph.branches.merge("dev", "release")
            is_merged = True
        except (Conflict, BranchNotFound):
            is_merged = False
    assert is_merged or others != "cleanup"
    found = shown(graph)
    assert found["main"] == before["main"]
    if is_merged:
        check_merged(found["release"], kind)
    else:
        assert found["release"] == before["release"]
    check_sound(graph, "release")
