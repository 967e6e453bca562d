"""The rules of a schema through loads and mutations: exact texts, and nothing written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.structural import SRC
from tests.write.writing import mutate, rows, unchanged

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    score: F64?
    code: String?
    email: String? @unique
    rank: enum(high, low)?
    first: String?
    last: String?
    level: I32 @default(1)
    @range(age, 0..150)
    @range(score, 0.5..)
    @check(code, "^[A-Z]{2}$")
    @unique(first, last)
}

node Firm {
    id_number: I64 @key
    opened: Date? @unique
    seen: DateTime? @unique
    big: U64? @unique
}

node Slot {
    day: Date
    hour: I32
    @key(day, hour)
}

node Note {
    text: String?
}

edge Knows: Person -> Person @card(0..2) {
    since: Date?
    tag: String? @unique
}

edge WorksAt: Person -> Firm @card(1..1) {
    role: enum(boss, hand)?
}

edge Likes: Person -> Note {
    @unique(src, dst)
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load(
        [
            person("Ann", age=30, email="ann@x", first="Ann", last="Ash"),
            person("Ben", email="ben@x"),
            person("Cat"),
            {"type": "Firm", "data": {"id_number": 7, "opened": "2020-01-02"}},
            {"type": "Firm", "data": {"id_number": 8, "big": 9, "seen": "2020-01-02T03:04:05Z"}},
            {"type": "Note", "data": {"id": "n1"}},
            edge("WorksAt", "w1", "Ann", "7"),
            edge("WorksAt", "w2", "Ben", "8"),
            edge("Knows", "k1", "Ann", "Ben", tag="t1"),
            edge("Likes", "l1", "Ann", "n1"),
        ],
        mode="append",
    )
    return graph


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def edge(type_: str, id_: str | None, source: str, target: str, **data: Any) -> dict[str, Any]:
    given = data if id_ is None else {"id": id_, **data}
    return {"edge": type_, "from": source, "to": target, "data": given}


def refused(
    graph: og.Graph, data: Any, *, mode: str = "merge", branch: str = "main"
) -> errors.ValidationError:
    with unchanged(graph, branch), pytest.raises(errors.ValidationError) as caught:
        graph.load(data, mode=mode, branch=branch)
    return caught.value


def refused_mutation(graph: og.Graph, body: str, **params: Any) -> errors.ValidationError:
    source = body if body.startswith("query") else f"query q() {{ {body} }}"
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.mutate(source, params=params)
    return caught.value


# -- one rule at a time --------------------------------------------------------------------------

TEXTS = [
    ("range", {"age": -1}, "age: -1", "@range violation on Person.age: value -1 < min 0"),
    ("range", {"age": 151}, "age: 151", "@range violation on Person.age: value 151 > max 150"),
    (
        "range",
        {"score": 0.25},
        "score: 0.25",
        "@range violation on Person.score: value 0.25 < min 0.5",
    ),
    (
        "check",
        {"code": "abc"},
        'code: "abc"',
        "@check violation on Person.code: value 'abc' does not match pattern '^[A-Z]{2}$'",
    ),
    (
        "unique",
        {"email": "ann@x"},
        'email: "ann@x"',
        "@unique violation on Person.email: value 'ann@x' held by 'Ann' and 'New'",
    ),
    (
        "unique",
        {"first": "Ann", "last": "Ash"},
        'first: "Ann" last: "Ash"',
        "@unique violation on Person.(first, last): value '(Ann, Ash)' held by 'Ann' and 'New'",
    ),
]


@pytest.mark.parametrize("mode", ["append", "merge"])
@pytest.mark.parametrize(("rule", "data", "_", "text"), TEXTS)
def test_texts_of_a_load(
    graph: og.Graph, mode: str, rule: str, data: dict[str, Any], _: str, text: str
) -> None:
    error = refused(graph, [person("Fine"), person("New", **data)], mode=mode)
    assert error.rule == rule
    first = error.details["violations"][0]
    assert str(error) == f"line 2, column {first['column']}: {text}"
    assert first["message"] == text
    assert (first["type_key"], first["entity_id"], first["line"]) == ("node:Person", "New", 2)
    assert first["property"] == next(iter(data))


@pytest.mark.parametrize(("rule", "_", "assigned", "text"), TEXTS)
def test_texts_of_an_insert(graph: og.Graph, rule: str, _: Any, assigned: str, text: str) -> None:
    error = refused_mutation(
        graph, f'insert Person {{ name: "Fine" }} insert Person {{ name: "New" {assigned} }}'
    )
    assert (error.rule, str(error)) == (rule, text)


@pytest.mark.parametrize(("rule", "_", "assigned", "text"), TEXTS)
def test_texts_of_an_update(graph: og.Graph, rule: str, _: Any, assigned: str, text: str) -> None:
    body = "update Person set { %s } where name = 'Cat'".replace("'", '"')
    error = refused_mutation(graph, body.replace("%s", assigned))
    assert (error.rule, str(error)) == (rule, text.replace("'New'", "'Cat'"))


def test_an_enum_is_told_by_its_values(graph: og.Graph) -> None:
    text = "invalid enum value 'mid' for Person.rank (expected: high, low)"
    error = refused(graph, [person("New", rank="mid")])
    assert error.rule == "enum"
    assert str(error).endswith(text)
    source = 'query q($r: String) { insert Person { name: "New" rank: $r } }'
    error = refused_mutation(graph, source, r="mid")
    assert (error.rule, str(error)) == ("enum", text)
    error = refused(graph, [edge("WorksAt", None, "Cat", "7", role="x")])
    assert str(error).endswith("invalid enum value 'x' for WorksAt.role (expected: boss, hand)")


def test_not_a_number_is_told_by_the_range(graph: og.Graph) -> None:
    frame = pa.table({"name": ["New"], "score": [math.nan]})
    error = refused(graph, {"Person": frame})
    assert error.rule == "range"
    assert str(error).endswith("@range violation on Person.score: value is NaN")


@pytest.mark.parametrize(
    ("assigned", "value", "shown"),
    [
        ("opened", "2020-01-02", "18263"),
        ("seen", "2020-01-02T03:04:05Z", "1577934245000"),
        ("big", 9, "9"),
    ],
)
def test_unique_values_of_every_type_are_found(
    graph: og.Graph, assigned: str, value: object, shown: str
) -> None:
    error = refused(graph, [{"type": "Firm", "data": {"id_number": 99, assigned: value}}])
    assert error.rule == "unique"
    holder = "7" if assigned == "opened" else "8"
    assert str(error).endswith(
        f"@unique violation on Firm.{assigned}: value '{shown}' held by '{holder}' and '99'"
    )


def test_missing_values_are_required(graph: og.Graph) -> None:
    error = refused(graph, [person("New", level=None)])
    assert error.rule == "required"
    assert str(error).endswith("non-nullable property 'level' has null or invalid values")
    source = 'query q($l: I32?) { insert Person { name: "New" level: $l } }'
    assert refused_mutation(graph, source, l=None).rule == "required"
    source = 'query q($l: I32?) { update Person set { level: $l } where name = "Ann" }'
    assert refused_mutation(graph, source, l=None).rule == "required"


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        (("Zed", "Ann"), "src 'Zed' not found in Person"),
        (("Ann", "Zed"), "dst 'Zed' not found in Person"),
    ],
)
def test_ends_must_exist(graph: og.Graph, ends: tuple[str, str], text: str) -> None:
    error = refused(graph, [edge("Knows", None, *ends)])
    assert error.rule == "endpoint"
    assert str(error).endswith(text)
    error = refused_mutation(graph, f'insert Knows {{ from: "{ends[0]}" to: "{ends[1]}" }}')
    assert (error.rule, str(error)) == ("endpoint", text)


def test_an_end_is_an_id_and_not_any_property(graph: og.Graph) -> None:
    error = refused(graph, [edge("Knows", None, "Ann", "ben@x")])
    assert str(error).endswith("dst 'ben@x' not found in Person")
    # An id of another type does not help.
    assert refused(graph, [edge("Knows", None, "Ann", "7")]).rule == "endpoint"


# -- all at once ---------------------------------------------------------------------------------


def test_everything_is_told_at_once_in_the_order_of_the_rules(graph: og.Graph) -> None:
    error = refused(
        graph,
        [
            edge("Knows", "x1", "Ann", "Nobody"),
            person("B", email="ann@x", age=151),
            person("A", code="x", age=-1),
            edge("Knows", "x2", "Cat", "Ann", tag="t1"),
            edge("WorksAt", "x3", "Ann", "8"),
        ],
        mode="append",
    )
    assert [(found["rule"], found["entity_id"]) for found in error.details["violations"]] == [
        ("range", "A"),
        ("range", "B"),
        ("check", "A"),
        ("unique", "B"),
        ("unique", "x2"),
        ("endpoint", "x1"),
        ("cardinality", "Ann"),
    ]
    assert error.rule == "range"
    assert error.details["total"] == 7
    assert str(error).splitlines()[-1] == "7 problems; nothing was written"


def test_a_hundred_are_shown_and_all_are_counted(graph: og.Graph, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    lines = [json.dumps(person(f"p{number}", age=151 + number)) for number in range(250)]
    file.write_text("\n".join(lines))
    error = refused(graph, file, mode="append")
    told = str(error).splitlines()
    assert len(told) == 102
    column = lines[0].index("151") + 1
    assert told[0] == f"{file}:1:{column}: @range violation on Person.age: value 151 > max 150"
    assert told[99].startswith(f"{file}:100:")
    assert told[100:] == ["… and 150 more", "250 problems; nothing was written"]
    assert error.details["total"] == 250
    assert len(error.details["violations"]) == 100
    assert error.details["violations"][7]["line"] == 8


def test_problems_are_counted_over_rules(graph: og.Graph) -> None:
    people = [person(f"p{number}", age=-1, code="x", email="same") for number in range(60)]
    error = refused(graph, people, mode="append")
    assert error.details["total"] == 60 + 60 + 59
    assert len(error.details["violations"]) == 100
    assert str(error).splitlines()[-1] == "179 problems; nothing was written"


def test_a_file_is_named_with_line_and_column(graph: og.Graph, tmp_path: Path) -> None:
    good, bad = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    good.write_text(json.dumps(person("Good")) + "\n")
    line = '{"type": "Person", "data": {"name": "Bad", "age": 200}}'
    bad.write_text(f"\n{line}\n")
    column = line.index("200") + 1
    error = refused(graph, [good, bad], mode="append")
    assert str(error) == f"{bad}:2:{column}: @range violation on Person.age: value 200 > max 150"
    violation = error.details["violations"][0]
    assert (violation["source"], violation["line"], violation["column"]) == (str(bad), 2, column)


# -- uniqueness ----------------------------------------------------------------------------------


def test_one_batch_may_not_repeat_a_tuple_even_for_one_id(graph: og.Graph) -> None:
    notes = [{"edge": "Knows", "from": "Ann", "to": "Ben", "data": {"id": "k5", "tag": "x"}}] * 2
    error = refused(graph, notes)
    assert str(error).endswith("@unique violation on Knows.tag: value 'x' held by 'k5' and 'k5'")


def test_when_a_batch_repeats_a_tuple_the_next_passes_are_skipped(graph: og.Graph) -> None:
    error = refused(graph, [person("X", email="ann@x"), person("Y", email="ann@x")])
    assert error.details["total"] == 1
    assert str(error).endswith("value 'ann@x' held by 'X' and 'Y'")


def test_two_inserts_of_one_key_are_an_upsert_pair(graph: og.Graph) -> None:
    result = mutate(
        graph, 'insert Person { name: "New" age: 1 } insert Person { name: "New" age: 2 }'
    )
    assert result.affected_nodes == 2
    assert rows(graph, "Person")["New"]["age"] == 2


def test_one_statement_may_not_give_two_rows_one_value(graph: og.Graph) -> None:
    error = refused_mutation(graph, 'update Person set { email: "same" } where level = 1')
    assert error.rule == "unique"
    assert "value 'same' held by" in str(error)


def test_two_statements_may_not_end_with_one_value(graph: og.Graph) -> None:
    error = refused_mutation(
        graph,
        'insert Person { name: "X" email: "new" } insert Person { name: "Y" email: "new" }',
    )
    assert str(error) == "@unique violation on Person.email: value 'new' held by 'X' and 'Y'"


FREED = 'update Person set { email: null } where name = "Ann"'
REPLACED = 'insert Person { name: "Ann" }'
USED = 'insert Person { name: "New" email: "ann@x" }'


@pytest.mark.parametrize(
    "body",
    [
        # Freed by an update or an upsert, before it is used or after.
        f"{FREED} {USED}",
        f"{USED} {FREED}",
        f"{REPLACED} {USED}",
        f"{USED} {REPLACED}",
    ],
)
def test_a_value_that_is_freed_may_be_used_again(graph: og.Graph, body: str) -> None:
    mutate(graph, body)
    assert rows(graph, "Person")["New"]["email"] == "ann@x"


def test_values_may_be_swapped(graph: og.Graph) -> None:
    graph.load([person("Ann", email="ben@x"), person("Ben", email="ann@x")], mode="merge")
    found = rows(graph, "Person")
    assert (found["Ann"]["email"], found["Ben"]["email"]) == ("ben@x", "ann@x")
    mutate(
        graph,
        'update Person set { email: "ann@x" } where name = "Ann" '
        'update Person set { email: "ben@x" } where name = "Ben"',
    )
    found = rows(graph, "Person")
    assert (found["Ann"]["email"], found["Ben"]["email"]) == ("ann@x", "ben@x")


def test_a_deleted_row_frees_its_value(graph: og.Graph) -> None:
    mutate(graph, 'delete WorksAt where from = "Nobody"')
    mutate(graph, 'delete Person where name = "Ann"')
    mutate(graph, 'insert Person { name: "New" email: "ann@x" first: "Ann" last: "Ash" }')


def test_a_row_keeps_its_own_value(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { age: 3 email: "ann@x" } where name = "Ann"')
    mutate(graph, 'insert Person { name: "Ann" email: "ann@x" }')
    graph.load([person("Ann", email="ann@x")], mode="merge")


def test_nulls_are_exempt(graph: og.Graph) -> None:
    people = [person(f"p{number}", first="Ann") for number in range(3)]
    graph.load(people, mode="append")
    assert len(rows(graph, "Person")) == 6


def test_texts_that_look_alike_are_different_tuples(graph: og.Graph) -> None:
    people = [
        person("A", first="x, y", last="z"),
        person("B", first="x", last="y, z"),
        person("C", first="", last=""),
        person("D", first="é", last="z"),
        person("E", first="e\u0301", last="z"),
    ]
    graph.load(people, mode="append")
    assert refused(graph, [person("F", first="", last="")]).rule == "unique"


def test_an_edge_may_be_unique_by_its_ends(graph: og.Graph) -> None:
    error = refused(graph, [edge("Likes", "l2", "Ann", "n1")])
    assert str(error).endswith(
        "@unique violation on Likes.(dst, src): value '(n1, Ann)' held by 'l1' and 'l2'"
    )
    error = refused_mutation(graph, 'insert Likes { from: "Ann" to: "n1" }')
    assert "held by 'l1' and" in str(error)
    graph.load([edge("Likes", "l1", "Ann", "n1"), edge("Likes", "l2", "Ben", "n1")], mode="merge")
    error = refused(graph, [edge("Likes", "l2", "Ann", "n1")])
    assert error.rule == "unique"


def test_keys_of_numbers_and_several_members(graph: og.Graph) -> None:
    slot = {"type": "Slot", "data": {"day": "2020-01-02", "hour": 3}}
    graph.load([slot], mode="append")
    assert rows(graph, "Slot").keys() == {'["18263","3"]'}
    error = refused(graph, [slot, slot])
    assert str(error).endswith(
        "@unique violation on Slot.(day, hour): value '(18263, 3)' held by "
        """'["18263","3"]' and '["18263","3"]'"""
    )
    with unchanged(graph), pytest.raises(errors.KeyConflict):
        graph.load([slot], mode="append")
    with unchanged(graph), pytest.raises(errors.ValidationError):
        graph.load([{"type": "Firm", "data": {"id": "007", "id_number": 7}}], mode="merge")


# -- cardinality ---------------------------------------------------------------------------------


def test_too_many_edges(graph: og.Graph) -> None:
    more = [edge("Knows", None, "Ann", "Cat"), edge("Knows", None, "Ann", "Ann")]
    error = refused(graph, more)
    assert error.rule == "cardinality"
    text = "@card violation on edge Knows: source 'Ann' has 3 edges (max 2)"
    assert str(error).endswith(text)
    error = refused_mutation(
        graph, 'insert Knows { from: "Ann" to: "Cat" } insert Knows { from: "Ann" to: "Ann" }'
    )
    assert str(error) == text
    graph.load(more[:1], mode="append")


def test_too_few_edges(graph: og.Graph) -> None:
    error = refused_mutation(graph, 'delete WorksAt where from = "Ann"')
    assert error.rule == "cardinality"
    assert str(error) == "@card violation on edge WorksAt: source 'Ann' has 0 edges (min 1)"
    error = refused(graph, [edge("WorksAt", None, "Ann", "8")])
    assert str(error).endswith("source 'Ann' has 2 edges (max 1)")


def test_deleting_the_other_end_takes_edges_away(graph: og.Graph) -> None:
    error = refused_mutation(graph, "delete Firm where id_number = 7")
    assert str(error) == "@card violation on edge WorksAt: source 'Ann' has 0 edges (min 1)"


def test_a_source_that_goes_itself_is_not_counted(graph: og.Graph) -> None:
    result = mutate(graph, 'delete Person where name = "Ann"')
    assert (result.affected_nodes, result.affected_edges) == (1, 3)
    result = mutate(graph, 'delete Firm where id_number = 8 delete Person where name = "Ben"')
    assert (result.affected_nodes, result.affected_edges) == (2, 1)


def test_nodes_that_no_edge_change_touches_are_left_alone(graph: og.Graph) -> None:
    # Nobody employs Cat, and nobody asks.
    mutate(graph, 'insert Person { name: "Dan" } update Person set { age: 1 } where name = "Cat"')
    assert "Dan" in rows(graph, "Person")


def test_a_moved_edge_counts_for_both_sources(graph: og.Graph) -> None:
    error = refused(graph, [edge("WorksAt", "w1", "Ben", "7")])
    told = [found["message"] for found in error.details["violations"]]
    assert told == [
        "@card violation on edge WorksAt: source 'Ann' has 0 edges (min 1)",
        "@card violation on edge WorksAt: source 'Ben' has 2 edges (max 1)",
    ]
    graph.load([edge("WorksAt", "w1", "Ben", "7"), edge("WorksAt", "w2", "Ann", "8")], mode="merge")
    assert {id_: row[SRC] for id_, row in rows(graph, "WorksAt").items()} == {
        "w1": "Ben",
        "w2": "Ann",
    }


def test_overwrite_counts_the_edges_it_drops(graph: og.Graph) -> None:
    error = refused(graph, [edge("WorksAt", "w1", "Ann", "7")], mode="overwrite")
    assert str(error) == "@card violation on edge WorksAt: source 'Ben' has 0 edges (min 1)"
    graph.load(
        [edge("WorksAt", "w1", "Ann", "7"), edge("WorksAt", "w9", "Ben", "7")], mode="overwrite"
    )


def test_overwrite_of_the_sources_too_skips_those_that_go(graph: og.Graph) -> None:
    graph.load(
        [
            person("Ann"),
            edge("WorksAt", "w1", "Ann", "7"),
            edge("Knows", "k1", "Ann", "Ann"),
            edge("Likes", "l1", "Ann", "n1"),
        ],
        mode="overwrite",
    )
    assert rows(graph, "Person").keys() == {"Ann"}


# -- elsewhere -----------------------------------------------------------------------------------


def test_the_rules_hold_on_a_branch_for_what_the_branch_shows(graph: og.Graph) -> None:
    graph.branches.create("dev")
    mutate(graph, 'delete Person where name = "Ann"')
    error = refused(graph, [person("New", email="ann@x")], branch="dev")
    assert error.rule == "unique"
    graph.load([person("New", email="ann@x")], mode="append")
    graph.load([edge("Knows", None, "Cat", "Ann")], mode="append", branch="dev")
    assert refused(graph, [edge("Knows", None, "Cat", "Ann")]).rule == "endpoint"


def test_a_refused_query_leaves_no_statement_behind(graph: og.Graph) -> None:
    error = refused_mutation(
        graph,
        'insert Person { name: "Dan" } insert Knows { from: "Dan" to: "Zed" } '
        'update Person set { age: 5 } where name = "Ben"',
    )
    assert error.rule == "endpoint"
    assert "Dan" not in rows(graph, "Person")


def test_ids_and_values_are_quoted_in_part(tmp_path: Path) -> None:
    graph = og.init(
        tmp_path / "graph",
        "node A { n: String @key  u: String? @unique }\nedge E: A -> A @card(0..1)",
    )
    long = "x" * 50_000

    def node(name: str, **data: str) -> dict[str, object]:
        return {"type": "A", "data": {"n": name, **data}}

    def edge(source: str, target: str) -> dict[str, object]:
        return {"edge": "E", "from": source, "to": target}

    graph.load([node(long), node(f"{long}b")], mode="append")
    for wrong in (
        [node(long)],
        [node("a", u=long), node("b", u=long)],
        [edge(long, f"{long}c")],
        [edge(long, long), edge(long, f"{long}b")],
        [node("c", **{long: "a"})],
        [{"type": long, "data": {}}],
        [{**node("d"), long: 1}],
    ):
        with pytest.raises(errors.OmniGraphError) as refused:
            graph.load(wrong, mode="append")
        assert len(refused.value.message) < 1500, refused.value.message[:100]
