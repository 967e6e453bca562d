"""What a schema change is refused for: everything is told at once, and nothing is changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from tests.evolve.evolving import edge, make, node, run, shown, unchanged

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    bio: String?
    ratio: F32?
}

node Film { title: String @key }

edge Knows: Person -> Person { since: I32? }
"""
NOTHING = "// no types\n"
ROWS = [
    *(
        node("Person", name=f"p{n:02}", age=n % 10, bio="long" if n % 2 else None)
        for n in range(24)
    ),
    *(edge("Knows", "p00", f"p{n:02}", id=f"k{n:02}", since=n % 3) for n in range(12)),
    edge("Knows", "p01", "p00", id="back"),
]


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make(tmp_path / "graph", SCHEMA, ROWS)


def refused(graph: og.Graph, text: str, **options: Any) -> errors.SchemaChangeRefused:
    """The refusal of a change, which leaves no trace."""
    with unchanged(graph), pytest.raises(errors.SchemaChangeRefused) as caught:
        graph.apply_schema(text, **options)
    plan = graph.plan_schema(text, check=True)
    assert not plan.supported
    assert plan.code == (caught.value.code if plan.code else None)
    told = caught.value.details
    assert told["refusals"] == [one.to_json() for one in plan.refusals]
    assert told["steps"] == plan.to_json()["steps"]
    return caught.value


def ids(prefix: str, *numbers: int) -> list[str]:
    return [f"{prefix}{number:02}" for number in numbers]


BROKEN = {
    "nulls": (
        ("bio: String?", "bio: String"),
        ("OG-MF-104", 12, ids("p", *range(0, 20, 2))),
    ),
    "text outside an enum": (
        ("bio: String?", "bio: enum(short)?"),
        (None, 12, ids("p", *range(1, 21, 2))),
    ),
    "range": (
        ("bio: String?", "bio: String? @range(age, 2..8)"),
        (None, 8, ids("p", 0, 1, 9, 10, 11, 19, 20, 21)),
    ),
    "pattern": (
        ("bio: String?", 'bio: String? @check(bio, "^s")'),
        (None, 12, ids("p", *range(1, 21, 2))),
    ),
    "unique, all rows of a group": (
        ("bio: String?", "bio: String? @unique(age, bio)"),
        (None, 12, ids("p", *range(1, 21, 2))),
    ),
    "unique by the new default": (
        ("bio: String?", "bio: String? rank: I32 @default(1) @unique(rank)"),
        (None, 24, ids("p", *range(10))),
    ),
    "default that repeats": (
        ("bio: String?", 'bio: String @default("x") @unique(bio)'),
        (None, 24, ids("p", *range(10))),
    ),
    "default against a pattern": (
        ("age: I32?", 'age: I32? rank: String @default("b") @check(rank, "a")'),
        (None, 24, ids("p", *range(10))),
    ),
    "cardinality": (
        ("Person -> Person {", "Person -> Person @card(0..3) {"),
        (None, 1, ["p00"]),
    ),
    "least cardinality, but for those without edges": (
        ("Person -> Person {", "Person -> Person @card(2..) {"),
        (None, 1, ["p01"]),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_rows_that_stand_against_it_are_counted_and_named(name: str, graph: og.Graph) -> None:
    (old, new), (code, count, first) = BROKEN[name]
    error = refused(graph, SCHEMA.replace(old, new))
    (found,) = error.details["refusals"]
    assert (found.get("code"), found["violations"]) == (code, {"count": count, "ids": first})
    assert error.code == (code or "schema_change_refused")
    assert str(count) in error.message
    assert first[0] in error.message


def test_edges_alike_are_all_told(graph: og.Graph) -> None:
    graph.load([edge("Knows", "p00", "p03", id="again")], mode="append")
    error = refused(graph, SCHEMA.replace("{ since: I32? }", "{ since: I32? @key(src, dst) }"))
    (found,) = error.details["refusals"]
    assert found["violations"] == {"count": 2, "ids": ["again", "k03"]}


UNSUPPORTED = {
    "required without a default": (
        ("bio: String?", "bio: String? rank: I32"),
        "OG-MF-103",
        "node:Person.rank",
    ),
    "required vector to be embedded": (
        ("bio: String?", 'bio: String? v: Vector(64) @embed("bio")'),
        "OG-MF-103",
        "node:Person.v",
    ),
    "narrower": (("age: I32?", "age: Bool?"), "OG-MF-106", "node:Person.age"),
    "list": (("age: I32?", "age: [I32]?"), "OG-MF-106", "node:Person.age"),
    "another key": (
        ("name: String @key\n    age: I32?", "name: String\n    age: I32 @key"),
        None,
        "node:Person",
    ),
    "ends": (("Person -> Person", "Person -> Film"), None, "edge:Knows"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_nobody_can_do_is_said_with_its_code(name: str, graph: og.Graph) -> None:
    (old, new), code, entity = UNSUPPORTED[name]
    error = refused(graph, SCHEMA.replace(old, new))
    assert error.details["refusals"][0]["entity"] == entity
    assert error.code == (code or "schema_change_refused")


def test_a_float_of_a_key_is_not_widened_while_there_are_rows(tmp_path: Path) -> None:
    graph = make(tmp_path / "graph", "node A { x: F32 @key }", [node("A", x=0.1)])
    error = refused(graph, "node A { x: F64 @key }")
    assert error.code == "OG-MF-106"
    run(graph, 'delete A where @id = "0.1"')
    assert graph.apply_schema("node A { x: F64 @key }").applied
    run(graph, "insert A { x: 0.1 }")
    assert shown(graph)["A"] == {"0.1": {"x": 0.1}}


def test_everything_that_stands_against_it_is_told_at_once(graph: og.Graph) -> None:
    text = (
        SCHEMA.replace("bio: String?", "bio: String rank: I32 @range(age, 2..8)")
        .replace("ratio: F32?", "ratio: F32? @unique(age)")
        .replace("Person -> Person {", "Person -> Film @card(0..3) {")
        .replace("since: I32?", "since: I32?  day: Date")
    )
    error = refused(graph, text)
    told = [(one["entity"], one.get("code")) for one in error.details["refusals"]]
    assert sorted(told, key=str) == [
        ("edge:Knows", None),
        ("edge:Knows", None),
        ("edge:Knows.day", "OG-MF-103"),
        ("node:Person.age", None),
        ("node:Person.age", None),
        ("node:Person.bio", "OG-MF-104"),
        ("node:Person.rank", "OG-MF-103"),
    ]
    for entity, _ in told:
        assert entity in error.message


def test_without_check_a_plan_does_not_look_at_rows(graph: og.Graph) -> None:
    plan = graph.plan_schema(SCHEMA.replace("bio: String?", "bio: String"))
    assert plan.supported
    (step,) = plan.to_json()["steps"]
    assert step["tier"] == "validated"
    assert "violations" not in step


# -- other refusals ----------------------------------------------------------------------


def test_a_stale_head_is_refused_also_when_nothing_would_change(graph: og.Graph) -> None:
    stale = graph.snapshot().commit_id
    run(graph, 'insert Film { title: "Alien" }')
    other = SCHEMA.replace("age: I32?", "age: I64?")
    for text in (SCHEMA, other):
        with unchanged(graph), pytest.raises(errors.PreconditionFailed):
            graph.apply_schema(text, if_commit=stale)
    head = graph.snapshot().commit_id
    assert not graph.apply_schema(SCHEMA, if_commit=head).applied
    assert graph.apply_schema(other, if_commit=head).applied


def test_an_unknown_branch_and_a_graph_to_be_looked_at(graph: og.Graph) -> None:
    for call in (graph.apply_schema, graph.plan_schema):
        with pytest.raises(errors.BranchNotFound):
            call(SCHEMA, branch="nowhere")
    shown_only = og.open(str(graph.location), read_only=True)
    assert shown_only.plan_schema(SCHEMA.replace("I32?", "I64?")).supported
    with unchanged(graph), pytest.raises(errors.BadRequest, match="read-only"):
        shown_only.apply_schema(SCHEMA.replace("I32?", "I64?"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SCHEMA.replace("bio: String?", "bio: Strin?"), 4),
        (SCHEMA.replace("bio: String?", 'bio: String? @check(bio, "(")'), 4),
        (SCHEMA.replace("-> Person", "-> Nobody"), 10),
        (SCHEMA.replace("node Film", "nod Film"), 8),
        (SCHEMA.replace("node Person", "node Person implements Nothing"), 1),
        (SCHEMA.replace("bio:", 'x: I32? @rename_from("years") bio:'), 4),
    ],
)
def test_a_schema_that_is_wrong_is_shown_with_line_and_caret(
    graph: og.Graph, text: str, line: int
) -> None:
    for call in (graph.apply_schema, graph.plan_schema):
        with unchanged(graph), pytest.raises(errors.LanguageError) as caught:
            call(text)
        assert f":{line}:" in str(caught.value)
        assert "^" in str(caught.value)


def test_an_interface_that_is_broken_is_a_schema_error(tmp_path: Path) -> None:
    text = "interface Aged { age: I32? }\nnode Person implements Aged { name: String @key }"
    graph = make(tmp_path / "graph", text, [node("Person", name="Ann", age=1)])
    with unchanged(graph), pytest.raises(errors.LanguageError):
        graph.apply_schema(text.replace("{ name: String @key }", "{ name: String @key age: I64? }"))


def test_a_schema_without_types_drops_everything_and_the_rows_are_counted(
    graph: og.Graph,
) -> None:
    with unchanged(graph), pytest.raises(errors.BadRequest, match="empty"):
        graph.apply_schema(" \n")
    plan = graph.plan_schema(NOTHING)
    assert {(one["name"], one["rows_losing_value"]) for one in plan.to_json()["steps"]} == {
        ("Person", 24),
        ("Film", 0),
        ("Knows", 13),
    }
    graph.apply_schema(NOTHING)
    assert graph.snapshot().tables == {}
    assert list(graph.export()) == []
    graph.apply_schema(SCHEMA)
    assert shown(graph) == {"Person": {}, "Film": {}, "Knows": {}}


def test_rows_that_lose_a_value_are_counted(graph: og.Graph) -> None:
    text = SCHEMA.replace("    bio: String?\n", "").replace("    ratio: F32?\n", "")
    for loses, mode in ((False, "soft"), (True, "hard")):
        plan = graph.plan_schema(text, allow_data_loss=loses)
        assert [
            (one["property_name"], one["rows_losing_value"], one["mode"], one["tier"])
            for one in plan.to_json()["steps"]
        ] == [("bio", 12, mode, "destructive"), ("ratio", 0, mode, "destructive")]
    done = graph.apply_schema(text, allow_data_loss=True)
    assert {step.to_json()["mode"] for step in done.steps} == {"hard"}
    assert shown(graph)["Person"]["p01"] == {"name": "p01", "age": 1}
