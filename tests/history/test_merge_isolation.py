"""Branches beside each other: what is written on one shows nowhere else until it is merged.

Merges at the same time as other writes end with exactly what each of them did.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts, ReadSetChanged
from omnigraph.lang.structural import ID
from tests import faults
from tests.history.merging import (
    content,
    copy_of,
    delete,
    edge,
    kinds,
    node,
    put,
    rows_of,
    run,
    update,
)
from tests.write.writing import compact_all, overtaken

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key  a: I32?  email: String? @unique }
node Place { name: String @key }
edge Knows: Person -> Person { note: String? }
edge Owns: Person -> Place @card(0..1)
"""
BRANCHES = 50


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few people who know each other, and a branch `s`."""
    root = tmp_path_factory.mktemp("isolation") / "graph"
    graph = og.init(root, SCHEMA)
    put(
        graph,
        "main",
        *(node("Person", name, a=0) for name in ("Ann", "Ben", "Cat")),
        node("Place", "Arda"),
        node("Place", "Brell"),
        edge("Knows", "k1", "Ann", "Ben"),
    )
    graph.branches.create("s")
    return root


@pytest.fixture
def graph(prepared: Path, tmp_path: Path) -> og.Graph:
    return copy_of(prepared, tmp_path / "graph")


def set_a(name: str, value: int) -> str:
    return update("Person", name, a=value)


# -- isolation -----------------------------------------------------------------------------------


def test_what_is_written_on_a_branch_shows_nowhere_else(graph: og.Graph) -> None:
    before = content(graph)
    graph.branches.create("t")
    graph.branches.create("u", "s")
    put(graph, "s", node("Person", "Eve"), edge("Knows", "k2", "Eve", "Ann"))
    run(graph, "s", set_a("Ann", 5), delete("Person", "Ben"))
    for branch in ("main", "t", "u"):
        assert content(graph, branch) == before
    other = og.open(graph.location.path)
    assert content(other) == before
    query = "query q() { match { $p: Person } return { $p.name } }"
    names = [graph.query(query, branch=each).table.column(0).to_pylist() for each in ("main", "s")]
    assert [sorted(found) for found in names] == [["Ann", "Ben", "Cat"], ["Ann", "Cat", "Eve"]]
    graph.branches.merge("s", "t")
    assert content(graph, "t") == content(graph, "s")
    assert content(graph) == content(graph, "u") == before


def test_an_older_commit_shows_what_it_showed(graph: og.Graph) -> None:
    old = graph.snapshot().commit_id
    put(graph, "s", node("Person", "Eve"))
    put(graph, "main", node("Person", "Fay"))
    graph.branches.merge("s")
    names = graph.table("Person", snapshot=old).to_table(columns=[ID]).column(ID).to_pylist()
    assert sorted(names) == ["Ann", "Ben", "Cat"]


def test_what_is_written_to_the_source_after_a_merge_stays_there(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve"))
    graph.branches.merge("s")
    after = content(graph)
    run(graph, "s", set_a("Eve", 1), delete("Person", "Ann"))
    assert content(graph) == after
    # And the other way: the tables that were taken over are not shared in time.
    run(graph, "main", set_a("Eve", 2), delete("Person", "Ben"))
    assert rows_of(graph, "Person", "s").keys() == {"Ben", "Cat", "Eve"}
    assert rows_of(graph, "Person", "s")["Eve"]["a"] == 1


def test_fifty_branches_merge_to_the_union(graph: og.Graph) -> None:
    put(graph, "main", *(node("Person", f"old{n}", a=0) for n in range(BRANCHES)))
    for number in range(BRANCHES):
        branch = graph.branches.create(f"b{number}")
        put(graph, branch, node("Person", f"new{number}", a=number))
        run(graph, branch, set_a(f"old{number}", number))
        put(graph, branch, edge("Knows", f"e{number}", f"new{number}", "Ann"))
    outcomes = [graph.branches.merge(f"b{number}").outcome for number in range(BRANCHES)]
    assert outcomes == ["fast_forward", *["merged"] * (BRANCHES - 1)]
    found = {name: row["a"] for name, row in rows_of(graph, "Person").items()}
    assert found == {
        **dict.fromkeys(("Ann", "Ben", "Cat"), 0),
        **{f"old{number}": number for number in range(BRANCHES)},
        **{f"new{number}": number for number in range(BRANCHES)},
    }
    edges = {id_: (row["from"], row["to"]) for id_, row in rows_of(graph, "Knows").items()}
    expected = {f"e{number}": (f"new{number}", "Ann") for number in range(BRANCHES)}
    assert edges == {"k1": ("Ann", "Ben"), **expected}
    for number in range(BRANCHES):
        assert graph.branches.merge(f"b{number}").outcome == "already_up_to_date"


# -- at the same time ----------------------------------------------------------------------------


def together(*work: Callable[[], object]) -> list[object]:
    """Run all at once, each in a thread of its own; returns what each of them did."""
    line = Barrier(len(work))

    def begin(each: Callable[[], object]) -> object:
        line.wait(60)
        return each()

    with ThreadPoolExecutor(len(work)) as pool:
        return [done.result() for done in [pool.submit(begin, each) for each in work]]


def test_two_merges_and_a_writer_at_once(graph: og.Graph) -> None:
    graph.branches.create("t")
    for branch in ("s", "t"):
        rows = [node("Person", f"{branch}{number}", a=number) for number in range(20)]
        put(graph, branch, *rows, edge("Knows", f"{branch}-k", f"{branch}0", "Cat"))
    run(graph, "s", set_a("Ann", 5))
    run(graph, "t", set_a("Ben", 6))
    root = graph.location.path

    def write() -> None:
        other = og.open(root)
        for number in range(10):
            put(other, "main", node("Person", f"w{number}"), node("Place", f"w{number}"))

    together(
        lambda: og.open(root).branches.merge("s"),
        lambda: og.open(root).branches.merge("t"),
        write,
    )
    found = og.open(root)
    people = rows_of(found, "Person")
    expected = {f"{branch}{number}" for branch in ("s", "t") for number in range(20)}
    assert people.keys() == {"Ann", "Ben", "Cat", *expected, *(f"w{n}" for n in range(10))}
    assert (people["Ann"]["a"], people["Ben"]["a"], people["Cat"]["a"]) == (5, 6, 0)
    assert rows_of(found, "Knows").keys() == {"k1", "s-k", "t-k"}
    assert rows_of(found, "Place").keys() == {"Arda", "Brell", *(f"w{n}" for n in range(10))}
    commits = found.commits.list()
    assert len(commits) == len({commit.id for commit in commits}) == 2 + 2 + 10
    parents = [commit.parent_id for commit in commits[:-1]]
    assert parents == [commit.id for commit in commits[1:]]
    assert sum(commit.merged_parent_id is not None for commit in commits) == 2


def test_one_branch_merged_twice_at_once_is_merged_once(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve"))
    put(graph, "main", node("Person", "Fay"))
    root = graph.location.path
    results = together(*[lambda: og.open(root).branches.merge("s").outcome] * 2)
    assert sorted(map(str, results)) == ["already_up_to_date", "merged"]
    assert rows_of(graph, "Person").keys() == {"Ann", "Ben", "Cat", "Eve", "Fay"}


def test_a_merge_gets_through_while_somebody_writes_to_the_same_table(graph: og.Graph) -> None:
    put(graph, "s", *(node("Person", f"s{number}") for number in range(50)))
    root = graph.location.path
    done = Event()

    def write() -> int:
        other, number = og.open(root), 0
        while not done.is_set() and number < 25:
            put(other, "main", node("Person", f"w{number}"))
            number += 1
        return number

    def merge() -> str:
        try:
            return str(og.open(root).branches.merge("s").outcome)
        finally:
            done.set()

    written, outcome = together(write, merge)
    assert outcome in ("merged", "fast_forward")
    assert isinstance(written, int)
    expected = {f"w{number}" for number in range(written)}
    expected |= {f"s{number}" for number in range(50)}
    assert rows_of(graph, "Person").keys() == {"Ann", "Ben", "Cat", *expected}


# -- one step at a time --------------------------------------------------------------------------

POINTS = ["txn_captured", "changes_built", "changes_checked", "rows_written", "table_staged"]


@pytest.mark.parametrize("point", POINTS)
def test_a_write_to_another_row_comes_in_between(graph: og.Graph, point: str) -> None:
    run(graph, "s", set_a("Ann", 5))
    with overtaken(graph, point, lambda other: run(other, "main", set_a("Ben", 6))) as fault:
        result = graph.branches.merge("s")
    assert fault.fired == 1
    assert result.outcome == "merged"
    found = {name: row["a"] for name, row in rows_of(graph, "Person").items()}
    assert found == {"Ann": 5, "Ben": 6, "Cat": 0}


@pytest.mark.parametrize("point", POINTS)
def test_a_write_to_the_same_row_comes_in_between(graph: og.Graph, point: str) -> None:
    run(graph, "s", set_a("Ann", 5))
    action = lambda other: run(other, "main", set_a("Ann", 6))  # noqa: E731 - it is that short
    with overtaken(graph, point, action), pytest.raises(MergeConflicts) as caught:
        graph.branches.merge("s")
    (found,) = caught.value.conflicts
    assert (found.kind, found.entity_id, found.property) == ("divergent_update", "Ann", "a")
    assert (found.base, found.source, found.target) == (0, 5, 6)
    assert rows_of(graph, "Person")["Ann"]["a"] == 6
    assert [commit.merged_parent_id for commit in graph.commits.list()[:2]] == [None, None]


@pytest.mark.parametrize("point", ["txn_captured", "changes_checked"])
def test_what_comes_in_between_may_break_a_rule(graph: og.Graph, point: str) -> None:
    put(graph, "s", node("Person", "Eve", email="e@x"), edge("Owns", "o1", "Ann", "Arda"))
    put(graph, "s", edge("Knows", "k2", "Eve", "Cat"))

    def act(other: og.Graph) -> None:
        put(other, "main", node("Person", "Fay", email="e@x"), edge("Owns", "o2", "Ann", "Brell"))
        run(other, "main", delete("Person", "Cat"))

    with overtaken(graph, point, act), pytest.raises(MergeConflicts) as caught:
        graph.branches.merge("s")
    found = [(kind, name) for kind, name, _ in kinds(caught.value.conflicts)]
    assert sorted(found) == [
        ("cardinality_violation", "Owns"),
        ("orphan_edge", "Knows"),
        ("unique_violation", "Person"),
    ]


def test_a_write_that_does_not_matter_costs_no_second_plan(graph: og.Graph) -> None:
    """The source has changed people only; a place comes in between."""
    run(graph, "s", set_a("Ann", 5))
    planned: list[str] = []

    def watch(point: str, _: str) -> None:
        if point == "changes_built":
            planned.append(point)

    action = lambda other: put(other, "main", node("Place", "Cove"))  # noqa: E731 - as above
    with overtaken(graph, "changes_checked", action) as fault, faults.watched(watch):
        result = graph.branches.merge("s")
    assert fault.fired == 1
    # One for the merge, one for the write in between.
    assert len(planned) == 2
    assert result.outcome == "merged"
    assert rows_of(graph, "Person")["Ann"]["a"] == 5
    assert "Cove" in rows_of(graph, "Place")


def test_the_source_goes_on_while_it_is_merged(graph: og.Graph) -> None:
    run(graph, "s", set_a("Ann", 5))
    theirs = graph.snapshot("s").commit_id
    with overtaken(graph, "changes_built", lambda other: run(other, "s", set_a("Ann", 6))):
        result = graph.branches.merge("s")
    assert result.commit is not None
    assert result.commit.merged_parent_id == theirs
    assert rows_of(graph, "Person")["Ann"]["a"] == 5
    assert graph.branches.merge("s").outcome == "merged"
    assert rows_of(graph, "Person")["Ann"]["a"] == 6


def test_another_merge_of_the_same_branch_comes_in_between(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve"))
    put(graph, "main", node("Person", "Fay"))
    with overtaken(graph, "changes_checked", lambda other: other.branches.merge("s")):
        assert graph.branches.merge("s").outcome == "already_up_to_date"
    merges = [commit for commit in graph.commits.list() if commit.merged_parent_id is not None]
    assert len(merges) == 1


def test_another_merge_of_the_same_empty_commits_comes_in_between(graph: og.Graph) -> None:
    """What the branch did comes to nothing, so that no table tells that it was merged."""
    run(graph, "s", set_a("Ann", 5), set_a("Ann", 0))
    put(graph, "main", node("Person", "Fay"))
    with overtaken(graph, "changes_checked", lambda other: other.branches.merge("s")):
        assert graph.branches.merge("s").outcome == "already_up_to_date"
    merges = [commit for commit in graph.commits.list() if commit.merged_parent_id is not None]
    assert len(merges) == 1


# -- writers that a merge comes in between of ----------------------------------------------------


@pytest.mark.parametrize("point", ["changes_checked", "table_staged"])
def test_a_writer_that_a_merge_overtakes(graph: og.Graph, point: str) -> None:
    put(graph, "s", node("Person", "Eve", a=1))
    run(graph, "s", set_a("Ann", 5))
    with overtaken(graph, point, lambda other: other.branches.merge("s")) as fault:
        put(graph, "main", node("Person", "Fay"), edge("Knows", "k2", "Ann", "Cat"))
    assert fault.fired == 1
    found = {name: row["a"] for name, row in rows_of(graph, "Person").items()}
    assert found == {"Ann": 5, "Ben": 0, "Cat": 0, "Eve": 1, "Fay": None}
    assert rows_of(graph, "Knows").keys() == {"k1", "k2"}


@pytest.mark.parametrize("is_maintained", [False, True])
def test_an_overwrite_that_a_merge_overtakes(graph: og.Graph, *, is_maintained: bool) -> None:
    """The table that was merged is a change, even if its last commit on the branch was none."""
    put(graph, "s", node("Place", "Cove"))
    put(graph, "s", node("Place", "Dale"))
    if is_maintained:
        compact_all(graph, "s")
    with (
        overtaken(graph, "changes_checked", lambda other: other.branches.merge("s")),
        pytest.raises(ReadSetChanged),
    ):
        graph.load([node("Place", "Arda")], mode="overwrite")
    assert rows_of(graph, "Place").keys() == {"Arda", "Brell", "Cove", "Dale"}
