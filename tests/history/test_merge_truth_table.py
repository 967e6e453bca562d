"""Every pair of small changes on two branches, merged both ways: outcome, conflicts and rows.

What must come out is said by a model in plain Python, which knows rows and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any, Literal

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflicts
from omnigraph.storage.tables import version_diff
from tests.history.merging import (
    Told,
    content,
    edge,
    in_order,
    node,
    ordered,
    put,
    run,
    told,
    update,
)

pytestmark = pytest.mark.slow

Side = Literal["left", "right"]
Row = dict[str, Any]
Rows = dict[str, Row]

SCHEMA = """
node Person {mark} {{ name: String @key  a: I32?  b: I32? }}
edge Knows: Person -> Person {mark} {{ note: String? }}
"""
MARKS = {"properties": "", "rows": "@merge(row)"}
BY_SIDE: Mapping[Side, int] = {"left": 7, "right": 8}


@pytest.fixture(autouse=True)
def _picked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rows read one by one, as in a large table; so few would be read all together."""
    monkeypatch.setattr(version_diff, "DENSE", 0)


# -- the model ---------------------------------------------------------------------------------


@dataclass
class World:
    """The rows of a branch by id."""

    people: Rows = field(default_factory=dict)
    edges: Rows = field(default_factory=dict)

    def lines(self) -> list[dict[str, Any]]:
        """As an export has them."""
        found: list[dict[str, Any]] = []
        for id_, row in self.people.items():
            found.append({"type": "Person", "data": {"id": id_, **row}})
        for id_, row in self.edges.items():
            data = (
                {"note": row["note"]} if id_.startswith("new") else {"note": row["note"], "id": id_}
            )
            found.append({"edge": "Knows", "from": row["from"], "to": row["to"], "data": data})
        return ordered(found)


def person(name: str, a: int | None = 0, b: int | None = 0) -> Row:
    return {"name": name, "a": a, "b": b}


BASE = World(
    {name: person(name) for name in ("Ann", "Ben", "Cat")},
    {"e0": {"from": "Ben", "to": "Cat", "note": None}},
)


@dataclass
class Expected:
    """What comes out of merging two worlds that both came from the base."""

    world: World
    conflicts: list[Told]


def three_way(source: World, target: World, *, whole_rows: bool) -> Expected:
    """A row that one side changed is taken; where both did, their properties are."""
    conflicts: list[Told] = []
    sides = (source.people, target.people)
    people = _merged("Person", BASE.people, *sides, conflicts, whole_rows=whole_rows)
    sides = (source.edges, target.edges)
    edges = _merged("Knows", BASE.edges, *sides, conflicts, whole_rows=whole_rows)
    for id_, row in edges.items():
        for end in ("from", "to"):
            name = row[end]
            if name not in people:
                there = [name if name in side.people else None for side in (source, target)]
                shown = "new" if id_.startswith("new") else id_
                conflicts.append(("orphan_edge", "Knows", shown, end, name, *there))
    return Expected(World(people, edges), in_order(conflicts))


def _merged(
    type_name: str, base: Rows, source: Rows, target: Rows, told: list[Told], *, whole_rows: bool
) -> Rows:
    found: dict[str, Row | None] = {}
    for id_ in sorted({*base, *source, *target}):
        old, theirs, ours = base.get(id_), source.get(id_), target.get(id_)
        found[id_] = ours
        if theirs in (old, ours):
            continue
        if ours == old:
            found[id_] = theirs
        elif old is None:
            told.append(("divergent_insert", type_name, id_, None, old, theirs, ours))
        elif theirs is None or ours is None:
            told.append(("delete_vs_update", type_name, id_, None, old, theirs, ours))
        elif whole_rows:
            told.append(("divergent_update", type_name, id_, None, old, theirs, ours))
        else:
            found[id_] = dict(ours)
            for name, was in old.items():
                one, other = theirs[name], ours[name]
                if one in (was, other):
                    continue
                if other == was:
                    found[id_][name] = one  # type: ignore[index]
                else:
                    told.append(("divergent_update", type_name, id_, name, was, one, other))
    return {id_: row for id_, row in found.items() if row is not None}


# -- what a side does --------------------------------------------------------------------------


@dataclass(frozen=True)
class Step:
    """One commit of a side: the statement, and what it does to the model."""

    statement: Callable[[Side], str]
    apply: Callable[[World, Side], None]


def insert(name: str, value: Callable[[Side], int]) -> Step:
    def apply(world: World, side: Side) -> None:
        world.people[name] = person(name, value(side))

    return Step(lambda side: f'insert Person {{ name: "{name}", a: {value(side)}, b: 0 }}', apply)


def assign(name: str, property_: str, value: Callable[[Side], int]) -> Step:
    def apply(world: World, side: Side) -> None:
        world.people[name][property_] = value(side)

    return Step(lambda side: update("Person", name, **{property_: value(side)}), apply)


def remove(name: str) -> Step:
    def apply(world: World, _: Side) -> None:
        del world.people[name]
        world.edges = {
            id_: row for id_, row in world.edges.items() if name not in (row["from"], row["to"])
        }

    return Step(lambda _: f'delete Person where name = "{name}"', apply)


def link(source: str, target: str) -> Step:
    def apply(world: World, side: Side) -> None:
        world.edges[f"new-{side}"] = {"from": source, "to": target, "note": None}

    return Step(lambda _: f'insert Knows {{ from: "{source}", to: "{target}" }}', apply)


def unlink(source: str) -> Step:
    def apply(world: World, _: Side) -> None:
        world.edges = {id_: row for id_, row in world.edges.items() if row["from"] != source}

    return Step(lambda _: f'delete Knows where from = "{source}"', apply)


def annotate(value: Callable[[Side], int]) -> Step:
    def apply(world: World, side: Side) -> None:
        world.edges["e0"]["note"] = str(value(side))

    return Step(
        lambda side: update("Knows", "Ben", note=str(value(side))).replace("name", "from"), apply
    )


def same(value: int) -> Callable[[Side], int]:
    return lambda _: value


def own(side: Side) -> int:
    """A value that the other side does not write."""
    return BY_SIDE[side]


ACTIONS: dict[str, list[Step]] = {
    "nothing": [],
    "insert": [insert("Fay", same(5))],
    "insert_differently": [insert("Fay", own)],
    "set_a": [assign("Ann", "a", same(9))],
    "set_b": [assign("Ann", "b", same(9))],
    "set_a_differently": [assign("Ann", "a", own)],
    "set_a_and_undo": [assign("Ann", "a", own), assign("Ann", "a", same(0))],
    "delete": [remove("Ann")],
    "delete_with_edge": [remove("Cat")],
    "insert_and_delete": [insert("Fay", own), remove("Fay")],
    "add_edge_from": [link("Ann", "Cat")],
    "add_edge_to": [link("Ben", "Ann")],
    "remove_edge": [unlink("Ben")],
    "set_edge": [annotate(own)],
    "add_and_remove_edge": [link("Ann", "Cat"), unlink("Ann")],
}
# What a type that is merged by whole rows could see otherwise.
BY_ROWS = [
    "nothing",
    "insert",
    "insert_differently",
    "set_a",
    "set_b",
    "set_a_differently",
    "delete",
    "delete_with_edge",
    "set_edge",
]
PAIRS = [
    *(("properties", *pair) for pair in combinations_with_replacement(ACTIONS, 2)),
    *(("rows", *pair) for pair in combinations_with_replacement(BY_ROWS, 2)),
]


@dataclass
class Table:
    """A graph with two branches for every action, one for each side."""

    graph: og.Graph
    worlds: dict[str, World] = field(default_factory=dict)

    def do(self, action: str, side: Side) -> None:
        branch = f"{side}-{action}"
        self.graph.branches.create(branch)
        world = deepcopy(BASE)
        for step in ACTIONS[action]:
            run(self.graph, branch, step.statement(side))
            step.apply(world, side)
        self.worlds[branch] = world

    @contextmanager
    def copied(self, branch: str) -> Iterator[str]:
        """A branch that is as this one, and may be merged into."""
        name = self.graph.branches.create("merged", branch)
        yield name
        self.graph.branches.delete(name)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """One table per way of merging."""
    found = {}
    for granularity, mark in MARKS.items():
        root = tmp_path_factory.mktemp(granularity) / "graph"
        table = Table(og.init(root, SCHEMA.format(mark=mark)))
        people = (node("Person", name, a=0, b=0) for name in BASE.people)
        put(table.graph, "main", *people, edge("Knows", "e0", "Ben", "Cat"))
        for action in ACTIONS if granularity == "properties" else BY_ROWS:
            table.do(action, "left")
            table.do(action, "right")
        found[granularity] = table
    return found


@pytest.mark.parametrize(("granularity", "one", "other"), PAIRS)
def test_a_pair_of_changes(
    tables: dict[str, Table], granularity: str, one: str, other: str
) -> None:
    table = tables[granularity]
    left, right = f"left-{one}", f"right-{other}"
    whole_rows = granularity == "rows"
    ways = ((left, right), (right, left))
    results = [_check(table, *way, whole_rows=whole_rows) for way in ways]
    # Where nobody disagrees, it does not matter who merges whom.
    if None not in results and "nothing" not in (one, other):
        assert results[0] == results[1]


def _check(
    table: Table, source: str, target: str, *, whole_rows: bool
) -> list[dict[str, Any]] | None:
    """Merge one way, compare with the model; returns what came out, or None for conflicts."""
    graph = table.graph
    theirs, ours = table.worlds[source], table.worlds[target]
    expected = three_way(theirs, ours, whole_rows=whole_rows)
    source_content, target_head = content(graph, source), graph.snapshot(target).commit_id
    with table.copied(target) as into:
        if expected.conflicts:
            with pytest.raises(MergeConflicts) as caught:
                graph.branches.merge(source, into)
            assert told(caught.value.conflicts) == expected.conflicts
            assert graph.snapshot(into).commit_id == target_head
            assert content(graph, into) == ours.lines()
            found = None
        else:
            result = graph.branches.merge(source, into)
            assert result.outcome == _outcome(source, target)
            found = content(graph, into)
            assert found == expected.world.lines()
            if result.outcome == "already_up_to_date":
                assert (result.commit, graph.snapshot(into).commit_id) == (None, target_head)
            else:
                assert result.commit is not None
                parents = (result.commit.parent_id, result.commit.merged_parent_id)
                assert parents == (target_head, graph.snapshot(source).commit_id)
                assert graph.snapshot(into).commit_id == result.commit.id
    assert content(graph, source) == source_content == theirs.lines()
    return found


def _outcome(source: str, target: str) -> str:
    if source.endswith("-nothing"):
        return "already_up_to_date"
    return "fast_forward" if target.endswith("-nothing") else "merged"
