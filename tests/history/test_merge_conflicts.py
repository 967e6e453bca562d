"""Conflicts: every kind with its values, told all at once, and nothing that is none."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from tests.film_graph import files
from tests.history.merging import (
    Told,
    content,
    copy_of,
    delete,
    edge,
    in_order,
    kinds,
    merged_as_foretold,
    node,
    put,
    refused,
    rows_of,
    run,
    told,
    update,
)
from tests.write.writing import compact_all, index_all

pytestmark = pytest.mark.slow

SCHEMA = """
node Person {
    name: String @key
    a: I32?
    email: String? @unique
    room: String?
    desk: I32?
    @unique(room, desk)
}
node Place { name: String @key  size: I32? }
edge Knows: Person -> Person { note: String? }
edge Owns: Person -> Place @card(1..2)
edge Lives: Person -> Place { since: Date?  @unique(src, dst) }
"""

VALUES = """
node Item {
    name: String @key
    text: String?
    yes: Bool?
    i32: I32?
    i64: I64?
    u64: U64?
    f32: F32?
    f64: F64?
    day: Date?
    moment: DateTime?
    texts: [String]?
    numbers: [F64]?
    vector: Vector(3)?
    blob: Blob?
}
"""


def blob(data: bytes) -> str:
    return "base64:" + b64encode(data).decode()


WIDE = "wide — ünïcode 🛠 " * 4_000
# Per property: what the base has, and three other values.
SAMPLES: dict[str, tuple[Any, Any, Any, Any]] = {
    "text": ("old", WIDE, WIDE + ".", ""),
    "yes": (True, False, None, None),
    "i32": (1, -(2**31), 2**31 - 1, 0),
    "i64": (1, -(2**63), 2**63 - 1, 0),
    "u64": (1, 2**64 - 1, 2**64 - 2, 0),
    "f32": (1.0, 0.0, -0.0, 0.1),
    "f64": (1.0, -0.0, 0.0, 5e-324),
    "day": ("2024-01-01", "1969-12-31", "9999-12-31", "2024-02-29"),
    "moment": (
        "2024-01-01T00:00:00Z",
        "2024-01-01T00:00:00.001Z",
        "1969-12-31T23:59:59.999Z",
        "2024-01-02T00:00:00Z",
    ),
    "texts": (["a", "b"], ["b", "a"], [], ["a"]),
    "numbers": ([0.0], [-0.0], [0.0, 0.0], []),
    "vector": ([1.0, 0.0, 0.0], [1.0, -0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.5]),
    "blob": (blob(b"old"), blob(b""), blob(b"new"), blob(bytes(5_000))),
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with a branch `s` of its only state."""
    root = tmp_path_factory.mktemp("people") / "graph"
    graph = og.init(root, SCHEMA)
    put(
        graph,
        "main",
        node("Person", "Ann", a=1, email="ann@x", room="r1", desk=1),
        node("Person", "Ben", a=2, email="ben@x", room="r2", desk=2),
        node("Person", "Cat", room="r3", desk=3),
        node("Person", "Dan"),
        node("Place", "Arda"),
        node("Place", "Brell"),
        node("Place", "Cove"),
        edge("Knows", "k1", "Ben", "Cat"),
        edge("Owns", "o1", "Ben", "Arda"),
        edge("Owns", "o2", "Ben", "Brell"),
        edge("Owns", "o3", "Cat", "Arda"),
    )
    graph.branches.create("s")
    return root


@pytest.fixture
def graph(people: Path, tmp_path: Path) -> og.Graph:
    return copy_of(people, tmp_path / "graph")


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with one row per property, which has a value for that one."""
    root = tmp_path_factory.mktemp("items") / "graph"
    graph = og.init(root, VALUES)
    put(graph, "main", *(node("Item", name, **{name: found[0]}) for name, found in SAMPLES.items()))
    graph.branches.create("s")
    return root


@pytest.fixture
def values(items: Path, tmp_path: Path) -> og.Graph:
    return copy_of(items, tmp_path / "graph")


def sample(graph: og.Graph, branch: str, number: int) -> None:
    """Give every row another value, by number; None for null."""
    for_all = {name: found[number] for name, found in SAMPLES.items()}
    put(graph, branch, *(node("Item", name, **{name: value}) for name, value in for_all.items()))


# -- rows ----------------------------------------------------------------------------------------


def test_each_kind_of_row_conflict_says_what_the_sides_have(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve", a=5), edge("Knows", "k2", "Ann", "Dan", note="s"))
    put(graph, "main", node("Person", "Eve", a=6), edge("Knows", "k2", "Ann", "Cat"))
    run(graph, "s", 'update Person set { a: 10 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 11 } where name = "Ann"')
    run(graph, "s", delete("Person", "Dan"))
    run(graph, "main", 'update Person set { a: 4 } where name = "Dan"')
    run(graph, "s", 'update Knows set { note: "x" } where from = "Ben"')
    run(graph, "main", 'delete Knows where from = "Ben"')
    empty = dict.fromkeys(("email", "room", "desk"))
    found = refused(graph, "s")
    assert told(found) == in_order(
        [
            (
                "divergent_insert",
                "Person",
                "Eve",
                None,
                None,
                {"name": "Eve", "a": 5, **empty},
                {"name": "Eve", "a": 6, **empty},
            ),
            ("divergent_update", "Person", "Ann", "a", 1, 10, 11),
            (
                "delete_vs_update",
                "Person",
                "Dan",
                None,
                {"name": "Dan", "a": None, **empty},
                None,
                {"name": "Dan", "a": 4, **empty},
            ),
            (
                "delete_vs_update",
                "Knows",
                "k1",
                None,
                {"from": "Ben", "to": "Cat", "note": None},
                {"from": "Ben", "to": "Cat", "note": "x"},
                None,
            ),
        ]
    )
    texts = {(each.kind, each.entity_id): each.message for each in found}
    assert texts["divergent_insert", "Eve"] == "divergent insert for id 'Eve'"
    assert texts["divergent_update", "Ann"] == "divergent update for id 'Ann', property 'a'"
    assert texts["delete_vs_update", "Dan"] == "delete/update conflict for id 'Dan'"
    assert {each.entity_kind for each in found if each.type_name == "Person"} == {"node"}
    assert {each.entity_kind for each in found if each.type_name == "Knows"} == {"edge"}


def test_two_edges_of_one_id_that_differ_are_a_divergent_insert(graph: og.Graph) -> None:
    put(graph, "s", edge("Knows", "k2", "Ann", "Dan", note="s"))
    put(graph, "main", edge("Knows", "k2", "Ann", "Cat"))
    (found,) = told(refused(graph, "s"))
    theirs = {"from": "Ann", "to": "Dan", "note": "s"}
    ours = {"from": "Ann", "to": "Cat", "note": None}
    assert found == ("divergent_insert", "Knows", "k2", None, None, theirs, ours)


def test_the_ends_of_an_edge_are_properties(graph: og.Graph) -> None:
    put(graph, "s", edge("Knows", "k1", "Ben", "Ann"))
    put(graph, "main", edge("Knows", "k1", "Ben", "Dan"))
    assert told(refused(graph, "s")) == [
        ("divergent_update", "Knows", "k1", "to", "Cat", "Ann", "Dan")
    ]


def test_several_properties_of_one_row_are_told_each(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { a: 5, email: "s@x", room: "s" } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 6, email: "m@x", desk: 9 } where name = "Ann"')
    expected: list[Told] = [
        ("divergent_update", "Person", "Ann", "a", 1, 5, 6),
        ("divergent_update", "Person", "Ann", "email", "ann@x", "s@x", "m@x"),
    ]
    assert told(refused(graph, "s")) == in_order(expected)


def test_everything_is_told_at_once_and_nothing_is_published(graph: og.Graph) -> None:
    put(graph, "s", node("Place", "Dale", size=1), node("Person", "Eve", email="e@x"))
    put(graph, "main", node("Place", "Dale", size=2), node("Person", "Fay", email="e@x"))
    run(graph, "s", 'update Person set { a: 10 } where name = "Ann"', delete("Person", "Dan"))
    run(graph, "main", 'update Person set { a: 11 } where name = "Ann"')
    run(graph, "main", 'insert Knows { from: "Ann", to: "Dan" }')
    run(graph, "s", 'delete Owns where to = "Arda" and from = "Ben"')
    run(graph, "main", 'delete Owns where to = "Brell"')
    before = files(Path(graph.location.path) / "__manifest")
    found = refused(graph, "s")
    assert files(Path(graph.location.path) / "__manifest") == before
    assert {(each.kind, each.type_name) for each in found} == {
        ("divergent_insert", "Place"),
        ("divergent_update", "Person"),
        ("orphan_edge", "Knows"),
        ("unique_violation", "Person"),
        ("cardinality_violation", "Owns"),
    }
    assert len(found) == 5
    with pytest.raises(MergeConflicts) as caught:
        graph.branches.merge("s")
    assert caught.value.details == {"count": 5}
    assert caught.value.code == "merge_conflicts"


# -- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), [(1, 2), (2, 1), (1, 3)])
def test_values_that_both_sides_set_differently(values: og.Graph, one: int, other: int) -> None:
    base = rows_of(values, "Item")
    sample(values, "s", one)
    sample(values, "main", other)
    source, target = rows_of(values, "Item", "s"), rows_of(values, "Item")
    expected: list[Told] = [
        ("divergent_update", "Item", name, name, *(side[name][name] for side in sides))
        for sides in [(base, source, target)]
        for name, found in SAMPLES.items()
        if json.dumps(found[one]) != json.dumps(found[other])
    ]
    assert len(expected) == len(SAMPLES)
    assert repr(told(refused(values, "s"))) == repr(in_order(expected))


def test_values_that_both_sides_set_alike(values: og.Graph) -> None:
    sample(values, "s", 1)
    sample(values, "main", 1)
    before = content(values)
    assert merged_as_foretold(values, "s").outcome == "merged"
    assert repr(content(values)) == repr(before)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_values_that_are_set_and_set_back_are_no_change(values: og.Graph, number: int) -> None:
    sample(values, "s", 1)
    sample(values, "s", 0)
    sample(values, "main", number)
    before = content(values)
    assert merged_as_foretold(values, "s").outcome == "merged"
    assert repr(content(values)) == repr(before)
    # The other way round as well.
    merged_as_foretold(values, "main", "s")
    assert repr(content(values, "s")) == repr(before)


def test_null_is_a_value_like_others(values: og.Graph) -> None:
    put(values, "s", *(node("Item", name) for name in SAMPLES))
    sample(values, "main", 1)
    found = {each.entity_id: each for each in refused(values, "s")}
    assert found.keys() == SAMPLES.keys()
    for name, each in found.items():
        assert (each.property, each.source) == (name, None)
        assert repr(each.target) == repr(rows_of(values, "Item")[name][name])
    # Nothing against null, and null against nothing.
    values.branches.create("t", "s")
    put(values, "t", node("Item", "added"))
    merged_as_foretold(values, "s", "t")
    assert {row[name] for name, row in rows_of(values, "Item", "t").items() if name in row} == {
        None
    }


def test_different_properties_are_combined_whatever_their_types(values: og.Graph) -> None:
    names = list(SAMPLES)
    put(values, "main", node("Item", "all", **{name: SAMPLES[name][0] for name in names}))
    values.branches.create("other")
    changed = {name: SAMPLES[name][1 if place % 2 else 2] for place, name in enumerate(names)}
    base = {name: SAMPLES[name][0] for name in names}
    ours = {name: changed[name] if place % 2 else base[name] for place, name in enumerate(names)}
    theirs = {name: base[name] if place % 2 else changed[name] for place, name in enumerate(names)}
    put(values, "main", node("Item", "all", **ours))
    put(values, "other", node("Item", "all", **theirs))
    foretold = values.branches.merge("other", dry_run=True)
    assert foretold.counts["node:Item"].combined == 1
    merged_as_foretold(values, "other")
    values.branches.create("expected")
    put(values, "expected", node("Item", "all", **changed))
    assert repr(content(values)) == repr(content(values, "expected"))


def test_vectors_and_lists_are_combined_with_nulls_beside_them(values: og.Graph) -> None:
    rows = [node("Item", f"v{number}", vector=[number, 0, 0]) for number in range(5)]
    put(values, "main", *rows)
    values.branches.create("other")
    put(values, "main", *(node("Item", f"v{n}", vector=[n, 0, 0], i32=n) for n in range(5)))
    put(
        values,
        "other",
        node("Item", "v0"),
        node("Item", "v1", vector=[9, 9, 9]),
        node("Item", "v2"),
        node("Item", "v3", vector=[3, 0, 0], texts=["x", "y"]),
        node("Item", "v4", vector=[4, 0, 0], texts=[]),
    )
    merged_as_foretold(values, "other")
    found = rows_of(values, "Item")
    shown = {
        name: (found[name]["vector"], found[name]["texts"]) for name in found if name[0] == "v"
    }
    shown.pop("vector")
    assert shown == {
        "v0": (None, None),
        "v1": ([9.0, 9.0, 9.0], None),
        "v2": (None, None),
        "v3": ([3.0, 0.0, 0.0], ["x", "y"]),
        "v4": ([4.0, 0.0, 0.0], []),
    }
    assert [found[f"v{number}"]["i32"] for number in range(5)] == [0, 1, 2, 3, 4]


# -- uniqueness ----------------------------------------------------------------------------------


def test_two_sides_that_take_one_unique_value(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve", email="new@x"))
    run(graph, "main", 'update Person set { email: "new@x" } where name = "Dan"')
    (found,) = refused(graph, "s")
    assert kinds([found])[0][:2] == ("unique_violation", "Person")
    assert found.property == "email"
    assert found.message.startswith("@unique violation on Person.email: value 'new@x' held by ")
    assert {name for name in ("Eve", "Dan", "Ann") if f"'{name}'" in found.message} == {
        "Eve",
        "Dan",
    }


def test_a_unique_value_may_move_on_one_side(graph: og.Graph) -> None:
    run(
        graph,
        "s",
        'update Person set { email: null } where name = "Ann"',
        'update Person set { email: "ann@x" } where name = "Ben"',
    )
    run(graph, "main", 'update Person set { a: 9 } where name = "Ann"')
    merged_as_foretold(graph, "s")
    found = rows_of(graph, "Person")
    assert (found["Ann"]["email"], found["Ben"]["email"], found["Ann"]["a"]) == (None, "ann@x", 9)


def test_a_unique_value_that_one_side_frees_is_not_free_for_the_other(graph: og.Graph) -> None:
    """Each side is right by itself: the one frees what the other never could take."""
    run(graph, "s", delete("Person", "Ann"))
    put(graph, "main", node("Person", "Ann", email="other@x"), node("Person", "Eve", email="ann@x"))
    assert kinds(refused(graph, "s")) == [("delete_vs_update", "Person", "Ann")]


def test_composite_values_of_both_sides(graph: og.Graph) -> None:
    put(graph, "s", node("Person", "Eve", room="r9", desk=9))
    put(graph, "main", node("Person", "Fay", room="r9", desk=9))
    (found,) = refused(graph, "s")
    assert (found.kind, found.type_name, found.property) == ("unique_violation", "Person", "desk")
    assert "(desk, room): value '(9, r9)'" in found.message


def test_a_composite_that_mixes_both_sides_meets_a_row_that_nobody_touched(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { room: "r3" } where name = "Ann"')
    run(graph, "main", 'update Person set { desk: 3 } where name = "Ann"')
    (found,) = refused(graph, "s")
    assert found.kind == "unique_violation"
    assert "'(3, r3)'" in found.message
    assert "'Cat'" in found.message
    assert "'Ann'" in found.message


def test_two_composites_that_mix_both_sides_are_told_once(graph: og.Graph) -> None:
    for name in ("Ann", "Ben"):
        put(graph, "main", node("Person", f"{name}2", room=f"{name}2", desk=int(name == "Ann")))
    graph.branches.create("t")
    for name in ("Ann", "Ben"):
        run(graph, "t", update("Person", f"{name}2", room="r9"))
        run(graph, "main", update("Person", f"{name}2", desk=9))
    (found,) = refused(graph, "t")
    assert found.kind == "unique_violation"
    assert "'(9, r9)'" in found.message


def test_a_composite_with_a_null_is_exempt(graph: og.Graph) -> None:
    run(graph, "s", 'update Person set { room: "r3" } where name = "Dan"')
    run(graph, "main", 'update Person set { a: 7 } where name = "Dan"')
    put(graph, "main", node("Person", "Eve", room="r3"))
    merged_as_foretold(graph, "s")
    found = rows_of(graph, "Person")
    assert [found[name]["room"] for name in ("Cat", "Dan", "Eve")] == ["r3"] * 3


def test_edges_that_are_unique_by_their_ends(graph: og.Graph) -> None:
    put(graph, "s", edge("Lives", "l1", "Ann", "Arda"))
    put(graph, "main", edge("Lives", "l2", "Ann", "Arda"))
    (found,) = refused(graph, "s")
    assert (found.kind, found.type_name) == ("unique_violation", "Lives")
    assert "'(Arda, Ann)'" in found.message
    assert "'l1'" in found.message
    assert "'l2'" in found.message


# -- cardinality ---------------------------------------------------------------------------------


def test_too_many_edges_of_a_source_that_both_sides_touched(graph: og.Graph) -> None:
    put(graph, "s", edge("Owns", "o4", "Cat", "Brell"), edge("Owns", "o5", "Dan", "Arda"))
    put(graph, "main", edge("Owns", "o6", "Cat", "Cove"), edge("Owns", "o7", "Dan", "Cove"))
    (found,) = refused(graph, "s")
    assert (found.kind, found.entity_kind) == ("cardinality_violation", "edge")
    assert (found.type_name, found.entity_id, found.property) == ("Owns", "Cat", "from")
    assert found.message == "@card violation on edge Owns: source 'Cat' has 3 edges (max 2)"


def test_too_few_edges_of_a_source_that_both_sides_touched(graph: og.Graph) -> None:
    run(graph, "s", delete("Place", "Brell"))
    run(graph, "main", 'delete Owns where from = "Ben" and to = "Arda"')
    (found,) = refused(graph, "s")
    assert (found.kind, found.entity_id) == ("cardinality_violation", "Ben")
    assert found.message == "@card violation on edge Owns: source 'Ben' has 0 edges (min 1)"


def test_a_source_that_goes_needs_no_edges(graph: og.Graph) -> None:
    run(graph, "s", 'delete Owns where from = "Ben" and to = "Arda"', delete("Person", "Ben"))
    run(graph, "main", 'delete Owns where from = "Ben" and to = "Brell"')
    merged_as_foretold(graph, "s")
    assert rows_of(graph, "Owns").keys() == {"o3"}


def test_an_edge_each_for_the_two_that_are_allowed(graph: og.Graph) -> None:
    put(graph, "s", edge("Owns", "o4", "Dan", "Arda"))
    put(graph, "main", edge("Owns", "o5", "Dan", "Brell"))
    merged_as_foretold(graph, "s")
    assert rows_of(graph, "Owns").keys() == {"o1", "o2", "o3", "o4", "o5"}


def test_an_edge_moved_by_one_side_and_removed_by_the_other_from_its_source(
    graph: og.Graph,
) -> None:
    put(graph, "s", edge("Owns", "o1", "Dan", "Arda"))
    run(graph, "main", 'delete Owns where from = "Ben" and to = "Brell"')
    (found,) = refused(graph, "s")
    assert found.message == "@card violation on edge Owns: source 'Ben' has 0 edges (min 1)"


# -- edges without an end ------------------------------------------------------------------------


@pytest.mark.parametrize("deleted_by", ["source", "target"])
def test_edges_without_an_end(graph: og.Graph, deleted_by: str) -> None:
    deleter, linker = ("s", "main") if deleted_by == "source" else ("main", "s")
    run(graph, deleter, delete("Person", "Dan"))
    put(
        graph,
        linker,
        edge("Knows", "k2", "Dan", "Ann"),
        edge("Knows", "k3", "Ann", "Dan"),
        edge("Knows", "k4", "Dan", "Dan"),
        edge("Lives", "l1", "Dan", "Arda"),
        edge("Knows", "fine", "Ann", "Ben"),
    )
    found = refused(graph, "s")
    held = (None, "Dan") if deleted_by == "source" else ("Dan", None)
    expected: list[Told] = [
        ("orphan_edge", "Knows", "k2", "from", "Dan", *held),
        ("orphan_edge", "Knows", "k3", "to", "Dan", *held),
        ("orphan_edge", "Knows", "k4", "from", "Dan", *held),
        ("orphan_edge", "Knows", "k4", "to", "Dan", *held),
        ("orphan_edge", "Lives", "l1", "from", "Dan", *held),
    ]
    assert told(found) == in_order(expected)
    assert found[0].message == f"src 'Dan' not found in Person: the {deleted_by} deleted it"


def test_an_edge_that_mixes_both_sides_may_lack_an_end(graph: og.Graph) -> None:
    """The source moves one end and deletes a node; the target moves the other end to it."""
    put(graph, "s", edge("Knows", "k1", "Ann", "Cat"))
    run(graph, "s", delete("Person", "Dan"))
    put(graph, "main", edge("Knows", "k1", "Ben", "Dan"))
    assert told(refused(graph, "s")) == [
        ("orphan_edge", "Knows", "k1", "to", "Dan", None, "Dan"),
    ]


def test_an_edge_moved_to_a_node_that_the_other_side_deleted(graph: og.Graph) -> None:
    put(graph, "s", edge("Knows", "k1", "Ben", "Dan"))
    run(graph, "main", delete("Person", "Dan"))
    assert told(refused(graph, "s")) == [("orphan_edge", "Knows", "k1", "to", "Dan", "Dan", None)]


def test_a_node_deleted_and_inserted_again_is_there(graph: og.Graph) -> None:
    run(graph, "s", delete("Person", "Dan"), 'insert Person { name: "Dan" }')
    put(graph, "main", edge("Knows", "k2", "Dan", "Ann"))
    merged_as_foretold(graph, "s")
    assert rows_of(graph, "Knows").keys() == {"k1", "k2"}


# -- what is no conflict -------------------------------------------------------------------------


def test_churn_that_comes_to_nothing_never_conflicts(graph: og.Graph) -> None:
    run(
        graph,
        "s",
        'update Person set { a: 5 } where name = "Ann"',
        'update Person set { a: 1 } where name = "Ann"',
        'insert Person { name: "Eve" }',
        delete("Person", "Eve"),
        delete("Person", "Dan"),
        'insert Person { name: "Dan" }',
    )
    put(graph, "s", edge("Knows", "k9", "Ann", "Dan"))
    run(graph, "s", 'delete Knows where from = "Ann"')
    run(graph, "main", 'update Person set { a: 6 } where name = "Ann"')
    run(graph, "main", 'update Person set { a: 6 } where name = "Dan"')
    put(graph, "main", node("Person", "Eve", a=1), edge("Knows", "k9", "Dan", "Ann"))
    before = content(graph)
    result = merged_as_foretold(graph, "s")
    assert (result.outcome, result.commit is None) == ("merged", False)
    assert content(graph) == before


def test_the_same_rows_on_both_sides_are_no_conflict(graph: og.Graph) -> None:
    rows = (node("Person", "Eve", a=5, email="e@x"), edge("Knows", "k2", "Eve", "Ann", note="n"))
    put(graph, "s", *rows)
    put(graph, "main", *rows)
    run(graph, "s", delete("Person", "Cat"))
    run(graph, "main", delete("Person", "Cat"))
    before = content(graph)
    assert merged_as_foretold(graph, "s").outcome == "merged"
    assert content(graph) == before


def test_edges_with_the_same_ends_on_both_sides_are_two(graph: og.Graph) -> None:
    for branch in ("s", "main"):
        run(graph, branch, 'insert Knows { from: "Ann", to: "Ben", note: "same" }')
    merged_as_foretold(graph, "s")
    added = [row for row in rows_of(graph, "Knows").values() if row["from"] == "Ann"]
    assert added == [{"from": "Ann", "to": "Ben", "note": "same"}] * 2


def test_types_that_one_side_changed_are_taken_as_they_are(graph: og.Graph) -> None:
    run(graph, "s", 'update Place set { size: 5 } where name = "Arda"', delete("Place", "Cove"))
    put(graph, "s", node("Place", "Dale", size=1))
    put(graph, "main", node("Person", "Eve"), edge("Knows", "k2", "Eve", "Ann"))
    expected_places = rows_of(graph, "Place", "s")
    expected_people = rows_of(graph, "Person")
    merged_as_foretold(graph, "s")
    assert rows_of(graph, "Place") == expected_places
    assert rows_of(graph, "Person") == expected_people
    # No row of it was read or written: it is the version of the source.
    pins = [graph.snapshot(branch).tables["node:Place"].pin for branch in ("s", "main")]
    assert pins[0] == pins[1]


@pytest.mark.parametrize("maintained", ["s", "main", "both"])
def test_maintenance_is_no_change(graph: og.Graph, maintained: str) -> None:
    for branch in ("s", "main"):
        other = "b" if branch == "s" else "m"
        for number in range(3):
            put(graph, branch, node("Person", f"{other}{number}"))
        put(graph, branch, node("Place", other), edge("Knows", other, "Ann", f"{other}1"))
        run(graph, branch, delete("Person", f"{other}0"))
    run(graph, "s", 'update Person set { a: 5 } where name = "Ann"')
    run(graph, "main", 'update Person set { room: "m" } where name = "Ann"')
    for branch in ("s", "main"):
        if maintained in (branch, "both"):
            compact_all(graph, branch)
            index_all(graph, branch)
    merged_as_foretold(graph, "s")
    found = rows_of(graph, "Person")
    assert found.keys() == {"Ann", "Ben", "Cat", "Dan", "b1", "b2", "m1", "m2"}
    assert (found["Ann"]["a"], found["Ann"]["room"]) == (5, "m")
    assert rows_of(graph, "Knows").keys() == {"k1", "b", "m"}
    assert rows_of(graph, "Place").keys() == {"Arda", "Brell", "Cove", "b", "m"}


def test_maintenance_alone_on_the_source_merges_without_rows(graph: og.Graph) -> None:
    put(graph, "main", node("Person", "m0"))
    graph.branches.create("t")
    compact_all(graph, "t")
    put(graph, "main", node("Person", "m1"))
    before = content(graph)
    foretold = graph.branches.merge("t", dry_run=True)
    assert (foretold.outcome, foretold.counts) == ("merged", {})
    graph.branches.merge("t")
    assert content(graph) == before


def test_many_rows_in_many_files(graph: og.Graph) -> None:
    names = [f"p{number:04}" for number in range(3_000)]
    put(graph, "main", *(node("Person", name, a=0, email=name) for name in names))
    graph.branches.create("many")
    put(graph, "many", *(node("Person", name, a=1, email=name) for name in names[::2]))
    put(graph, "many", *(node("Person", f"s{name}", a=1) for name in names))
    put(graph, "main", *(node("Person", name, a=0, email=name, room=name) for name in names[::3]))
    run(graph, "main", 'delete Person where email > "p2900"')
    # Updated on the branch, deleted on main.
    lost = [name for name in names if name > "p2900" and int(name[1:]) % 2 == 0]
    found = refused(graph, "many")
    assert kinds(found) == [("delete_vs_update", "Person", name) for name in lost]
    merged_as_foretold(graph, "many", resolve="target")
    after = rows_of(graph, "Person")
    assert len(after) == 4 + 2_901 + 3_000
    for number, name in enumerate(names[:2_901]):
        room = name if number % 3 == 0 else None
        assert (after[name]["a"], after[name]["room"]) == (int(number % 2 == 0), room)
