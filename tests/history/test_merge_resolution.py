"""Resolutions: which side wins in a conflict, what is refused, and runs that change nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest
from tests.film_graph import files
from tests.history.merging import (
    Line,
    content,
    copy_of,
    delete,
    edge,
    kinds,
    merged_as_foretold,
    node,
    put,
    refused,
    rows_of,
    run,
    update,
)
from tests.write.writing import unchanged

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    a: I32?
    b: I32?
    email: String? @unique
    photo: Blob?
}
node Place { name: String @key }
node Sheet @merge(row) { name: String @key  a: I32?  b: I32? }
edge Knows: Person -> Person { note: String? }
edge Owns: Person -> Place @card(1..2)
edge Visits: Person -> Place
"""

Resolve = str | Mapping[str, str]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """People, places and sheets, with a branch `s` of its only state."""
    root = tmp_path_factory.mktemp("resolution") / "graph"
    graph = og.init(root, SCHEMA)
    put(
        graph,
        "main",
        node("Person", "Ann", a=1, b=1, email="ann@x", photo="base64:YW5u"),
        node("Person", "Ben", a=2, b=2),
        node("Person", "Cat"),
        node("Person", "Dan", photo="base64:"),
        node("Place", "Arda"),
        node("Place", "Brell"),
        node("Sheet", "s1", a=1, b=1),
        edge("Knows", "k1", "Ben", "Cat"),
        edge("Owns", "o1", "Ben", "Arda"),
    )
    graph.branches.create("s")
    return root


@pytest.fixture
def graph(prepared: Path, tmp_path: Path) -> og.Graph:
    return copy_of(prepared, tmp_path / "graph")


def conflicts_of_every_kind(graph: og.Graph) -> None:
    """A row each, and properties that only one side changed beside those that both did."""
    put(graph, "s", node("Person", "Eve", a=5), edge("Knows", "k2", "Ann", "Dan", note="s"))
    put(graph, "main", node("Person", "Eve", b=6), edge("Knows", "k2", "Ann", "Cat"))
    run(graph, "s", 'update Person set { a: 10, b: 10 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 11, email: "m@x" } where name = "Ann"')
    run(graph, "s", 'update Sheet set { a: 5 } where name = "s1"')
    run(graph, "main", 'update Sheet set { b: 6 } where name = "s1"')
    run(graph, "s", 'delete Knows where from = "Ben"')
    run(graph, "main", 'update Knows set { note: "m" } where from = "Ben"')
    put(graph, "s", node("Person", "Dan", a=4))
    run(graph, "main", delete("Person", "Dan"))


ALL = {
    ("divergent_insert", "Person", "Eve"),
    ("divergent_update", "Person", "Ann"),
    ("divergent_update", "Sheet", "s1"),
    ("delete_vs_update", "Knows", "k1"),
    ("delete_vs_update", "Person", "Dan"),
    ("divergent_insert", "Knows", "k2"),
}


# -- taking a side -------------------------------------------------------------------------------


def test_the_source_wins_everywhere(graph: og.Graph) -> None:
    conflicts_of_every_kind(graph)
    # k2 leads to Dan, who comes back.
    result = merged_as_foretold(graph, "s", resolve="source")
    assert set(kinds(found for found, _ in result.resolved)) == ALL
    assert {side for _, side in result.resolved} == {"source"}
    assert result.conflicts == ()
    people = rows_of(graph, "Person")
    # What only the target changed stays.
    ann = {key: people["Ann"][key] for key in ("a", "b", "email")}
    assert ann == {"a": 10, "b": 10, "email": "m@x"}
    assert (people["Eve"]["a"], people["Eve"]["b"]) == (5, None)
    assert people["Dan"] == rows_of(graph, "Person", "s")["Dan"]
    assert rows_of(graph, "Sheet")["s1"] == {"name": "s1", "a": 5, "b": 1}
    assert rows_of(graph, "Knows") == {"k2": {"from": "Ann", "to": "Dan", "note": "s"}}


def test_the_target_wins_everywhere(graph: og.Graph) -> None:
    conflicts_of_every_kind(graph)
    before = content(graph)
    result = merged_as_foretold(graph, "s", resolve="target")
    assert set(kinds(found for found, _ in result.resolved)) == ALL
    assert {side for _, side in result.resolved} == {"target"}
    # All but what only the source changed.
    (changed,) = [line for line in content(graph) if line not in before]
    assert (changed["data"]["name"], changed["data"]["a"], changed["data"]["b"]) == ("Ann", 11, 10)


def test_sides_by_kind(graph: og.Graph) -> None:
    conflicts_of_every_kind(graph)
    put(graph, "s", edge("Knows", "k3", "Cat", "Dan"))
    wanted = {
        "divergent_insert": "target",
        "divergent_update": "source",
        "delete_vs_update": "target",
        "orphan_edge": "target",
    }
    result = merged_as_foretold(graph, "s", resolve=wanted)
    assert {found.kind: side for found, side in result.resolved} == wanted
    people = rows_of(graph, "Person")
    assert (people["Eve"]["a"], people["Eve"]["b"]) == (None, 6)
    assert people["Ann"]["a"] == 10
    assert "Dan" not in people
    assert rows_of(graph, "Knows") == {
        "k1": {"from": "Ben", "to": "Cat", "note": "m"},
        "k2": {"from": "Ann", "to": "Cat", "note": None},
    }


def test_kinds_that_are_not_named_stand(graph: og.Graph) -> None:
    conflicts_of_every_kind(graph)
    found = refused(graph, "s", resolve={"divergent_update": "source", "Knows:k1": "target"})
    assert set(kinds(found)) == {
        ("divergent_insert", "Person", "Eve"),
        ("divergent_insert", "Knows", "k2"),
        ("delete_vs_update", "Person", "Dan"),
    }


def test_an_entity_wins_over_its_kind(graph: og.Graph) -> None:
    for name in ("Ann", "Ben", "Cat"):
        run(graph, "s", update("Person", name, a=10))
        run(graph, "main", update("Person", name, a=11))
    put(graph, "s", node("Person", "Eve", a=10))
    put(graph, "main", node("Person", "Eve", a=11))
    merged_as_foretold(
        graph,
        "s",
        resolve={
            "Person:Ben": "target",
            "node:Person:Eve": "source",
            "divergent_update": "source",
            "divergent_insert": "target",
        },
    )
    found = {name: row["a"] for name, row in rows_of(graph, "Person").items()}
    assert found == {"Ann": 10, "Ben": 11, "Cat": 10, "Dan": None, "Eve": 10}


def test_all_properties_of_an_entity_go_one_way(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { a: 10, b: 10 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 11, b: 11, email: null } where name = "Ann"')
    merged_as_foretold(graph, "s", resolve={"Person:Ann": "source"})
    found = rows_of(graph, "Person")["Ann"]
    assert (found["a"], found["b"], found["email"], found["photo"]) == (10, 10, None, "base64:YW5u")


def test_a_resolution_that_nothing_needs(graph: og.Graph) -> None:
    """A side for kinds is a rule; it may find nothing to rule over."""
    put(graph, "s", node("Person", "Eve"))
    put(graph, "main", node("Person", "Fay"))
    assert graph.branches.merge("s", resolve={"orphan_edge": "source"}).resolved == ()
    assert graph.branches.merge("s", resolve="target").outcome == "already_up_to_date"


@pytest.mark.parametrize(
    ("resolve", "text"),
    [
        ("mine", r"source \(theirs\) or target \(ours\), not to 'mine'"),
        ({"divergent_update": "mine"}, r"target \(ours\), not to 'mine'"),
        ({"Person:Ann": ""}, r"target \(ours\), not to ''"),
        ({"divergent_updates": "source"}, "no kind of conflict 'divergent_updates'"),
        ({"Ann": "source"}, "Ann is in no conflict"),
        ({"Person.a": "source"}, "Person.a is in no conflict"),
        ({"Persons:Ann": "source"}, "no type Persons"),
        ({"edge:Person:Ann": "source"}, "no type edge"),
        ({"unique_violation": "source"}, "a unique_violation cannot be resolved"),
        ({"cardinality_violation": "target"}, "a cardinality_violation cannot be resolved"),
        ({"value_constraint_violation": "target"}, "cannot be resolved by taking a side"),
        ({"Person:Ben": "source"}, "Person:Ben is in no conflict"),
        ({"Person:ann": "source"}, "Person:ann is in no conflict"),
        ({"Person:Ann": "source", "Knows:k1": "source"}, "Knows:k1 is in no conflict"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_cannot_be_asked_for(
    graph: og.Graph, resolve: Resolve, text: str, *, dry_run: bool
) -> None:
    run(graph, "s", 'update Person set { a: 10 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 11 } where name = "Ann"')
    with unchanged(graph), pytest.raises(BadRequest, match=text):
        graph.branches.merge("s", resolve=resolve, dry_run=dry_run)


def test_an_entity_in_no_conflict_is_refused_for_a_fast_forward_too(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { a: 10 } where name = "Ann"')
    with unchanged(graph), pytest.raises(BadRequest, match="Person:Ann is in no conflict"):
        graph.branches.merge("s", resolve={"Person:Ann": "source"})


def test_what_breaks_a_rule_stands_whatever_is_resolved(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve", email="e@x"), edge("Owns", "o2", "Ben", "Brell"))
    put(graph, "main", node("Person", "Fay", email="e@x"), edge("Owns", "o3", "Ben", "Brell"))
    for resolve in ("source", "target"):
        found = refused(graph, "s", resolve=resolve)
        assert [each.kind for each in found] == ["cardinality_violation", "unique_violation"]
    holder = found[1].entity_id
    assert [each.kind for each in refused(graph, "s", resolve={f"Person:{holder}": "source"})] == [
        "cardinality_violation",
        "unique_violation",
    ]


# -- edges without an end ------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["taken", "merged"])
@pytest.mark.parametrize("winner", ["source", "target"])
@pytest.mark.parametrize("deleted_by", ["source", "target"])
def test_an_edge_without_an_end(graph: og.Graph, deleted_by: str, winner: str, how: str) -> None:
    """Two edges to one node, and one whose both ends are that node."""
    deleter, linker = ("s", "main") if deleted_by == "source" else ("main", "s")
    edges = {
        "n1": {"from": "Cat", "to": "Dan", "note": "1"},
        "n2": {"from": "Dan", "to": "Cat", "note": "2"},
        "n3": {"from": "Dan", "to": "Dan", "note": "3"},
    }
    base = {"k1": {"from": "Ben", "to": "Cat", "note": None}}
    run(graph, deleter, delete("Person", "Dan"))
    put(
        graph,
        linker,
        *(edge("Knows", id_, e["from"], e["to"], note=e["note"]) for id_, e in edges.items()),
    )
    extra_edges: dict[str, Line] = {}
    extra_people: set[str] = set()
    if how == "merged":
        put(graph, deleter, edge("Knows", "x", "Cat", "Ben"))
        put(graph, linker, node("Person", "Zoe"))
        extra_edges = {"x": {"from": "Cat", "to": "Ben", "note": None}}
        extra_people = {"Zoe"}
    dan = rows_of(graph, "Person", linker)["Dan"]
    assert {found.kind for found in refused(graph, "s")} == {"orphan_edge"}
    result = merged_as_foretold(graph, "s", resolve={"orphan_edge": winner})
    assert sorted(kinds(found for found, _ in result.resolved)) == sorted(
        ("orphan_edge", "Knows", id_) for id_ in ("n1", "n2", "n3", "n3")
    )
    people = rows_of(graph, "Person")
    if winner == deleted_by:
        assert rows_of(graph, "Knows") == {**base, **extra_edges}
        assert people.keys() == {"Ann", "Ben", "Cat"} | extra_people
    else:
        assert rows_of(graph, "Knows") == {**base, **edges, **extra_edges}
        assert people.keys() == {"Ann", "Ben", "Cat", "Dan"} | extra_people
        assert people["Dan"] == dan
    # The graph goes on: who is there is there once, and can be written.
    run(graph, "main", 'update Person set { a: 99 } where name = "Cat"')
    run(graph, "main", 'delete Person where name = "Dan"')
    assert rows_of(graph, "Knows") == {**base, **extra_edges}
    assert graph.branches.merge("s").outcome == "already_up_to_date"


@pytest.mark.parametrize("deleted_by", ["source", "target"])
def test_edges_that_are_resolved_one_by_one(graph: og.Graph, deleted_by: str) -> None:
    deleter, linker = ("s", "main") if deleted_by == "source" else ("main", "s")
    keeper = "target" if deleted_by == "source" else "source"
    run(graph, deleter, delete("Person", "Dan"))
    put(graph, linker, *(edge("Knows", f"n{n}", "Cat", "Dan") for n in range(3)))
    put(graph, linker, edge("Visits", "v", "Dan", "Arda"))
    # One edge keeps the node, which saves those that nobody has decided about.
    resolve = {"Knows:n0": keeper, "Knows:n1": deleted_by}
    merged_as_foretold(graph, "s", resolve=resolve)
    assert rows_of(graph, "Knows").keys() == {"k1", "n0", "n2"}
    assert rows_of(graph, "Visits").keys() == {"v"}
    assert "Dan" in rows_of(graph, "Person")


@pytest.mark.parametrize("deleted_by", ["source", "target"])
@pytest.mark.parametrize("winner", ["source", "target"])
@pytest.mark.parametrize("how", ["taken", "merged"])
def test_an_edge_that_was_moved_to_a_deleted_node(
    graph: og.Graph, deleted_by: str, winner: str, how: str
) -> None:
    """The side that deleted the node has the edge where it was."""
    deleter, linker = ("s", "main") if deleted_by == "source" else ("main", "s")
    run(graph, deleter, delete("Person", "Dan"))
    put(graph, linker, edge("Knows", "k1", "Ben", "Dan", note="moved"))
    extra: dict[str, Line] = {}
    if how == "merged":
        put(graph, deleter, edge("Knows", "x", "Cat", "Ben"))
        extra = {"x": {"from": "Cat", "to": "Ben", "note": None}}
    merged_as_foretold(graph, "s", resolve=winner)
    moved = winner != deleted_by
    expected = {"from": "Ben", "to": "Dan" if moved else "Cat", "note": "moved" if moved else None}
    assert rows_of(graph, "Knows") == {**extra, "k1": expected}
    assert ("Dan" in rows_of(graph, "Person")) == moved


def test_both_sides_delete_an_end_of_one_edge_of_the_other(graph: og.Graph) -> None:
    run(graph, "s", delete("Person", "Ann"))
    put(graph, "s", edge("Knows", "s", "Cat", "Dan"))
    run(graph, "main", delete("Person", "Dan"))
    put(graph, "main", edge("Knows", "m", "Cat", "Ann"))
    merged_as_foretold(graph, "s", resolve="source")
    assert rows_of(graph, "Person").keys() == {"Ben", "Cat", "Dan"}
    assert rows_of(graph, "Knows").keys() == {"k1", "s"}


def test_a_deletion_that_wins_takes_the_edges_of_the_other_side(graph: og.Graph) -> None:
    run(graph, "s", delete("Person", "Dan"))
    run(graph, "main", 'update Person set { a: 4 } where name = "Dan"')
    put(graph, "main", edge("Knows", "k2", "Cat", "Dan"))
    found = refused(graph, "s", resolve={"delete_vs_update": "source"})
    assert kinds(found) == [("orphan_edge", "Knows", "k2")]
    merged_as_foretold(graph, "s", resolve="source")
    assert "Dan" not in rows_of(graph, "Person")
    assert rows_of(graph, "Knows").keys() == {"k1"}


def test_blobs_of_a_node_that_comes_back(graph: og.Graph) -> None:
    run(graph, "s", delete("Person", "Ann"), delete("Person", "Dan"))
    put(graph, "main", edge("Knows", "n1", "Cat", "Ann"), edge("Knows", "n2", "Cat", "Dan"))
    before = rows_of(graph, "Person")
    merged_as_foretold(graph, "s", resolve="target")
    assert rows_of(graph, "Person") == before
    assert (before["Ann"]["photo"], before["Dan"]["photo"]) == ("base64:YW5u", "base64:")


# -- resolutions that lead to other conflicts ----------------------------------------------------


@pytest.mark.parametrize("people", ["taken", "merged"])
def test_a_node_that_comes_back_may_hold_what_is_taken(graph: og.Graph, people: str) -> None:
    run(graph, "s", delete("Person", "Ann"))
    run(graph, "s", 'update Person set { email: "ann@x" } where name = "Ben"')
    put(graph, "main", edge("Knows", "n1", "Cat", "Ann"))
    if people == "merged":
        put(graph, "main", node("Person", "Zoe"))
    (found,) = refused(graph, "s", resolve="target")
    assert found.kind == "unique_violation"
    assert "'ann@x'" in found.message
    merged_as_foretold(graph, "s", resolve="source")
    assert rows_of(graph, "Person")["Ben"]["email"] == "ann@x"
    assert "Ann" not in rows_of(graph, "Person")


@pytest.mark.parametrize("deleted_by", ["source", "target"])
@pytest.mark.parametrize("why", ["orphan_edge", "delete_vs_update"])
def test_a_node_that_comes_back_may_lack_edges(graph: og.Graph, deleted_by: str, why: str) -> None:
    """Its edges went with it, and nobody has asked for them."""
    deleter, keeper = ("s", "main") if deleted_by == "source" else ("main", "s")
    run(graph, deleter, delete("Person", "Ben"))
    if why == "orphan_edge":
        put(graph, keeper, edge("Knows", "n1", "Cat", "Ben"))
    else:
        run(graph, keeper, 'update Person set { a: 7 } where name = "Ben"')
    winner = "target" if deleted_by == "source" else "source"
    (found,) = refused(graph, "s", resolve={why: winner})
    assert found.message == "@card violation on edge Owns: source 'Ben' has 0 edges (min 1)"
    merged_as_foretold(graph, "s", resolve={why: deleted_by})
    assert rows_of(graph, "Person").keys() == {"Ann", "Cat", "Dan"}


def test_an_edge_that_is_given_up_may_have_been_needed(graph: og.Graph) -> None:
    """The source has moved the one edge that Ben must have to a place that the target deleted."""
    put(graph, "s", edge("Owns", "o2", "Ben", "Brell"))
    run(graph, "s", 'delete Owns where from = "Ben" and to = "Arda"')
    run(graph, "main", delete("Place", "Brell"))
    assert kinds(refused(graph, "s")) == [("orphan_edge", "Owns", "o2")]
    (found,) = refused(graph, "s", resolve="target")
    assert found.message == "@card violation on edge Owns: source 'Ben' has 0 edges (min 1)"
    merged_as_foretold(graph, "s", resolve="source")
    assert rows_of(graph, "Owns").keys() == {"o2"}
    assert rows_of(graph, "Place").keys() == {"Arda", "Brell"}


def test_a_row_that_wins_may_break_a_rule(graph: og.Graph) -> None:
    run(graph, "s", delete("Person", "Ann"))
    put(graph, "s", node("Person", "Eve", email="ann@x"))
    run(graph, "main", 'update Person set { a: 9 } where name = "Ann"')
    (found,) = refused(graph, "s", resolve="target")
    assert (found.kind, found.property) == ("unique_violation", "email")
    merged_as_foretold(graph, "s", resolve="source")
    assert rows_of(graph, "Person")["Eve"]["email"] == "ann@x"


# -- runs that change nothing --------------------------------------------------------------------


def test_a_dry_run_changes_no_byte(graph: og.Graph) -> None:
    conflicts_of_every_kind(graph)
    put(graph, "s", node("Place", "Cove"))
    root = Path(graph.location.path)
    before = files(root)
    found = graph.branches.merge("s", dry_run=True, delete_source=True, actor="me")
    assert (found.is_dry_run, found.commit, found.outcome) == (True, None, "merged")
    assert (found.branch_deleted, found.branch_delete_error) == (None, None)
    assert set(kinds(found.conflicts)) == ALL
    resolved = graph.branches.merge("s", dry_run=True, resolve="source")
    assert (resolved.conflicts, len(resolved.resolved)) == ((), len(ALL))
    reading = og.open(root, read_only=True)
    assert reading.branches.merge("s", dry_run=True).counts == found.counts
    assert files(root) == before


def test_a_graph_that_is_open_to_be_read_is_not_merged(graph: og.Graph) -> None:
    put(graph, "s", node("Place", "Cove"))
    reading = og.open(graph.location.path, read_only=True)
    with unchanged(graph), pytest.raises(BadRequest, match="read-only"):
        reading.branches.merge("s")


def test_a_dry_run_counts_what_happens(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve"), node("Person", "Fay"), node("Place", "Cove"))
    run(graph, "s", 'update Person set { a: 5 } where name = "Ann"')
    run(graph, "s", 'update Person set { a: 5 } where name = "Dan"', delete("Person", "Ben"))
    run(graph, "main", 'update Person set { b: 5 } where name = "Ann"')
    put(graph, "main", node("Person", "Eve"))
    found = graph.branches.merge("s", dry_run=True)
    counts = {
        key: (each.inserted, each.updated, each.deleted, each.combined)
        for key, each in found.counts.items()
    }
    assert counts == {
        "edge:Knows": (0, 0, 1, 0),
        "edge:Owns": (0, 0, 1, 0),
        "node:Person": (1, 2, 1, 1),
        "node:Place": (1, 0, 0, 0),
    }
    merged_as_foretold(graph, "s")


@pytest.mark.parametrize(
    ("prepare", "outcome"), [("nothing", "already_up_to_date"), ("source", "fast_forward")]
)
def test_a_dry_run_tells_the_outcome(graph: og.Graph, prepare: str, outcome: str) -> None:
    if prepare == "source":
        put(graph, "s", node("Place", "Cove"))
    found = graph.branches.merge("s", dry_run=True)
    assert (found.outcome, found.source, found.target) == (outcome, "s", "main")
    assert found.base_commit_id == graph.snapshot().commit_id
    assert merged_as_foretold(graph, "s").outcome == outcome


def test_what_a_merge_reports(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { a: 5 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 6 } where name = "Ann"')
    result = graph.branches.merge(" s ", "main", resolve="source", actor="ann", delete_source=True)
    assert (result.source, result.target, result.actor, result.outcome) == (
        "s",
        "main",
        "ann",
        "merged",
    )
    assert result.commit is not None
    assert result.commit == graph.commits.get(result.commit.id)
    assert (result.commit.actor, result.commit.branch) == ("ann", None)
    metadata: dict[str, Any] = dict(result.commit.metadata)
    assert (metadata["operation"], metadata["source"]) == ("merge", "s")
    assert (result.branch_deleted, result.branch_delete_error) == (True, None)
    assert result.is_dry_run is False
    assert graph.branches.list() == ["main"]
