"""The base of a merge: which commit two branches last had in common, however they crossed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, BranchNotFound, MergeConflicts
from omnigraph.history.merge.conflicts import MergeResult
from tests.history.merging import copy_of, node, put, rows_of, run, update
from tests.write.writing import mutate, unchanged

SCHEMA = """
node Person { name: String @key  a: I32?  b: I32?  c: I32? }
"""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One person on main."""
    root = tmp_path_factory.mktemp("base") / "graph"
    put(og.init(root, SCHEMA), "main", node("Person", "Ann", a=0, b=0, c=0))
    return root


@pytest.fixture
def graph(prepared: Path, tmp_path: Path) -> og.Graph:
    return copy_of(prepared, tmp_path / "graph")


def assign(graph: og.Graph, branch: str, name: str = "Ann", **values: int) -> str:
    """Set properties of a person; returns the commit."""
    run(graph, branch, update("Person", name, **values))
    return head(graph, branch)


def add(graph: og.Graph, branch: str, name: str, **values: Any) -> str:
    """Insert a person; returns the commit."""
    put(graph, branch, node("Person", name, **values))
    return head(graph, branch)


def head(graph: og.Graph, branch: str = "main") -> str:
    return graph.snapshot(branch).commit_id


def merged(graph: og.Graph, source: str, into: str = "main", **options: Any) -> MergeResult:
    """Merge, which has to make a commit."""
    result = graph.branches.merge(source, into, **options)
    assert result.commit is not None
    assert result.commit.id == head(graph, into)
    return result


def shown(graph: og.Graph, branch: str = "main", name: str = "Ann") -> tuple[int, int, int]:
    found = rows_of(graph, "Person", branch)[name]
    return found["a"], found["b"], found["c"]


def people(graph: og.Graph, branch: str = "main") -> set[str]:
    return set(rows_of(graph, "Person", branch))


# -- merging again -------------------------------------------------------------------------------


def test_a_fast_forward_is_a_commit_of_its_own(graph: og.Graph) -> None:
    graph.branches.create("s")
    before, theirs = head(graph), assign(graph, "s", a=1)
    result = merged(graph, "s")
    assert (result.outcome, result.base_commit_id) == ("fast_forward", before)
    assert result.commit is not None
    assert (result.commit.parent_id, result.commit.merged_parent_id) == (before, theirs)
    assert head(graph) not in (before, theirs)
    assert head(graph, "s") == theirs


def test_a_branch_without_commits_is_merged_already(graph: og.Graph) -> None:
    graph.branches.create("s")
    for _ in range(2):
        with unchanged(graph):
            result = graph.branches.merge("s")
        assert (result.outcome, result.commit) == ("already_up_to_date", None)
        add(graph, "main", "Eve")


def test_merging_again_does_nothing_whatever_else_was_merged(graph: og.Graph) -> None:
    for name in ("s", "t", "u"):
        graph.branches.create(name)
        add(graph, name, name)
    merged(graph, "s")
    merged(graph, "t", "u")
    merged(graph, "u")
    add(graph, "main", "Eve")
    for name in ("s", "t", "u"):
        with unchanged(graph):
            result = graph.branches.merge(name)
        assert (result.outcome, result.base_commit_id) == ("already_up_to_date", head(graph, name))
    assert people(graph) == {"Ann", "Eve", "s", "t", "u"}


def test_only_what_came_since_the_last_merge_counts(graph: og.Graph) -> None:
    graph.branches.create("s")
    first = assign(graph, "s", a=1)
    merged(graph, "s")
    assign(graph, "main", a=2)
    assign(graph, "s", b=1)
    result = merged(graph, "s")
    # Against the older base this would be a conflict about `a`.
    assert (result.outcome, result.base_commit_id) == ("merged", first)
    assert shown(graph) == (2, 1, 0)


def test_a_row_that_was_deleted_after_a_merge_stays_deleted(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "s", "Eve")
    merged(graph, "s")
    run(graph, "main", 'delete Person where name = "Eve"')
    add(graph, "s", "Fay")
    merged(graph, "s")
    assert people(graph) == {"Ann", "Fay"}


# -- crossing ------------------------------------------------------------------------------------


def test_main_into_a_branch_and_back(graph: og.Graph) -> None:
    graph.branches.create("s")
    assign(graph, "s", a=1)
    ours = assign(graph, "main", b=1)
    there = merged(graph, "main", "s")
    assert (there.outcome, shown(graph, "s")) == ("merged", (1, 1, 0))
    back = merged(graph, "s")
    assert (back.outcome, back.base_commit_id) == ("fast_forward", ours)
    assert shown(graph) == (1, 1, 0)
    # And again, with work on both sides.
    assign(graph, "s", c=1)
    assign(graph, "main", a=5)
    merged(graph, "main", "s")
    assign(graph, "main", b=5)
    merged(graph, "s")
    assert shown(graph) == (5, 5, 1)


def test_rows_that_both_sides_inserted_keep_their_identity_across_merges(graph: og.Graph) -> None:
    """Each side numbers its new rows by itself; merged back and forth none is taken for another."""
    graph.branches.create("s")
    for number in range(4):
        add(graph, "s", f"s{number}", a=number)
        add(graph, "main", f"m{number}", a=number)
        merged(graph, "main", "s")
        assign(graph, "s", f"m{number}", b=number)
        merged(graph, "s")
        assign(graph, "main", f"s{number}", c=number)
    merged(graph, "main", "s")
    expected = {"Ann": (0, 0, 0)}
    for number in range(4):
        expected[f"m{number}"] = (number, number, None)  # type: ignore[assignment]
        expected[f"s{number}"] = (number, None, number)  # type: ignore[assignment]
    for branch in ("main", "s"):
        assert {name: shown(graph, branch, name) for name in people(graph, branch)} == expected


def test_criss_cross(graph: og.Graph) -> None:
    """Two branches that merged each other's older commit: of two bases the newer is taken."""
    for name in ("s", "t"):
        graph.branches.create(name)
    assign(graph, "s", a=1)
    graph.branches.create("old-s", "s")
    newer = assign(graph, "t", b=1)
    graph.branches.create("old-t", "t")
    assign(graph, "s", c=1)
    merged(graph, "old-s", "t")
    merged(graph, "old-t", "s")
    add(graph, "s", "from-s")
    add(graph, "t", "from-t")
    result = merged(graph, "s", "t")
    assert (result.outcome, result.base_commit_id) == ("merged", newer)
    assert shown(graph, "t") == (1, 1, 1)
    assert people(graph, "t") == {"Ann", "from-s", "from-t"}
    assert graph.branches.merge("t", "s").outcome == "fast_forward"
    assert rows_of(graph, "Person", "s") == rows_of(graph, "Person", "t")


@pytest.mark.parametrize("direction", [("s", "t"), ("t", "s")])
def test_the_newest_of_several_bases_does_not_depend_on_the_way(
    graph: og.Graph, direction: tuple[str, str]
) -> None:
    for name in ("s", "t"):
        graph.branches.create(name)
    add(graph, "t", "1")
    graph.branches.create("old-t", "t")
    newest = add(graph, "s", "2")
    graph.branches.create("old-s", "s")
    merged(graph, "old-t", "s")
    merged(graph, "old-s", "t")
    add(graph, "s", "3")
    add(graph, "t", "4")
    assert graph.branches.merge(*direction, dry_run=True).base_commit_id == newest


def test_a_common_ancestor_behind_another_is_not_the_base(graph: og.Graph) -> None:
    """The older common commit can be reached on a shorter way, and is not lowest."""
    graph.branches.create("s")
    graph.branches.create("t")
    lowest = add(graph, "s", "1")
    graph.branches.create("long", "s")
    for number in range(2, 6):
        add(graph, "long", str(number))
        merged(graph, "long", "t")
    add(graph, "s", "s")
    result = graph.branches.merge("s", "t", dry_run=True)
    assert result.base_commit_id == lowest


# -- branches of branches ------------------------------------------------------------------------


def test_a_branch_of_a_branch(graph: og.Graph) -> None:
    graph.branches.create("s")
    parent = assign(graph, "s", a=1)
    graph.branches.create("s-child", "s")
    assign(graph, "s-child", b=1)
    assign(graph, "s", c=1)
    before = head(graph)
    into_main = merged(graph, "s-child")
    assert (into_main.outcome, into_main.base_commit_id) == ("fast_forward", before)
    assert shown(graph) == (1, 1, 0)
    # What the child brought of its parent is known when the parent comes.
    result = merged(graph, "s")
    assert (result.outcome, result.base_commit_id) == ("merged", parent)
    assert shown(graph) == (1, 1, 1)


def test_a_child_without_commits_stands_for_its_parent(graph: og.Graph) -> None:
    graph.branches.create("s")
    theirs = assign(graph, "s", a=1)
    graph.branches.create("s-child", "s")
    result = merged(graph, "s-child", delete_source=True)
    assert result.commit is not None
    assert result.commit.merged_parent_id == theirs
    assert graph.branches.merge("s").outcome == "already_up_to_date"


def test_both_merged_a_third_branch(graph: og.Graph) -> None:
    for name in ("s", "t", "third"):
        graph.branches.create(name)
    add(graph, "third", "Eve", a=0)
    shared = add(graph, "third", "Fay")
    for name in ("s", "t"):
        add(graph, name, name)
        merged(graph, "third", name)
    assign(graph, "s", "Eve", a=1)
    result = merged(graph, "s", "t")
    assert (result.outcome, result.base_commit_id) == ("merged", shared)
    assert rows_of(graph, "Person", "t")["Eve"]["a"] == 1


def test_both_merged_a_third_branch_that_is_gone(graph: og.Graph) -> None:
    """What a commit descends from stays known, and so does the state that a merge needs."""
    for name in ("s", "t", "third"):
        graph.branches.create(name)
    shared = add(graph, "third", "Eve", a=0)
    for name in ("s", "t"):
        add(graph, name, name)
        merged(graph, "third", name)
    graph.branches.delete("third")
    graph.cleanup(1, grace=timedelta(0))
    assign(graph, "s", "Eve", a=1)
    result = merged(graph, "s", "t")
    assert (result.outcome, result.base_commit_id) == ("merged", shared)
    assert people(graph, "t") == {"Ann", "Eve", "s", "t"}
    assert rows_of(graph, "Person", "t")["Eve"]["a"] == 1


@pytest.mark.parametrize("cleaned", [False, True])
def test_a_deleted_row_does_not_come_back_when_the_merged_branch_is_deleted(
    graph: og.Graph, cleaned: bool
) -> None:
    for name in ("s", "t", "third"):
        graph.branches.create(name)
    add(graph, "third", "Eve", a=0)
    merged(graph, "third", "s")
    merged(graph, "third", "t")
    mutate(graph, 'delete Person where name = "Eve"', branch="t")
    graph.branches.delete("third")
    if cleaned:
        graph.cleanup(1, grace=timedelta(0))
    add(graph, "s", "Fay")
    merged(graph, "s", "t")
    assert people(graph, "t") == {"Ann", "Fay"}


def test_both_merged_a_branch_that_is_gone_whose_commits_another_still_has(
    graph: og.Graph,
) -> None:
    """The commits were those of `third`, which is there."""
    for name in ("s", "t", "third"):
        graph.branches.create(name)
    shared = add(graph, "third", "Eve", a=0)
    graph.branches.create("passing", "third")
    for name in ("s", "t"):
        add(graph, name, name)
        merged(graph, "passing", name)
    graph.branches.delete("passing")
    assign(graph, "s", "Eve", a=1)
    result = merged(graph, "s", "t")
    assert (result.outcome, result.base_commit_id) == ("merged", shared)
    assert rows_of(graph, "Person", "t")["Eve"]["a"] == 1


def test_a_name_that_is_used_again_is_another_branch(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "s", "1")
    merged(graph, "s", delete_source=True)
    graph.branches.create("s")
    add(graph, "s", "2")
    assert merged(graph, "s").outcome == "fast_forward"
    assert people(graph) == {"Ann", "1", "2"}
    run(graph, "main", 'delete Person where name = "1"')
    assert graph.branches.merge("s").outcome == "already_up_to_date"


@pytest.mark.slow
def test_a_branch_from_before_the_commits_were_sealed_away(graph: og.Graph) -> None:
    graph.branches.create("s")
    before = head(graph)
    assign(graph, "s", a=1)
    for number in range(70):
        assign(graph, "main", b=number)
    opened = og.open(graph.location.path)
    result = merged(opened, "s")
    assert (result.outcome, result.base_commit_id) == ("merged", before)
    assert shown(opened) == (1, 69, 0)
    assert opened.branches.merge("s").outcome == "already_up_to_date"


# -- deleting the source -------------------------------------------------------------------------


def test_the_source_is_deleted_afterwards(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "s", "Eve")
    result = merged(graph, "s", delete_source=True)
    assert (result.branch_deleted, result.branch_delete_error) == (True, None)
    assert graph.branches.list() == ["main"]
    assert people(graph) == {"Ann", "Eve"}


def test_the_source_is_deleted_when_there_was_nothing_to_merge(graph: og.Graph) -> None:
    graph.branches.create("s")
    result = graph.branches.merge("s", delete_source=True)
    assert (result.outcome, result.branch_deleted) == ("already_up_to_date", True)
    assert graph.branches.list() == ["main"]


def test_a_source_that_others_came_from_goes_and_they_live_on(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "s", "Eve")
    graph.branches.create("child", "s")
    result = merged(graph, "s", delete_source=True)
    assert (result.branch_deleted, result.branch_delete_error) == (True, None)
    assert graph.branches.list() == ["child", "main"]
    assert people(graph) == people(graph, "child") == {"Ann", "Eve"}
    add(graph, "child", "Fay")
    assert merged(graph, "child").outcome == "merged"
    assert people(graph) == {"Ann", "Eve", "Fay"}


def test_main_is_not_deleted(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "main", "Eve")
    result = merged(graph, "main", "s", delete_source=True)
    assert (result.branch_deleted, result.branch_delete_error) == (False, "main cannot be deleted")
    assert graph.branches.list() == ["main", "s"]


def test_a_source_in_conflict_is_not_deleted(graph: og.Graph) -> None:
    graph.branches.create("s")
    assign(graph, "s", a=1)
    assign(graph, "main", a=2)
    with pytest.raises(MergeConflicts):
        graph.branches.merge("s", delete_source=True)
    assert graph.branches.list() == ["main", "s"]


def test_without_being_asked_nothing_is_deleted(graph: og.Graph) -> None:
    graph.branches.create("s")
    add(graph, "s", "Eve")
    result = merged(graph, "s")
    assert (result.branch_deleted, result.branch_delete_error) == (None, None)
    assert graph.branches.list() == ["main", "s"]


# -- what is no merge ----------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "into"), [("main", "main"), ("s", "s"), (" s", "s ")])
def test_a_branch_is_not_merged_into_itself(graph: og.Graph, source: str, into: str) -> None:
    graph.branches.create("s")
    with unchanged(graph), pytest.raises(BadRequest, match="cannot be merged into itself"):
        graph.branches.merge(source, into)


@pytest.mark.parametrize(("source", "into"), [("none", "main"), ("main", "none")])
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_branch_that_does_not_exist(
    graph: og.Graph, source: str, into: str, *, dry_run: bool
) -> None:
    with unchanged(graph), pytest.raises(BranchNotFound, match="there is no branch none"):
        graph.branches.merge(source, into, dry_run=dry_run)


@pytest.mark.parametrize("name", ["__schema_apply_lock__", "/__schema_apply_lock__", "a//b", ""])
def test_a_name_that_is_none_of_a_branch(graph: og.Graph, name: str) -> None:
    for source, into in ((name, "main"), ("main", name)):
        with unchanged(graph), pytest.raises(BadRequest):
            graph.branches.merge(source, into)
