"""Diffs: exactly what differs between two states, whatever the states are."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.history.changes import Endpoints
from omnigraph.history.diff import TypeStats
from omnigraph.history.stream import changes_of
from omnigraph.wire.changes import DiffBody, DiffChangeBody, ImageBody
from tests.history.changing import (
    apply,
    knows,
    make_people,
    mutate,
    person,
    place,
    state_of,
    told,
)
from tests.maintain.cleaning import clean
from tests.pipeline import every_type
from tests.wire.plain import plain
from tests.write.writing import compact_all, index_all


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_people(tmp_path / "people.omni")


def test_branches_are_compared_row_by_row(graph: og.Graph) -> None:
    graph.branches.create("draft")
    mutate(
        graph, 'update Person set { age: 31, tags: ["a", "b"] } where name = "Ann"', branch="draft"
    )
    mutate(graph, 'delete Person where name = "Ben"', branch="draft")
    graph.load([person("Cid"), place("Oslo")], mode="append", branch="draft")
    found = graph.diff("main", "draft")
    assert told(found) == [
        ("delete", "edge", "Knows", "k1"),
        ("update", "node", "Person", "Ann"),
        ("delete", "node", "Person", "Ben"),
        ("insert", "node", "Person", "Cid"),
        ("insert", "node", "Place", "Oslo"),
    ]
    assert found.stats == (
        TypeStats("edge", "Knows", deleted=1),
        TypeStats("node", "Person", inserted=1, updated=1, deleted=1),
        TypeStats("node", "Place", inserted=1),
    )
    assert len(found) == 5
    assert (found.from_version, found.to_version) == (2, 5)
    assert told(graph.diff("draft", "main", types="Place")) == [("delete", "node", "Place", "Oslo")]


def test_images_spell_values_as_results_do(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { age: 31, score: null } where name = "Ann"')
    newest, older = graph.commits.list()[:2]
    knows_edge, lives_edge, ann, ben, rome = graph.diff(graph.commits.list()[-1].id, newest.id)
    assert knows_edge.after is not None
    assert knows_edge.after.properties == {"since": "2020-01-02T03:04:05.678Z"}
    assert knows_edge.endpoints == knows_edge.after.endpoints == Endpoints("Ann", "Ben")
    assert lives_edge.after is not None
    assert plain(ImageBody.of(lives_edge.after)) == {
        "properties": {},
        "endpoints": {"from": "Ann", "to": "Rome"},
    }
    assert ann.after is not None
    assert ann.after.properties == {
        "age": 31,
        "born": "1990-05-01",
        "face": [0.1, 1.0],
        "name": "Ann",
        "photo": None,
        "score": None,
        "tags": ["a"],
    }
    assert ann.before is None
    assert ann.endpoints is None
    assert ben.after is not None
    assert ben.after.properties["photo"] == "base64:AP8="
    assert rome.after is not None
    assert rome.after.properties == {"name": "Rome"}
    (update,) = graph.diff(older.id, newest.id)
    assert update.changed == ("age", "score")
    version = graph.diff(older.id, newest.id).version_of(update)
    assert plain(DiffChangeBody.of(update, version)) == {
        "kind": "node",
        "type_name": "Person",
        "id": "Ann",
        "op": "update",
        "published_dataset_version": 3,
        "changed": ["age", "score"],
        "before": plain(ImageBody.of(update.before)) if update.before else None,
        "after": plain(ImageBody.of(update.after)) if update.after else None,
    }


def test_every_type_of_value_is_what_an_export_says(tmp_path: Path) -> None:
    graph = every_type.make_graph(tmp_path / "g.omni")
    found = graph.diff(graph.commits.list()[-1].id, "main")
    state: dict[tuple[str, str, str], dict[str, object]] = {}
    apply(state, found)
    assert state == state_of(graph.export())
    assert len(state) == 9


def test_a_sign_of_zero_is_a_change(graph: og.Graph) -> None:
    graph.load([person("Zoe", score=0.0)], mode="append")
    before = graph.snapshot()
    graph.load([person("Zoe", score=-0.0)], mode="merge")
    (update,) = graph.diff(before, "main")
    assert update.changed == ("score",)


def test_ends_of_an_edge_may_change(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.load([knows("k1", "Ben", "Ann", since="2020-01-02T03:04:05.678Z")], mode="merge")
    (update,) = graph.diff(before, graph.snapshot())
    assert (update.op, update.changed) == ("update", ())
    assert update.before is not None
    assert update.before.endpoints == Endpoints("Ann", "Ben")
    assert update.endpoints == Endpoints("Ben", "Ann")
    version = graph.diff(before, "main").version_of(update)
    assert plain(DiffChangeBody.of(update, version))["endpoints"] == {
        "src": "Ben",
        "dst": "Ann",
    }


def test_a_state_has_no_difference_from_itself(graph: og.Graph) -> None:
    found = graph.diff("main", graph.commits.list()[0].id)
    assert (list(found), len(found), found.stats, bool(found)) == ([], 0, (), False)
    assert plain(DiffBody.of(found)) == {
        "from_graph_manifest_version": 2,
        "to_graph_manifest_version": 2,
        "changes": [],
        "stats": [],
    }


def test_rows_that_were_only_moved_are_no_difference(graph: og.Graph) -> None:
    graph.load([person("Cid", age=1)], mode="append")
    before = graph.snapshot()
    compact_all(graph)
    index_all(graph)
    graph.load([person("Cid", age=1), place("Rome")], mode="merge")
    after = graph.snapshot()
    assert after.tables["node:Person"].pin != before.tables["node:Person"].pin
    assert list(graph.diff(before, after)) == []
    assert graph.diff(before, after).stats == ()


def test_what_changed_and_changed_back_is_no_difference(graph: og.Graph) -> None:
    before = graph.snapshot()
    mutate(graph, 'update Person set { age: 31 } where name = "Ann"')
    mutate(graph, 'update Person set { age: 30 } where name = "Ann"')
    assert list(graph.diff(before, "main")) == []


def test_filters(graph: og.Graph) -> None:
    first = graph.commits.list()[-1].id
    mutate(graph, 'update Person set { age: 31 } where name = "Ann"')
    mutate(graph, 'delete Place where name = "Rome"')
    graph.load([person("Cid")], mode="append")
    second = graph.commits.list()[-2].id

    def found(**filters: list[str]) -> list[str]:
        return [change.id for change in graph.diff(second, "main", **filters)]

    assert found() == ["l1", "Ann", "Cid", "Rome"]
    assert found(kinds=["node"]) == ["Ann", "Cid", "Rome"]
    assert found(types=["Person", "Lives"]) == ["l1", "Ann", "Cid"]
    assert found(ops=["insert", "update"]) == ["Ann", "Cid"]
    assert found(kinds=["edge"], types=["Person"]) == []
    assert found(kinds=[], types=[], ops=[]) == found()
    assert graph.diff(second, "main", ops="delete").stats == (
        TypeStats("edge", "Lives", deleted=1),
        TypeStats("node", "Place", deleted=1),
    )
    assert graph.diff(first, "main", ops="update").stats == ()


@pytest.mark.parametrize(
    ("filters", "error", "message"),
    [
        ({"kinds": ["nodes"]}, errors.BadRequest, "did you mean `node`"),
        ({"ops": ["upsert"]}, errors.BadRequest, "insert"),
        ({"ops": ["xyz"]}, errors.BadRequest, "one of insert, update, delete"),
        ({"types": ["Persom"]}, errors.NotFound, "did you mean `Person`"),
        ({"types": ["Qqqqqqq"]}, errors.NotFound, "Knows, Lives, Person, Place"),
    ],
)
def test_wrong_filters_are_refused_at_once(
    graph: og.Graph, filters: dict[str, list[str]], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        graph.diff("main", "main", **filters)


# -- which states ------------------------------------------------------------------


def test_branches_commits_and_snapshots_go_together(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.load([person("Cid")], mode="append")
    commit = graph.commits.list()[0].id
    for a in (before, before.commit_id, f" {before.commit_id} "):
        for b in ("main", " main ", commit, graph.snapshot()):
            assert [change.id for change in graph.diff(a, b)] == ["Cid"]


def test_a_branch_wins_over_a_commit_of_its_name(graph: og.Graph) -> None:
    first = graph.commits.list()[-1].id
    graph.branches.create(first)
    assert list(graph.diff(first, "main")) == []


@pytest.mark.parametrize("name", ["nowhere", "", "a b", "01KA5QWZ7N4T3M8YB0C2D6E9FG"])
def test_an_unknown_state_is_named(graph: og.Graph, name: str) -> None:
    graph.branches.create("draft")
    with pytest.raises(errors.NotFound, match=r"no branch and no commit .* lists") as error:
        graph.diff("main", name)
    assert error.value.details == {"target": name}
    with pytest.raises(errors.NotFound, match="did you mean `draft`"):
        graph.diff("drift", "main")


def test_snapshots_of_two_graphs_are_not_compared(graph: og.Graph, tmp_path: Path) -> None:
    other = make_people(tmp_path / "other.omni")
    with pytest.raises(errors.BadRequest, match="one graph"):
        graph.diff("main", other.snapshot())


def test_a_reclaimed_commit_is_a_gap(graph: og.Graph) -> None:
    held = graph.snapshot()
    for age in range(3):
        graph.load([person("Ann", age=age)], mode="merge")
    clean(graph, 2)
    graph = og.open(str(graph.location))
    for a, b in ((held.commit_id, "main"), ("main", held.commit_id), (held, "main")):
        with pytest.raises(errors.ChangeFeedGap, match="cleanup") as error:
            list(graph.diff(a, b))
        assert error.value.details["first_unreadable_commit_id"] == held.commit_id
    with pytest.raises(errors.ChangeFeedGap):
        len(graph.diff(held, "main"))
    second = graph.commits.list()[1].id
    assert told(graph.diff(second, "main")) == [("update", "node", "Person", "Ann")]


# -- laziness ----------------------------------------------------------------------


def test_images_are_made_for_what_is_looked_at(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = graph.snapshot()
    graph.load([place(f"p{number:05}") for number in range(5_000)], mode="append")
    made: list[int] = []

    def counted(type_: object, ordered: object, start: int, stop: int) -> object:
        made.append(stop - start)
        return changes_of(type_, ordered, start, stop)  # type: ignore[arg-type]

    monkeypatch.setattr("omnigraph.history.stream.changes_of", counted)
    found = graph.diff(before, "main")
    assert made == []
    assert next(iter(found)).id == "p00000"
    assert sum(made) <= 1024
    made.clear()
    assert len(found) == 5_000
    assert made == []
    monkeypatch.setattr("omnigraph.history.diff.counts_of", None)
    assert found.stats == (TypeStats("node", "Place", inserted=5_000),), "counted once"
