"""Every row of the table of tiers: planned, applied, read back, and written to afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

import omnigraph as og
from tests.evolve.evolving import Row, edge, make, node, reopened, run, shown, steps

SAFE = ("safe", "metadata")
WRITES = ("safe", "columns")
SCANS = ("validated", "scan")
PEOPLE = [node("Person", name="Ann", age=30, bio="hi"), node("Person", name="Ben", age=None)]
ANN = {"name": "Ann", "age": 30, "bio": "hi"}
BEN = {"name": "Ben", "age": None, "bio": None}
AGES = "name: String @key  age: I32?  bio: String?"
KNOWS = "edge Knows: Person -> Person { since: I32? }"
FRIENDS = [*PEOPLE, edge("Knows", "Ann", "Ben", id="k1", since=2020)]
K1 = {"from": "Ann", "to": "Ben", "since": 2020}
MANY = [*FRIENDS, edge("Knows", "Ann", "Ann", id="k2", since=None)]
K2 = {"from": "Ann", "to": "Ann", "since": None}


def person(body: str, *others: str, head: str = "") -> str:
    return "\n".join([f"node Person {head} {{ {body} }}", *others])


@dataclass(frozen=True)
class Case:
    """One change: what it is planned as, and what a type holds afterwards.

    ``insert`` and ``line`` bring one row each under the new schema, which are ``brought``.
    """

    before: str
    after: str
    steps: list[tuple[str, str, str]]
    rows: dict[str, Row]
    type: str = "Person"
    lines: list[Row] = field(default_factory=lambda: PEOPLE)
    insert: str = 'insert Person { name: "Cy" }'
    line: Row = field(default_factory=lambda: node("Person", name="Dee"))
    brought: dict[str, Row] = field(default_factory=dict)


def more(cy: Row, dee: Row | None = None) -> dict[str, Row]:
    """The two rows that are brought; the second is like the first but for its name."""
    return {"Cy": {"name": "Cy"} | cy, "Dee": {"name": "Dee"} | (cy if dee is None else dee)}


NONE = {"age": None, "bio": None}
TYPES = "active: Bool? born: Date? seen: DateTime? big: U64? ratio: F32? tags: [String]?"
NO_VALUES = dict.fromkeys(("active", "born", "seen", "big", "ratio", "tags"))
WIDE = "a: I32? b: U32? c: U32? d: F32? e: I32? f: U32?"
WIDER = "a: I64? b: U64? c: I64? d: F64? e: F64? f: F64?"
NUMBERS = {"a": -(2**31), "b": 2**32 - 1, "c": 2**32 - 1, "d": 0.5, "e": 2**31 - 1, "f": 7}
LARGER = {"a": 2**62, "b": 2**64 - 1, "c": -(2**62), "d": 1e300, "e": 0.1, "f": -0.25}
MOOD = "name: String @key  mood: {}"
MOODS = [node("Person", name="Ann", mood="glad"), node("Person", name="Ben", mood="sad")]
HAPPY = {"Ann": {"name": "Ann", "mood": "glad"}, "Ben": {"name": "Ben", "mood": "sad"}}
NAMED = "interface Named {{ {} }}"

CASES = {
    "add a node type": Case(
        person(AGES),
        person(AGES, "node Film { title: String @key  year: I32 @default(1990) }"),
        [("add_type", *SAFE)],
        {},
        "Film",
        insert='insert Film { title: "Alien", year: 1979 }',
        line=node("Film", title="Heat"),
        brought={
            "Alien": {"title": "Alien", "year": 1979},
            "Heat": {"title": "Heat", "year": 1990},
        },
    ),
    "add an edge type": Case(
        person(AGES),
        person(AGES, KNOWS.replace("{", "{ @key(src, dst) ")),
        [("add_type", *SAFE)],
        {},
        "Knows",
        insert='insert Knows { from: "Ann", to: "Ben" }',
        line=edge("Knows", "Ben", "Ann", since=3),
        brought={
            '["Ann","Ben"]': {"from": "Ann", "to": "Ben", "since": None},
            '["Ben","Ann"]': {"from": "Ben", "to": "Ann", "since": 3},
        },
    ),
    "rename a node type": Case(
        person(AGES, KNOWS),
        f'node Human @rename_from("Person") {{ {AGES} }} {KNOWS.replace("Person", "Human")}',
        [("rename_type", *SAFE)],
        {"Ann": ANN, "Ben": BEN},
        "Human",
        FRIENDS,
        insert='insert Human { name: "Cy" }',
        line=node("Human", name="Dee"),
        brought=more(NONE),
    ),
    "rename an edge type": Case(
        person(AGES, KNOWS),
        person(
            AGES,
            KNOWS.replace("Knows: Person -> Person", 'Met: Person -> Person @rename_from("Knows")'),
        ),
        [("rename_type", *SAFE)],
        {"k1": K1},
        "Met",
        FRIENDS,
        insert='update Met set { since: 1 } where from = "Ann"',
        line=edge("Met", "Ben", "Ann", id="k2", since=2),
        brought={"k1": K1 | {"since": 1}, "k2": {"from": "Ben", "to": "Ann", "since": 2}},
    ),
    "rename a property": Case(
        person(AGES),
        person('name: String @key  years: I32? @rename_from("age")  bio: String?'),
        [("rename_property", *SAFE)],
        {
            "Ann": {"name": "Ann", "years": 30, "bio": "hi"},
            "Ben": {"name": "Ben", "years": None, "bio": None},
        },
        insert='insert Person { name: "Cy", years: 4 }',
        line=node("Person", name="Dee", years=5),
        brought=more({"years": 4, "bio": None}, {"years": 5, "bio": None}),
    ),
    "rename a key": Case(
        person(AGES),
        person('called: String @key @rename_from("name")  age: I32?  bio: String?'),
        [("rename_property", *SAFE)],
        {
            "Ann": {"called": "Ann", "age": 30, "bio": "hi"},
            "Ben": {"called": "Ben", "age": None, "bio": None},
        },
        insert='insert Person { called: "Cy" }',
        line=node("Person", called="Dee"),
        brought={"Cy": {"called": "Cy"} | NONE, "Dee": {"called": "Dee"} | NONE},
    ),
    "add nullable properties of every type": Case(
        person(AGES),
        person(f"{AGES} {TYPES}"),
        [("add_property", *SAFE)] * 6,
        {"Ann": ANN | NO_VALUES, "Ben": BEN | NO_VALUES},
        insert='insert Person { name: "Cy", active: true, born: date("2020-01-02"), ratio: 0.5 }',
        line=node("Person", name="Dee", tags=["x"], big=2**63, seen="2020-01-02T03:04:05Z"),
        brought=more(
            NONE | NO_VALUES | {"active": True, "born": "2020-01-02", "ratio": 0.5},
            NONE | NO_VALUES | {"tags": ["x"], "big": 2**63, "seen": "2020-01-02T03:04:05.000Z"},
        ),
    ),
    "add filled properties of every type": Case(
        person(AGES),
        person(
            f'{AGES} a: String @default("é") b: Bool @default(true) c: F32 @default(0.5) '
            'd: U64 @default(7) e: enum(x, y) @default("y") f: Date @default("2020-01-02") '
            'g: DateTime @default("2020-01-02T03:04:05Z") h: I64 @default(9) i: F64 @default(1.5)'
        ),
        [("add_property", *WRITES)] * 9,
        {
            name: row
            | {"a": "é", "b": True, "c": 0.5, "d": 7, "e": "y", "f": "2020-01-02"}
            | {"g": "2020-01-02T03:04:05.000Z", "h": 9, "i": 1.5}
            for name, row in (("Ann", ANN), ("Ben", BEN))
        },
        insert='insert Person { name: "Cy", a: "z", b: false }',
        line=node("Person", name="Dee", a="z", b=False),
        brought=more(
            NONE
            | {"a": "z", "b": False, "c": 0.5, "d": 7, "e": "y", "f": "2020-01-02"}
            | {"g": "2020-01-02T03:04:05.000Z", "h": 9, "i": 1.5}
        ),
    ),
    "add a nullable property with a default": Case(
        person(AGES),
        person(f"{AGES} rank: I32? @default(3)"),
        [("add_property", *SAFE)],
        {"Ann": ANN | {"rank": None}, "Ben": BEN | {"rank": None}},
        brought=more(NONE | {"rank": 3}),
    ),
    "add a required property to an empty table": Case(
        person(AGES),
        person(f"{AGES} rank: I32"),
        [("add_property", *SAFE)],
        {},
        lines=[],
        insert='insert Person { name: "Cy", rank: 1 }',
        line=node("Person", name="Dee", rank=2),
        brought=more(NONE | {"rank": 1}, NONE | {"rank": 2}),
    ),
    "loosen": Case(
        person("name: String @key  age: I32  bio: String?"),
        person(AGES),
        [("change_nullability", *SAFE)],
        {"Ann": ANN},
        lines=PEOPLE[:1],
        brought=more(NONE),
    ),
    "tighten what has no nulls": Case(
        person(AGES),
        person("name: String @key  age: I32  bio: String?"),
        [("change_nullability", *SCANS)],
        {"Ann": ANN},
        lines=PEOPLE[:1],
        insert='insert Person { name: "Cy", age: 1 }',
        line=node("Person", name="Dee", age=2),
        brought=more({"age": 1, "bio": None}, {"age": 2, "bio": None}),
    ),
    "tighten and fill": Case(
        person(AGES),
        person('name: String @key  age: I32 @default(18)  bio: String @default("-")'),
        [("change_nullability", "validated", "columns"), ("change_annotation", *SAFE)] * 2,
        {"Ann": ANN, "Ben": {"name": "Ben", "age": 18, "bio": "-"}},
        brought=more({"age": 18, "bio": "-"}),
    ),
    "widen": Case(
        person(f"name: String @key {WIDE}"),
        person(f"name: String @key {WIDER}"),
        [("change_property_type", *WRITES)] * 6,
        {"Ann": {"name": "Ann"} | NUMBERS, "Ben": {"name": "Ben"} | dict.fromkeys(NUMBERS)},
        lines=[node("Person", name="Ann", **NUMBERS), node("Person", name="Ben")],
        line=node("Person", name="Dee", **LARGER),
        brought=more(dict.fromkeys(NUMBERS), LARGER),
    ),
    "widen, rename and tighten at once": Case(
        person(AGES),
        person('name: String @key  years: F64 @rename_from("age") @default(0.5)  bio: String?'),
        [
            ("rename_property", *SAFE),
            ("change_property_type", *WRITES),
            ("change_nullability", "validated", "columns"),
            ("change_annotation", *SAFE),
        ],
        {
            "Ann": {"name": "Ann", "years": 30.0, "bio": "hi"},
            "Ben": {"name": "Ben", "years": 0.5, "bio": None},
        },
        brought=more({"years": 0.5, "bio": None}),
    ),
    "widen a key": Case(
        person("number: I32 @key  age: I32?"),
        person("number: I64 @key  age: I32?"),
        [("change_property_type", *WRITES)],
        {"7": {"number": 7, "age": 1}},
        lines=[node("Person", number=7, age=1)],
        insert="insert Person { number: 7, age: 2 }",
        line=node("Person", number=2**40),
        brought={"7": {"number": 7, "age": 2}, str(2**40): {"number": 2**40, "age": None}},
    ),
    "an enum becomes a text": Case(
        person(MOOD.format("enum(glad, sad)?")),
        person(MOOD.format("String?")),
        [("change_property_type", *SAFE)],
        HAPPY,
        lines=MOODS,
        insert='insert Person { name: "Cy", mood: "odd" }',
        line=node("Person", name="Dee", mood="even"),
        brought=more({"mood": "odd"}, {"mood": "even"}),
    ),
    "an enum is extended": Case(
        person(MOOD.format("enum(glad, sad)?")),
        person(MOOD.format("enum(glad, odd, sad)?")),
        [("extend_enum", *SAFE)],
        HAPPY,
        lines=MOODS,
        insert='insert Person { name: "Cy", mood: "odd" }',
        brought=more({"mood": "odd"}, {"mood": None}),
    ),
    "a text becomes an enum": Case(
        person(MOOD.format("String?")),
        person(MOOD.format("enum(glad, sad)?")),
        [("change_property_type", *SCANS)],
        HAPPY,
        lines=MOODS,
        insert='insert Person { name: "Cy", mood: "sad" }',
        brought=more({"mood": "sad"}, {"mood": None}),
    ),
    "an enum is narrowed": Case(
        person(MOOD.format("enum(glad, odd, sad)?")),
        person(MOOD.format("enum(glad, sad)?")),
        [("change_property_type", *SCANS)],
        HAPPY,
        lines=MOODS,
        brought=more({"mood": None}),
    ),
    "another type of an empty table": Case(
        person(AGES),
        person("name: String @key  age: Date?  bio: [String]?"),
        [("change_property_type", *SAFE)] * 2,
        {},
        lines=[],
        line=node("Person", name="Dee", age="2020-01-02", bio=["x"]),
        brought=more(NONE, {"age": "2020-01-02", "bio": ["x"]}),
    ),
    "another type of an empty column": Case(
        person(AGES),
        person("name: String @key  age: I32?  bio: Bool?"),
        [("change_property_type", *SCANS)],
        {"Ben": {"name": "Ben", "age": None, "bio": None}},
        lines=PEOPLE[1:],
        line=node("Person", name="Dee", bio=True),
        brought=more(NONE, NONE | {"bio": True}),
    ),
    "another type of an empty column, filled": Case(
        person(AGES),
        person('name: String @key  age: I32?  bio: Date @default("2020-01-02")'),
        [
            ("change_property_type", *SCANS),
            ("change_nullability", "validated", "columns"),
            ("change_annotation", *SAFE),
        ],
        {"Ben": {"name": "Ben", "age": None, "bio": "2020-01-02"}},
        lines=PEOPLE[1:],
        brought=more({"age": None, "bio": "2020-01-02"}),
    ),
    "add constraints that all rows obey": Case(
        person(AGES, KNOWS),
        person(
            f'{AGES} @range(age, 0..150) @check(bio, "^[a-z]+$") @unique(age, bio)',
            KNOWS.replace("Person {", "Person @card(1..1) {"),
        ),
        [
            ("add_constraint", *SCANS),
            ("add_constraint", *SCANS),
            ("add_constraint", *SCANS),
            ("change_cardinality", *SCANS),
        ],
        {"Ann": ANN, "Ben": BEN},
        lines=FRIENDS,
        brought=more(NONE),
    ),
    "remove and loosen constraints": Case(
        person(
            "name: String @key  age: I32? @index @unique  bio: String? @range(age, 0..40) "
            '@check(bio, "h")',
            KNOWS.replace("Person {", "Person @card(0..1) {"),
        ),
        person("name: String @key  age: I32?  bio: String? @range(age, 0..50)", KNOWS),
        [
            ("remove_constraint", *SAFE),
            ("remove_constraint", *SAFE),
            ("remove_constraint", *SAFE),
            ("remove_constraint", *SAFE),
            ("add_constraint", *SAFE),
            ("change_cardinality", *SAFE),
        ],
        {"Ann": ANN, "Ben": BEN},
        lines=FRIENDS,
        insert=(
            'insert Person { name: "Cy", age: 50, bio: "no" } '
            'insert Knows { from: "Ann", to: "Ann" }'
        ),
        line=node("Person", name="Dee", age=50),
        brought=more({"age": 50, "bio": "no"}, {"age": 50, "bio": None}),
    ),
    "annotations": Case(
        person('name: String @key  age: I32? @default(1) @description("old")  bio: String?'),
        person(
            'name: String @key  age: I32? @default(2)  bio: String? @description("new")',
            head='@description("people") @instruction("ask") @merge(row)',
        ),
        [
            ("change_annotation", *SAFE),
            ("update_type_metadata", *SAFE),
            ("change_annotation", *SAFE),
            ("update_property_metadata", *SAFE),
            ("update_property_metadata", *SAFE),
        ],
        {"Ann": ANN, "Ben": BEN},
        brought=more({"age": 2, "bio": None}),
    ),
    "add an index": Case(
        person(AGES),
        person("name: String @key  age: I32? @index  bio: String? @index"),
        [("add_constraint", *SAFE)] * 2,
        {"Ann": ANN, "Ben": BEN},
        brought=more(NONE),
    ),
    "add an interface": Case(
        person(AGES),
        person(AGES, NAMED.format("name: String  nick: String?"), head="implements Named"),
        [
            ("add_type", *SAFE),
            ("change_implements", *SAFE),
            ("add_property", *SAFE),
        ],
        {"Ann": ANN | {"nick": None}, "Ben": BEN | {"nick": None}},
        insert='insert Person { name: "Cy", nick: "c" }',
        brought=more(NONE | {"nick": "c"}, NONE | {"nick": None}),
    ),
    "remove an interface and keep its properties": Case(
        person(
            "name: String @key", NAMED.format("age: I32?  bio: String?"), head="implements Named"
        ),
        person(AGES),
        [("change_implements", *SAFE), ("drop_type", *SAFE)],
        {"Ann": ANN, "Ben": BEN},
        brought=more(NONE),
    ),
    "rename an interface": Case(
        person(
            "name: String @key", NAMED.format("age: I32?  bio: String?"), head="implements Named"
        ),
        person(
            "name: String @key",
            "interface Aged { age: I32?  bio: String? }",
            head="implements Aged",
        ),
        [("add_type", *SAFE), ("change_implements", *SAFE), ("drop_type", *SAFE)],
        {"Ann": ANN, "Ben": BEN},
        brought=more(NONE),
    ),
    "change the key of an empty table": Case(
        person(AGES),
        person("name: String  age: I32 @key  bio: String?"),
        [
            ("change_nullability", *SCANS),
            ("remove_constraint", *SAFE),
            ("add_constraint", *SAFE),
        ],
        {},
        lines=[],
        insert='insert Person { name: "Cy", age: 1 }',
        line=node("Person", name="Dee", age=2),
        brought={
            "1": {"name": "Cy", "age": 1, "bio": None},
            "2": {"name": "Dee", "age": 2, "bio": None},
        },
    ),
    "change the ends of an empty edge type": Case(
        person(AGES, KNOWS, "node Film { title: String @key }"),
        person(AGES, KNOWS.replace("-> Person", "-> Film"), "node Film { title: String @key }"),
        [("change_endpoints", *SAFE)],
        {},
        "Knows",
        insert='insert Film { title: "Alien" } insert Knows { from: "Ann", to: "Alien" }',
        line=edge("Knows", "Ben", "Alien", id="k"),
        brought={},
    ),
    "add a key to edges": Case(
        person(AGES, KNOWS),
        person(AGES, KNOWS.replace("{", "{ @key(src, dst) ")),
        [("add_constraint", "validated", "columns")],
        {'["Ann","Ben"]': K1, '["Ann","Ann"]': K2},
        "Knows",
        MANY,
        insert='insert Knows { from: "Ann", to: "Ben", since: 1 }',
        line=edge("Knows", "Ben", "Ann"),
        brought={
            '["Ann","Ben"]': K1 | {"since": 1},
            '["Ben","Ann"]': {"from": "Ben", "to": "Ann", "since": None},
        },
    ),
    "remove a key from edges": Case(
        person(AGES, KNOWS.replace("{", "{ @key(src, dst) ")),
        person(AGES, KNOWS),
        [("remove_constraint", *SAFE)],
        {'["Ann","Ben"]': K1},
        "Knows",
        [*PEOPLE, edge("Knows", "Ann", "Ben", since=2020)],
        insert='update Knows set { since: 1 } where from = "Ann"',
        line=edge("Knows", "Ann", "Ben", id="other"),
        brought={
            '["Ann","Ben"]': K1 | {"since": 1},
            "other": {"from": "Ann", "to": "Ben", "since": None},
        },
    ),
    "drop properties": Case(
        person(AGES),
        person("name: String @key"),
        [("drop_property", "destructive", "metadata")] * 2,
        {"Ann": {"name": "Ann"}, "Ben": {"name": "Ben"}},
        brought=more({}),
    ),
    "drop a type": Case(
        person(AGES, KNOWS, "node Film { title: String @key }"),
        person(AGES),
        [("drop_type", "destructive", "metadata")] * 2,
        {"Ann": ANN, "Ben": BEN},
        lines=[*FRIENDS, node("Film", title="Alien")],
        brought=more(NONE),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_change_is_planned_applied_and_written_to(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    graph = make(tmp_path / "graph", case.before, case.lines)
    beside, before, old = og.open(tmp_path / "graph"), graph.snapshot(), shown(graph)
    plan = graph.plan_schema(case.after, check=True)
    assert plan.supported, str(plan)
    assert steps(plan) == case.steps
    assert graph.snapshot() == before

    done = graph.apply_schema(case.after)
    assert (done.applied, done.supported, done.step_count) == (True, True, len(case.steps))
    assert [step.to_json() for step in done.steps] == plan.to_json()["steps"]
    assert done.commit is not None
    assert done.commit.parent_id == before.commit_id
    assert done.commit.id == graph.snapshot().commit_id
    assert done.manifest_version == graph.snapshot().manifest_version
    for handle in (graph, beside, reopened(graph)):
        assert shown(handle)[case.type] == case.rows
        assert handle.schema == case.after
        assert shown(handle, snapshot=before.commit_id) == old
    assert (tmp_path / "graph" / "_schema.pg").read_text(encoding="utf-8") == case.after

    check_no_more_to_do(graph, case.after)
    run(graph, case.insert)
    beside.load([case.line], mode="append")
    rows = shown(reopened(graph))[case.type]
    for id_, row in case.brought.items():
        assert rows[id_] == row
    assert rows.keys() >= case.rows.keys()


def check_no_more_to_do(graph: og.Graph, text: str) -> None:
    head = graph.snapshot()
    assert graph.plan_schema(text).steps == ()
    commented = f"// the same\n{text} /* indeed */"
    for same in (text, commented):
        done = graph.apply_schema(same)
        assert (done.applied, done.commit, done.steps) == (False, None, ())
    assert graph.snapshot() == head
