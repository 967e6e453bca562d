"""Races of two handles, one step at a time: what is rebased, prepared again, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import DST, SRC
from tests import faults
from tests.faults import StoragePoint
from tests.write.writing import (
    Action,
    compact_all,
    image,
    index_all,
    mutate,
    overtaken,
    rows,
    unchanged,
)

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    email: String? @unique
}

node Note {
    text: String?
}

edge Knows: Person -> Person @card(0..2) {
    since: Date?
    note: String?
}

edge Wrote: Person -> Note
"""

# A second handle acts there: before anything was read, checked, written or published.
POINTS = [
    "txn_captured",
    "changes_built",
    "changes_checked",
    "rows_written",
    "table_staged",
    "publish_ready",
]


def person(name: str, **data: Any) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def knows(id_: str, source: str, target: str, **data: Any) -> str:
    return json.dumps({"edge": "Knows", "from": source, "to": target, "data": {"id": id_, **data}})


def note(id_: str, text: str) -> str:
    return json.dumps({"type": "Note", "data": {"id": id_, "text": text}})


def wrote(id_: str, source: str, target: str) -> str:
    return json.dumps({"edge": "Wrote", "from": source, "to": target, "data": {"id": id_}})


def load(mode: str, *lines: str) -> Action:
    return lambda graph: graph.load("\n".join(lines) + "\n", mode=mode)


def run(body: str) -> Action:
    return lambda graph: mutate(graph, body)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph to copy: people who know each other, and deleted rows to compact."""
    root = tmp_path_factory.mktemp("pristine") / "graph"
    graph = og.init(root, SCHEMA)
    first = [person("Ann", age=30, email="ann@x"), person("Ben", age=25), person("Old", age=90)]
    second = [person("Cat", age=35), person("Dan"), note("n1", "one"), note("n2", "two")]
    edges = [knows("e1", "Ann", "Ben", note="old"), knows("e2", "Ben", "Dan")]
    load("append", *first, note("n0", "zero"))(graph)
    load("append", *second, *edges, wrote("w1", "Ann", "n1"))(graph)
    load("append", knows("e3", "Ann", "Cat"), knows("e4", "Cat", "Dan"))(graph)
    load("append", wrote("w2", "Ben", "n2"))(graph)
    run('delete Person where name = "Old"')(graph)
    run('delete Note where text = "zero"')(graph)
    return root


@pytest.fixture
def graph(pristine: Path, tmp_path: Path) -> og.Graph:
    return copy_of(pristine, tmp_path / "graph")


def copy_of(pristine: Path, place: Path) -> og.Graph:
    shutil.copytree(pristine, place)
    return og.open(place)


def nothing(_: og.Graph) -> None:
    """What nobody else does."""


WRITES: dict[str, Action] = {
    "insert": run('insert Person { name: "New" }'),
    "insert_unkeyed": run('insert Note { text: "new" }'),
    "insert_edge": run('insert Knows { from: "Dan", to: "Ben" }'),
    "insert_unique": run('insert Person { name: "New", email: "new@x" }'),
    "upsert": run('insert Person { name: "Ann", age: 1 }'),
    "update": run('update Person set { age: 77 } where name = "Ann"'),
    "update_scan": run("update Person set { age: 78 } where age > 29"),
    "update_edge": run('update Knows set { note: "new" } where from = "Ann"'),
    "update_edge_scan": run('update Knows set { note: "new" } where note = "old"'),
    "delete": run('delete Person where name = "Ann"'),
    "delete_scan": run("delete Person where age > 29"),
    "delete_edge": run('delete Knows where to = "Dan"'),
    "append": load("append", person("New"), knows("e9", "Dan", "New")),
    "merge": load("merge", person("Ann", age=2), person("New"), knows("e1", "Dan", "Ben")),
    # Whoever wrote something, and what they wrote, must stay.
    "overwrite": load(
        "overwrite",
        person("Ann"),
        person("Ben"),
        knows("e9", "Ann", "Ann"),
        note("n1", "x"),
        note("n2", "y"),
    ),
    "overwrite_edges": load("overwrite", knows("e9", "Ann", "Dan")),
    "several_tables": run(
        'insert Person { name: "New" } insert Knows { from: "New", to: "Ann" } '
        'insert Note { text: "new" } update Person set { age: 3 } where name = "Ben"'
    ),
}


def plain(graph: og.Graph) -> dict[str, list[str]]:
    """All rows, ids that were made up left out."""
    return {
        key: sorted(
            json.dumps([None if len(id_) == 26 else id_, row], default=str)
            for id_, row in found.items()
        )
        for key, found in image(graph).items()
    }


def commits(graph: og.Graph) -> int:
    return len(graph.commits.list())


def both(action: Action, other: Action) -> Action:
    def act(graph: og.Graph) -> None:
        action(graph)
        other(graph)

    return act


def check_sound(graph: og.Graph) -> None:
    """What the schema promises holds for all rows."""
    found = image(graph)
    people, notes = found["node:Person"], found["node:Note"]
    emails = [row["email"] for row in people.values() if row["email"] is not None]
    assert len(set(emails)) == len(emails)
    for edge in found["edge:Knows"].values():
        assert {edge[SRC], edge[DST]} <= people.keys()
    for edge in found["edge:Wrote"].values():
        assert edge[SRC] in people
        assert edge[DST] in notes
    sources = [edge[SRC] for edge in found["edge:Knows"].values()]
    assert max(map(sources.count, sources), default=0) <= 2


# -- maintenance, and what others do elsewhere ---------------------------------------------------


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("write", WRITES)
def test_compaction_in_between_fails_no_write(
    graph: og.Graph, results: dict[str, dict[str, list[str]]], write: str, point: str
) -> None:
    check_not_disturbed(graph, write, point, compact_all)
    assert plain(graph) == results[write]


@pytest.mark.parametrize("work", ["index", "both", "indexed and compacted"])
@pytest.mark.parametrize("write", WRITES)
def test_maintenance_in_between_fails_no_write(
    graph: og.Graph, results: dict[str, dict[str, list[str]]], write: str, work: str
) -> None:
    if work == "indexed and compacted":
        index_all(graph)
    actions: dict[str, Action] = {
        "index": index_all,
        "both": both(compact_all, index_all),
        "indexed and compacted": compact_all,
    }
    check_not_disturbed(graph, write, "table_staged", actions[work])
    assert plain(graph) == results[write]


def check_not_disturbed(graph: og.Graph, write: str, point: str, other: Action) -> None:
    """A write does what it would have done alone, and both commits are there."""
    before = commits(graph)
    with overtaken(graph, point, other) as fault:
        written: Any = WRITES[write](graph)
    assert fault.fired == 1
    history = graph.commits.list()
    assert history[0].id == written.commit.id
    assert len(history) > before + 1
    check_sound(graph)


def alone(pristine: Path, place: Path, first: Action, second: Action) -> dict[str, list[str]]:
    """What the two make of the same rows, one after the other."""
    graph = copy_of(pristine, place)
    first(graph)
    second(graph)
    return plain(graph)


@pytest.fixture(scope="module")
def results(
    pristine: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, list[str]]]:
    """What each write makes of the graph when nobody disturbs it."""
    place = tmp_path_factory.mktemp("alone")
    return {name: alone(pristine, place / name, write, nothing) for name, write in WRITES.items()}


ELSEWHERE: dict[str, Action] = {
    "another person": run('insert Person { name: "Zoe", age: 5 }'),
    "other types": run('insert Note { text: "x" }'),
    "a row outside": run('update Person set { age: 26 } where name = "Ben"'),
    "an edge outside": run('delete Wrote where from = "Ben"'),
    "a load": load("append", person("Zoe", age=5), note("n9", "nine")),
}
DEPENDS_ON_ALL = {"overwrite", "overwrite_edges"}
OVERLAPPING = {("several_tables", "a row outside")}


@pytest.mark.parametrize(
    ("write", "other"),
    [
        (write, other)
        for write in WRITES
        for other in ELSEWHERE
        if write not in DEPENDS_ON_ALL and (write, other) not in OVERLAPPING
    ],
)
def test_a_commit_outside_the_read_set_fails_no_write(
    graph: og.Graph, write: str, other: str
) -> None:
    with overtaken(graph, "table_staged", ELSEWHERE[other]):
        before = commits(graph)
        written: Any = WRITES[write](graph)
    assert graph.commits.list()[0].id == written.commit.id
    assert commits(graph) == before + 2
    check_sound(graph)
    people = rows(graph, "Person")
    match other:
        case "another person" | "a load":
            assert people["Zoe"]["age"] == 5
        case "a row outside":
            assert people["Ben"]["age"] == 26


def test_an_overwrite_is_not_disturbed_by_rows_it_does_not_read(graph: og.Graph) -> None:
    with overtaken(graph, "table_staged", run('insert Person { name: "Zoe" }')):
        WRITES["overwrite_edges"](graph)
    assert "Zoe" in rows(graph, "Person")
    assert rows(graph, "Knows").keys() == {"e9"}


@pytest.mark.parametrize("times", [1, 3, 10])
def test_many_commits_elsewhere_are_all_rebased_over(graph: og.Graph, times: int) -> None:
    def others(other: og.Graph) -> None:
        for number in range(times):
            mutate(other, f'insert Person {{ name: "Zoe{number}" }}')
            compact_all(other)

    with overtaken(graph, "table_staged", others):
        result = mutate(graph, 'update Person set { age: 5 } where name = "Ann"')
    assert result.affected_nodes == 1
    found = rows(graph, "Person")
    assert found["Ann"] == {"name": "Ann", "age": 5, "email": "ann@x"}
    assert len(found) == 4 + times


def test_a_write_that_is_overtaken_at_every_rebase_still_gets_there(graph: og.Graph) -> None:
    left = 5
    other = og.open(str(graph.location))

    def again() -> None:
        # A compaction goes past the turns that writers of one process take.
        nonlocal left
        left -= 1
        index_all(other)

    with faults.observed("publish_ready", again, times=5) as fault:
        mutate(graph, 'update Person set { age: 5 } where name = "Ann"')
    assert (fault.fired, left) == (5, 0)
    assert rows(graph, "Person")["Ann"]["age"] == 5


# -- inside the read set -------------------------------------------------------------------------


UPSERTS: dict[str, Action] = {
    "insert": run('insert Person { name: "Ann", age: 1 }'),
    "merge": load("merge", person("Ann", age=1)),
}


@pytest.mark.parametrize("point", ["txn_captured", "changes_checked", "table_staged"])
@pytest.mark.parametrize(
    ("other", "preparations"),
    # What an upsert reads of a row is whether it is there.
    [('update Person set { age: 50 } where name = "Ann"', 1), ("delete Person where age = 30", 2)],
)
@pytest.mark.parametrize("kind", UPSERTS)
def test_an_upsert_wins(
    graph: og.Graph, kind: str, other: str, preparations: int, point: str
) -> None:
    before = commits(graph)
    with (
        overtaken(graph, point, run(other)),
        faults.observed("changes_built", list, times=None) as built,
    ):
        written: Any = UPSERTS[kind](graph)
    if point != "txn_captured":
        # The other write passes the point, too.
        assert built.fired == 1 + preparations
    assert commits(graph) == before + 2
    assert graph.commits.list()[0].id == written.commit.id
    assert rows(graph, "Person")["Ann"] == {"name": "Ann", "age": 1, "email": None}
    assert graph.table("Person").count_rows() == 4


def test_two_upserts_of_a_new_key_make_one_row(graph: og.Graph) -> None:
    with overtaken(graph, "table_staged", run('insert Person { name: "New", age: 1 }')):
        result = mutate(graph, 'insert Person { name: "New", age: 2 }')
    assert result.affected_nodes == 1
    assert rows(graph, "Person")["New"]["age"] == 2
    assert graph.table("Person").count_rows() == 5


def test_an_append_of_a_key_that_came_meanwhile_is_refused(graph: og.Graph) -> None:
    with (
        overtaken(graph, "table_staged", run('insert Person { name: "New", age: 1 }')),
        pytest.raises(errors.KeyConflict, match="'New' exists already in Person"),
    ):
        graph.load(person("New", age=2) + "\n", mode="append")
    assert rows(graph, "Person")["New"]["age"] == 1
    assert graph.commits.list()[0].actor == "other"


UPDATES = [
    ("update", 'insert Person { name: "Ann", age: 50 }'),
    ("update", 'delete Person where name = "Ann"'),
    ("update_scan", 'update Person set { age: 40 } where name = "Ben"'),
    ("update_scan", 'insert Person { name: "Zoe", age: 31 }'),
    ("update_scan", 'delete Person where name = "Ann"'),
    ("update_edge", 'insert Knows { from: "Ann", to: "Dan" }'),
    ("update_edge", 'delete Knows where to = "Cat"'),
    ("update_edge_scan", 'update Knows set { note: "old" } where from = "Ben"'),
    ("delete_scan", 'update Person set { age: 31 } where name = "Ben"'),
    ("delete_scan", 'update Person set { age: 1 } where name = "Ann"'),
    ("delete", 'insert Knows { from: "Dan", to: "Ann" }'),
    ("delete", 'delete Wrote where from = "Ann"'),
    ("delete_scan", 'insert Person { name: "Zoe", age: 31 }'),
    ("delete_edge", 'insert Knows { from: "Dan", to: "Dan" }'),
    ("overwrite", 'insert Person { name: "Zoe" }'),
    ("overwrite", 'insert Note { text: "x" }'),
    ("overwrite", 'delete Wrote where from = "Ben"'),
    ("overwrite_edges", 'insert Knows { from: "Dan", to: "Dan" }'),
    ("overwrite_edges", 'delete Person where name = "Dan"'),
    ("several_tables", 'update Person set { age: 1 } where name = "Ben"'),
]


@pytest.mark.parametrize(("write", "other"), UPDATES)
def test_what_was_decided_on_rows_that_changed_is_refused(
    graph: og.Graph, write: str, other: str
) -> None:
    """No matter where the other comes in: nothing is published but its commit."""
    # Room for one more edge of Ann.
    if 'from: "Ann"' in other:
        mutate(graph, 'delete Knows where to = "Cat"')
    before = commits(graph)
    with (
        overtaken(graph, "table_staged", run(other)),
        pytest.raises(errors.ReadSetChanged, match="read again and retry") as caught,
    ):
        WRITES[write](graph)
    assert caught.value.details.keys() == {"member", "expected", "actual"}
    assert caught.value.details["member"].startswith("published_dataset_version:")
    history = graph.commits.list()
    assert len(history) == before + 1
    assert history[0].actor == "other"
    shown = graph.snapshot()
    assert shown == graph.snapshot(commit=history[0].id)
    check_sound(graph)


def test_a_change_of_what_nobody_looked_at_does_not_disturb(graph: og.Graph) -> None:
    with overtaken(graph, "table_staged", run('update Person set { age: 1 } where name = "Ann"')):
        result = mutate(graph, 'delete Person where name = "Ann"')
    assert (result.affected_nodes, result.affected_edges) == (1, 3)
    assert rows(graph, "Person").keys() == {"Ben", "Cat", "Dan"}
    check_sound(graph)


# -- conditional writes --------------------------------------------------------------------------

CONDITIONAL = [
    'insert Person { name: "New" }',
    'update Person set { age: 5 } where name = "Ann"',
    'delete Person where name = "Ann"',
    'update Person set { age: 5 } where name = "Nobody"',
]


@pytest.mark.parametrize("other", [compact_all, run('insert Note { text: "x" }')])
@pytest.mark.parametrize("point", ["changes_built", "changes_checked"])
@pytest.mark.parametrize("body", CONDITIONAL)
def test_a_conditional_write_is_never_moved(
    graph: og.Graph, body: str, point: str, other: Action
) -> None:
    head = graph.snapshot().commit_id
    with (
        overtaken(graph, point, other),
        faults.observed("txn_captured", list, times=None) as captured,
        pytest.raises(errors.PreconditionFailed, match="nothing was written") as caught,
    ):
        mutate(graph, body, if_commit=head)
    actual = graph.snapshot().commit_id
    assert caught.value.details == {"branch": "main", "expected": head, "actual": actual}
    assert captured.fired <= 2
    assert graph.commits.get(actual).parent_id == head


def test_a_conditional_write_on_the_head_it_names_succeeds(graph: og.Graph) -> None:
    head = graph.snapshot().commit_id
    first = mutate(graph, CONDITIONAL[0], if_commit=head)
    assert first.commit is not None
    assert first.commit.parent_id == head
    assert mutate(graph, CONDITIONAL[3], if_commit=first.commit.id).commit is None
    for body in CONDITIONAL:
        with unchanged(graph), pytest.raises(errors.PreconditionFailed):
            mutate(graph, body, if_commit=head)


# -- write skew ----------------------------------------------------------------------------------

PAIRS: dict[str, tuple[Action, Action]] = {
    "delete a node / add an edge to it": (
        run('delete Person where name = "Dan"'),
        run('insert Knows { from: "Dan", to: "Ben" }'),
    ),
    "delete a node / add an edge from it": (
        run('delete Person where name = "Ben"'),
        run('insert Knows { from: "Dan", to: "Ben" }'),
    ),
    "delete a node / load an edge to it": (
        run("delete Person where age = 25"),
        load("merge", knows("e9", "Dan", "Ben")),
    ),
    "two inserts of one unique value": (
        run('insert Person { name: "New", email: "new@x" }'),
        run('insert Person { name: "Newer", email: "new@x" }'),
    ),
    "an update and an insert of one unique value": (
        run('update Person set { email: "new@x" } where name = "Ben"'),
        run('insert Person { name: "Newer", email: "new@x" }'),
    ),
    "two updates to one unique value": (
        run('update Person set { email: "new@x" } where name = "Ben"'),
        run('update Person set { email: "new@x" } where name = "Cat"'),
    ),
    "two edges beyond a cardinality": (
        run('insert Knows { from: "Ben", to: "Ann" }'),
        run('insert Knows { from: "Ben", to: "Cat" }'),
    ),
    "a moved edge and a new one beyond a cardinality": (
        load("merge", knows("e4", "Ben", "Dan")),
        run('insert Knows { from: "Ben", to: "Cat" }'),
    ),
    "overwrite of nodes / edge to a dropped node": (
        load("overwrite", person("Ann"), person("Ben"), person("Cat"), knows("e1", "Ann", "Ben")),
        run('insert Knows { from: "Dan", to: "Dan" }'),
    ),
    "overwrite of nodes / edge of another type to a dropped node": (
        load("overwrite", note("n1", "x"), note("n2", "x")),
        load(
            "append",
            note("n3", "x"),
            wrote("w9", "Dan", "n3"),
        ),
    ),
    "overwrite of edges / delete of a node": (
        load("overwrite", knows("e9", "Ann", "Dan")),
        run('delete Person where name = "Dan"'),
    ),
    "update of a row / upsert of it": (
        run('update Person set { age: 50 } where name = "Ann"'),
        run('insert Person { name: "Ann", age: 1 }'),
    ),
    "update of a row / delete of it": (
        run('update Person set { age: 50 } where name = "Ann"'),
        run('delete Person where name = "Ann"'),
    ),
    "upsert of a row / delete of it": (
        run('insert Person { name: "Ann", age: 1 }'),
        run('delete Person where name = "Ann"'),
    ),
    "two deletes of one row": (
        run('delete Person where name = "Ann"'),
        run("delete Person where age = 30"),
    ),
    "two updates of one row": (
        run('update Person set { age: 50 } where name = "Ann"'),
        run('update Person set { email: "a@x" } where name = "Ann"'),
    ),
}
LOST = (errors.ValidationError, errors.ReadSetChanged)


@pytest.mark.pairwise
@pytest.mark.parametrize("point", [point for point in POINTS if point != "publish_ready"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_write_skew_is_impossible(
    graph: og.Graph, pristine: Path, pair: str, turned: bool, point: str
) -> None:
    """Whatever wins, the result is that of the two one after the other."""
    first, second = PAIRS[pair][:: -1 if turned else 1]
    before = commits(graph)
    outcome: str | None = None
    with overtaken(graph, point, second):
        try:
            first(graph)
        except LOST as error:
            outcome = type(error).__name__
    check_sound(graph)
    assert commits(graph) == before + (2 if outcome is None else 1)
    winner = first if outcome is None else nothing
    expected = alone(pristine, Path(f"{graph.location}-alone"), second, winner)
    assert plain(graph) == expected
    if outcome == "ValidationError":
        # It is refused for what it is, and so it would be now.
        with unchanged(graph), pytest.raises(errors.ValidationError):
            first(graph)


# -- branches ------------------------------------------------------------------------------------


def recreate(other: og.Graph) -> None:
    other.branches.delete("dev")
    other.branches.create("dev")


@pytest.mark.pairwise
@pytest.mark.parametrize("is_conditional", [False, True])
@pytest.mark.parametrize("is_ahead", [False, True])
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("body", CONDITIONAL[:3])
def test_a_branch_made_anew_in_between_is_another_branch(
    graph: og.Graph, body: str, point: str, is_ahead: bool, is_conditional: bool
) -> None:
    """Even if both are at the same commit: who wrote to the one does not write to the other."""
    graph.branches.create("dev")
    if is_ahead:
        mutate(graph, 'update Person set { age: 99 } where name = "Ben"', branch="dev")
    head = graph.snapshot("dev").commit_id if is_conditional else None
    with (
        overtaken(graph, point, recreate) as fault,
        pytest.raises(errors.BranchNotFound, match="branch dev has been deleted"),
    ):
        mutate(graph, body, branch="dev", if_commit=head)
    assert fault.fired == 1
    assert image(graph, "dev") == image(graph)
    assert graph.snapshot("dev").commit_id == graph.snapshot().commit_id
    result = mutate(graph, body, branch="dev")
    assert result.commit is not None
    assert result.commit.parent_id == graph.snapshot().commit_id


@pytest.mark.parametrize("point", POINTS)
def test_a_branch_that_is_gone_is_not_found(graph: og.Graph, point: str) -> None:
    graph.branches.create("dev")
    with (
        overtaken(graph, point, lambda other: other.branches.delete("dev")),
        pytest.raises(errors.BranchNotFound),
    ):
        mutate(graph, 'insert Person { name: "New" }', branch="dev")
    assert graph.branches.list() == ["main"]


def test_a_branch_that_a_load_was_to_fork_may_be_forked_by_somebody_else(graph: og.Graph) -> None:
    def fork(other: og.Graph) -> None:
        other.branches.create("dev")
        mutate(other, 'insert Person { name: "Zoe" }', branch="dev")

    with overtaken(graph, "table_staged", fork):
        loaded = graph.load(person("New") + "\n", mode="append", branch="dev", from_branch="main")
    assert not loaded.branch_created
    assert {"New", "Zoe"} <= rows(graph, "Person", "dev").keys()
    assert "New" not in rows(graph, "Person")


def test_branches_do_not_disturb_each_other(graph: og.Graph) -> None:
    graph.branches.create("dev")
    before = graph.snapshot()
    other = run('delete Person where name = "Ann"')
    with overtaken(graph, "table_staged", other):
        result = mutate(graph, 'update Person set { age: 5 } where name = "Ann"', branch="dev")
    assert result.commit is not None
    assert result.commit.parent_id == before.commit_id
    assert rows(graph, "Person", "dev")["Ann"]["age"] == 5
    assert "Ann" not in rows(graph, "Person")


# -- storage that fails --------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITES)
def test_a_lost_acknowledgement_is_success(graph: og.Graph, write: str) -> None:
    before = commits(graph)
    with faults.armed("after_commit", matching="__manifest") as fault:
        written: Any = WRITES[write](graph)
    assert fault.fired == 1
    assert graph.commits.list()[0].id == written.commit.id
    assert commits(graph) == before + 1
    reopened = og.open(str(graph.location))
    assert reopened.commits.get(written.commit.id) == written.commit
    assert plain(reopened) == plain(graph)
    check_sound(graph)


def test_a_lost_acknowledgement_that_others_follow_is_success(graph: og.Graph) -> None:
    other = og.open(str(graph.location))

    def lose() -> errors.StorageError:
        index_all(other)
        return faults.unavailable()

    with faults.armed("after_commit", lose, matching="__manifest") as fault:
        result = mutate(graph, 'insert Person { name: "New" }')
    assert fault.fired == 1
    assert result.commit is not None
    history = graph.commits.list()
    assert history[0].parent_id == result.commit.id
    assert [commit.id for commit in history].count(result.commit.id) == 1


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("point", faults.STORAGE_POINTS)
@pytest.mark.parametrize("write", ["insert", "upsert", "update", "delete", "insert_edge", "merge"])
def test_storage_that_fails_leaves_all_or_nothing(
    graph: og.Graph, write: str, point: StoragePoint, forever: bool
) -> None:
    """At every pass of the point, once and for good."""
    skip, told = 0, ""
    while True:
        before, history = plain(graph), commits(graph)
        with faults.armed(point, skip=skip, times=None if forever else 1) as fault:
            try:
                written: Any = WRITES[write](graph)
            except errors.StorageError as error:
                written, told = None, str(error)
        if not fault.fired:
            break
        assert written is not None or "injected fault" in told
        reopened = og.open(str(graph.location))
        happened = commits(reopened) - history
        assert happened in (0, 1)
        if written is not None:
            assert happened == 1
        if not happened:
            assert plain(reopened) == before
        check_sound(reopened)
        skip += 1
    assert skip >= (0 if point.endswith("put") else 2)
    assert written is not None
