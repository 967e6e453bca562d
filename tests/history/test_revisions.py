"""Revisions: every way to name a commit, wherever a commit is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import (
    BadRequest,
    BranchNotFound,
    NotFound,
    OmniGraphError,
    PreconditionFailed,
)

NAMES = "query q() { match { $p: Person } return { $p.name } order { $p.name asc } }"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Three people on main, one commit each; a branch with one more; a tag."""
    root = tmp_path_factory.mktemp("revisions") / "people.omni"
    graph = og.init(root, "node Person { name: String @key }")
    for name in ("ann", "ben", "cem"):
        add(graph, name)
    graph.branches.create("dev", "main~1")
    add(graph, "dora", "dev")
    graph.tags.create("v1", "main~2")
    return graph


def add(graph: og.Graph, name: str, branch: str = "main") -> None:
    graph.mutate(f'query q() {{ insert Person {{ name: "{name}" }} }}', branch=branch)


def names(graph: og.Graph, ref: str) -> list[str]:
    return [row["p.name"] for row in graph.query(NAMES, snapshot=ref).rows]


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("main", ["ann", "ben", "cem"]),
        ("main~", ["ann", "ben"]),
        ("main~1", ["ann", "ben"]),
        (" main~2 ", ["ann"]),
        ("main~1~1", ["ann"]),
        ("main~3", []),
        ("dev", ["ann", "ben", "dora"]),
        ("dev~2", ["ann"]),
        ("v1", ["ann"]),
        ("v1~1", []),
        ("main@{now}", ["ann", "ben", "cem"]),
        ("main@{0 seconds ago}~1", ["ann", "ben"]),
    ],
)
def test_names_of_commits(people: og.Graph, ref: str, found: list[str]) -> None:
    assert names(people, ref) == found


def test_beginnings_of_ids(people: og.Graph) -> None:
    for commit in people.commits.list():
        assert people.commits.get(commit.id[:-1].lower()).id == commit.id
        assert people.commits.get(f"{commit.id}~0").id == commit.id
    first = people.commits.list()[-1]
    with pytest.raises(BadRequest, match=r"commits begin with .*give more of the id"):
        people.commits.get(first.id[:4])


def test_times(people: og.Graph) -> None:
    for commit in people.commits.list():
        made = datetime.fromtimestamp(commit.created_at / 1e6, UTC)
        assert people.commits.get(f"main@{{{made.isoformat()}}}").id == commit.id
        naive = made.replace(tzinfo=None).isoformat()
        assert people.commits.get(f"main@{{{naive}}}").id == commit.id
    with pytest.raises(NotFound, match="before the first commit of main"):
        people.commits.get("main@{yesterday}")


def test_wherever_a_commit_is_named(people: og.Graph) -> None:
    assert [change.id for change in people.diff("v1", "main~1")] == ["ben"]
    assert [change.id for change in people.commits.changes("dev").changes] == ["dora"]
    assert people.snapshot(commit="main~1").commit_id == people.commits.list()[1].id
    assert people.schema_at("v1") == people.schema
    assert [line for line in people.export(snapshot="v1") if "ann" in line]
    with pytest.raises(PreconditionFailed):
        people.mutate('query q() { insert Person { name: "x" } }', if_commit="main~1")


@pytest.mark.parametrize(
    ("ref", "kind", "told"),
    [
        ("main~9", NotFound, "goes back beyond"),
        ("nope", NotFound, "there is no commit nope"),
        ("mian", NotFound, "did you mean"),
        ("nope@{now}", NotFound, "there is no branch nope"),
        ("main@{tomorrow}", BadRequest, "is not a time"),
        ("main@{}", BadRequest, "is not a time"),
        ("@{now}", BadRequest, "does not name a commit"),
        ("main{1}", BadRequest, "does not name a commit"),
        ("", BadRequest, "does not name a commit"),
        ("main~9999999", BadRequest, "does not name a commit"),
    ],
)
def test_what_names_nothing(
    people: og.Graph, ref: str, kind: type[OmniGraphError], told: str
) -> None:
    with pytest.raises(kind, match=told):
        people.commits.get(ref)


def test_a_tag_is_not_a_branch(people: og.Graph) -> None:
    assert people.branches.list() == ["dev", "main"]
    assert people.tags.list() == {"v1": people.commits.get("v1").id}
    for use in (
        lambda: add(people, "x", "v1"),
        lambda: people.query(NAMES, branch="v1"),
        lambda: people.branches.merge("v1"),
        lambda: people.branches.delete("v1"),
        lambda: people.branches.rename("v1", "v2"),
    ):
        with pytest.raises(BranchNotFound, match="v1 is a tag"):
            use()
    with pytest.raises(NotFound, match="no tag dev"):
        people.tags.delete("dev")


def test_a_tag_keeps_its_commit_through_cleanups(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    for name in ("ann", "ben", "cem", "dora"):
        add(graph, name)
    tagged = graph.commits.get("main~2").id
    graph.tags.create("release/1", "main~2", actor="ann")
    graph.cleanup(keep=1, grace=timedelta(0))
    assert names(graph, "release/1") == names(graph, tagged) == ["ann", "ben"]
    with pytest.raises(OmniGraphError, match="reclaimed"):
        names(graph, "main~1")
    graph.branches.create("again", "release/1")
    add(graph, "eve", "again")
    assert names(og.open(tmp_path / "g.omni"), "again") == ["ann", "ben", "eve"]
    assert graph.tags.delete("release/1") == "release/1"
    graph.branches.delete("again")
    graph.cleanup(keep=1, grace=timedelta(0))
    with pytest.raises(OmniGraphError):
        names(graph, tagged)
    assert not og.verify(tmp_path / "g.omni", deep=True).damage


def test_messages(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    graph.mutate('query q() { insert Person { name: "a" } }', message="  the first  ")
    graph.load([{"type": "Person", "data": {"name": "b"}}], mode="append", message="the second")
    graph.branches.create("dev")
    add(graph, "c", "dev")
    add(graph, "d")
    graph.branches.merge("dev", message="the third")
    graph.apply_schema("node Person { name: String @key  age: I32? }", message="the fourth")
    told = [commit.message for commit in graph.commits.list()]
    assert told == ["the fourth", "the third", None, "the second", "the first", None]
    with pytest.raises(BadRequest, match="10000 characters"):
        graph.mutate('query q() { insert Person { name: "z" } }', message="x" * 10_001)


def test_steps_are_written_as_in_git_too(people: og.Graph) -> None:
    for spelled, plain in (("main^", "main~1"), ("main^^", "main~2"), ("main~^", "main~2")):
        assert people.commits.get(spelled) == people.commits.get(plain)
    with pytest.raises(BadRequest, match="does not name a commit"):
        people.commits.get("main^2")


def test_names_that_mean_nothing_are_told_the_nearest(people: og.Graph) -> None:
    with pytest.raises(BranchNotFound, match="there is no branch dve: did you mean `dev`"):
        people.query(NAMES, branch="dve")
    with pytest.raises(NotFound, match="there is no tag v1x: did you mean `v1`"):
        people.tags.delete("v1x")
    with pytest.raises(NotFound, match="the newest commit of a branch goes by its name, `main`"):
        people.commits.get("HEAD")
