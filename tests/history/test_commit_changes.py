"""Commit changes: exactly what one commit did, in order, page by page."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.history.changed_rows import changed_rows
from omnigraph.history.changes import Change
from omnigraph.wire.changes import BlockBody, CauseBody, ChangeBody
from tests.history.changing import (
    SCHEMA,
    change_schema,
    knows,
    make_people,
    mutate,
    person,
    place,
    told,
)
from tests.wire.plain import plain
from tests.write.writing import compact_all


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_people(tmp_path / "people.omni")


def head(graph: og.Graph, branch: str = "main") -> str:
    return graph.snapshot(branch).commit_id


def all_pages(
    graph: og.Graph, commit: str, *, fresh: bool = False, **options: Any
) -> list[list[Change]]:
    """The changes page by page; ``fresh`` asks a new handle for each, which has kept nothing."""
    pages: list[list[Change]] = []
    token: str | None = None
    while True:
        asked = og.open(str(graph.location), read_only=True) if fresh else graph
        page = asked.commits.changes(commit, page_token=token, **options)
        pages.append(list(page.changes))
        token = page.next_page_token
        if token is None:
            return pages


def test_a_commit_says_who_and_what(graph: og.Graph) -> None:
    commit, genesis = graph.commits.list()
    page = graph.commits.changes(commit.id)
    assert plain(CauseBody.of(page.cause)) == {
        "graph_commit_id": commit.id,
        "parent_commit_id": genesis.id,
        "authored_branch": "main",
        "actor_id": "ann",
        "authored_at": commit.created_at,
    }
    assert page.next_page_token is None
    assert sorted(told(page.changes)) == [
        ("insert", "edge", "Knows", "k1"),
        ("insert", "edge", "Lives", "l1"),
        ("insert", "node", "Person", "Ann"),
        ("insert", "node", "Person", "Ben"),
        ("insert", "node", "Place", "Rome"),
    ]
    assert plain(BlockBody.of(page))["changes"][-1] == plain(ChangeBody.of(page.changes[-1]))


def test_nodes_first_then_by_type_id_then_by_id(graph: og.Graph) -> None:
    changes = graph.commits.changes(head(graph)).changes
    keys = [(change.kind == "edge", change.type.id, change.id) for change in changes]
    assert keys == sorted(keys)
    assert [change.kind for change in changes] == ["node"] * 3 + ["edge"] * 2


def test_operations_of_one_type_stand_by_id(graph: og.Graph) -> None:
    graph.load([person("Cid"), person("Dan")], mode="append")
    mutate(graph, 'delete Knows where from = "Ann" delete Lives where from = "Ann"')
    kept = person("Ben", photo=b"\x00\xff")
    graph.load([kept, person("Cid", age=1), person("Abe")], mode="overwrite")
    assert told(graph.commits.changes(head(graph)).changes) == [
        ("insert", "node", "Person", "Abe"),
        ("delete", "node", "Person", "Ann"),
        ("update", "node", "Person", "Cid"),
        ("delete", "node", "Person", "Dan"),
    ]


def test_the_id_of_a_type_is_opaque_and_survives_a_rename(graph: og.Graph) -> None:
    (change,) = graph.commits.changes(head(graph), types="Place").changes
    identity = graph.snapshot().tables["node:Place"].identity
    domain = graph.snapshot().schema.identity_domain
    parts = [
        domain.encode(),
        *(n.to_bytes(8, "little") for n in (identity.table_id, identity.incarnation)),
    ]
    digest = sha256(b"\x1f".join(parts)).digest()
    assert change.type.id == urlsafe_b64encode(digest).decode().rstrip("=")
    renamed = SCHEMA.replace("node Place {", 'node Town @rename_from("Place") {').replace(
        "-> Place", "-> Town"
    )
    commit = change_schema(graph, renamed)
    assert graph.commits.changes(commit).changes == ()
    graph.load([{"type": "Town", "data": {"name": "Oslo"}}], mode="append")
    (later,) = graph.commits.changes(head(graph)).changes
    assert (later.type.id, later.type.name) == (change.type.id, "Town")


def test_work_that_changes_no_value_is_empty(graph: og.Graph) -> None:
    graph.load([person("Cid", age=1)], mode="append")
    compact_all(graph)
    assert graph.commits.changes(head(graph)).changes == ()
    graph.load([person("Cid", age=1), place("Rome")], mode="merge")
    assert graph.commits.changes(head(graph)).changes == ()
    graph.load([], mode="append")
    assert graph.commits.changes(head(graph)).changes == ()


def test_a_merge_shows_what_it_brought_in(graph: og.Graph) -> None:
    graph.branches.create("draft")
    graph.load([person("Cid")], mode="append", branch="draft")
    graph.load([person("Dan")], mode="append", branch="draft")
    mutate(graph, 'update Person set { age: 31 } where name = "Ann"')
    graph.branches.merge("draft")
    page = graph.commits.changes(head(graph))
    assert told(page.changes) == [
        ("insert", "node", "Person", "Cid"),
        ("insert", "node", "Person", "Dan"),
    ]
    assert page.cause.merged_parent_commit_id == head(graph, "draft")
    assert plain(BlockBody.of(page))["cause"]["merged_parent_commit_id"] == head(graph, "draft")


def test_commits_of_branches_are_found(graph: og.Graph) -> None:
    graph.branches.create("draft")
    graph.load([person("Cid")], mode="append", branch="draft")
    page = graph.commits.changes(head(graph, "draft"))
    assert page.cause.authored_branch == "draft"
    assert told(page.changes) == [("insert", "node", "Person", "Cid")]


# -- refusals ----------------------------------------------------------------------


def test_the_first_commit_has_nothing_to_be_compared_with(graph: og.Graph) -> None:
    genesis = graph.commits.list()[-1].id
    with pytest.raises(errors.ChangeDiffRefused, match="no parent") as error:
        graph.commits.changes(genesis)
    assert error.value.details == {"reason": "parentless_commit", "graph_commit_id": genesis}


def test_a_boundary_is_refused_whatever_is_asked_for(graph: og.Graph) -> None:
    less = SCHEMA.replace("\nedge Lives: Person -> Place\n", "")
    commit = change_schema(graph, less)
    asked: list[dict[str, Any]] = [{}, {"types": ["Person"]}, {"kinds": ["node"]}]
    for filters in asked:
        with pytest.raises(errors.ChangeDiffRefused, match="Lives") as error:
            graph.commits.changes(commit, **filters)
        assert error.value.details == {
            "reason": "schema_boundary",
            "graph_commit_id": commit,
            "type_name": "Lives",
        }


def test_an_unknown_commit(graph: og.Graph) -> None:
    with pytest.raises(errors.NotFound, match="01KA5QWZ7N4T3M8YB0C2D6E9FG"):
        graph.commits.changes("01KA5QWZ7N4T3M8YB0C2D6E9FG")


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_of_nothing_makes_no_sense(graph: og.Graph, limit: int) -> None:
    with pytest.raises(errors.BadRequest, match="limit"):
        graph.commits.changes(head(graph), limit=limit)


def test_a_page_has_a_limit(graph: og.Graph) -> None:
    graph.commits.changes(head(graph), limit=8192)
    with pytest.raises(errors.ResourceLimit) as error:
        graph.commits.changes(head(graph), limit=8193)
    resource = "commit_changes_page_changes"
    assert str(error.value) == f"resource limit exceeded for {resource}: actual 8193, limit 8192"
    assert error.value.details == {"resource": resource, "limit": 8192, "actual": 8193}


# -- pages -------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_pages_are_the_same_changes(graph: og.Graph, limit: int, fresh: bool) -> None:
    (whole,) = all_pages(graph, head(graph))
    pages = all_pages(graph, head(graph), limit=limit, fresh=fresh)
    assert [change for page in pages for change in page] == whole
    assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert len(pages) == -(-5 // limit)


def test_filters_hold_for_every_page(graph: og.Graph) -> None:
    found = all_pages(graph, head(graph), limit=1, fresh=True, types=["Person", "Lives"])
    assert [change.id for page in found for change in page] == ["Ann", "Ben", "l1"]


def test_a_thousand_by_default(graph: og.Graph) -> None:
    graph.load([place(f"p{number:05}") for number in range(2_500)], mode="append")
    assert [len(page) for page in all_pages(graph, head(graph))] == [1000, 1000, 500]


@pytest.mark.parametrize("fresh", [False, True])
def test_ids_of_any_length(graph: og.Graph, fresh: bool) -> None:
    stem = "x" * 300
    names = [
        stem,
        f"{stem}a",
        f"{stem}b",
        "x",
        f"{'x' * 63}é{stem}",
        "ż" * 128,
        "ż" * 129,
        stem[:256],
    ]
    graph.load([place(name) for name in names], mode="append")
    pages = all_pages(graph, head(graph), limit=1, fresh=fresh)
    assert [page[0].id for page in pages] == sorted(names, key=str.encode)


def test_pages_are_packed_by_bytes(graph: og.Graph) -> None:
    million = "x" * (1 << 20)
    graph.load([person(f"p{n}", tags=[million]) for n in range(8)], mode="append")
    sizes = [len(page) for page in all_pages(graph, head(graph))]
    assert sizes == [3, 3, 2]


def test_a_change_larger_than_a_page_comes_alone(graph: og.Graph) -> None:
    huge = "x" * (5 << 20)
    graph.load([person("a"), person("b", tags=[huge]), person("c")], mode="append")
    found = all_pages(graph, head(graph))
    assert [[change.id for change in page] for page in found] == [["a"], ["b"], ["c"]]


def test_the_next_page_goes_on_where_the_last_one_stopped(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[object] = []

    def counted(*args: Any, **options: Any) -> object:
        compared.append(args)
        return changed_rows(*args, **options)

    graph.load([place(f"p{number:05}") for number in range(500)], mode="append")
    monkeypatch.setattr("omnigraph.history.stream.changed_rows", counted)
    assert len(all_pages(graph, head(graph), limit=10)) == 50
    assert len(compared) == 1, "every page was compared from the beginning"
    token = graph.commits.changes(head(graph), limit=10).next_page_token
    twice = [graph.commits.changes(head(graph), limit=10, page_token=token) for _ in range(2)]
    assert twice[0] == twice[1]


def test_a_token_belongs_to_its_commit_its_filters_and_its_graph(
    graph: og.Graph, tmp_path: Path
) -> None:
    first = head(graph)
    graph.load([person("Cid"), knows("k2", "Cid", "Ann")], mode="append")
    token = graph.commits.changes(head(graph), limit=1).next_page_token
    assert token is not None
    same = graph.commits.changes(
        head(graph), page_token=token, kinds=["edge", "node"], ops=["delete", "insert", "update"]
    )
    assert told(same.changes) == [("insert", "edge", "Knows", "k2")]
    other = make_people(tmp_path / "other.omni")
    wrong: list[tuple[og.Graph, str, dict[str, Any]]] = [
        (graph, first, {}),
        (graph, head(graph), {"kinds": ["edge"]}),
        (graph, head(graph), {"types": ["Person", "Place", "Knows", "Lives"]}),
        (graph, head(graph), {"ops": ["insert"]}),
        (other, head(other), {}),
    ]
    for asked, commit, filters in wrong:
        with pytest.raises(errors.ChangeCursorRejected, match=r"^change cursor rejected: it "):
            asked.commits.changes(commit, page_token=token, **filters)
    cursor = graph.changes.poll().cursor
    with pytest.raises(errors.ChangeCursorRejected, match="not a commit-page"):
        graph.commits.changes(head(graph), page_token=cursor)
