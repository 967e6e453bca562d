"""Row rules: what is refused, in which words and in which order."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.lang.schema.catalog import CheckRule
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.write.change.change_set import EntityType, row_columns
from omnigraph.write.rules.row_rules import check_required, check_shapes, check_values
from omnigraph.write.rules.violations import NoSource, Violations

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    score: F32?
    weight: F64?
    code: String?
    mood: enum(sad, happy)?
    tags: [String]?
    rates: [F64]?
    face: Vector(2)?
    born: Date?
    @range(age, 0..120)
    @range(score, -1.5..)
    @range(weight, ..10)
    @check(code, "^[A-Z]{2}$")
}
node Doc {
    slug: String @key
    body: String
    vector: Vector(2) @embed(body)
}
edge Knows: Person -> Person { mood: enum(sad, happy) }
"""
CATALOG = compile_schema(SCHEMA).catalog
PERSON, DOC, KNOWS = CATALOG.nodes["Person"], CATALOG.nodes["Doc"], CATALOG.edges["Knows"]


def table(type_: EntityType, rows: list[dict[str, Any]]) -> pa.Table:
    schema = row_columns(type_)
    known = [{ID: row.get("name", "x"), **row} for row in rows]
    # One chunk for each row, so that every rule meets more than one.
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays(
                [pa.array([row.get(field.name)], field.type) for field in schema], schema=schema
            )
            for row in known
        ],
        schema=schema,
    )


def values(type_: EntityType, *rows: dict[str, Any]) -> list[str]:
    violations = Violations()
    check_values(type_, table(type_, list(rows)), violations, NoSource())
    assert violations.total == len(violations.kept)
    return [f"{found.rule} {found.entity_id}: {found.text}" for found in violations.kept]


def test_range() -> None:
    assert values(
        PERSON,
        {"name": "a", "age": -1},
        {"name": "b", "age": 121},
        {"name": "c", "age": 0},
        {"name": "d", "age": 120},
        {"name": "e"},
        {"name": "f", "score": -2.5},
        {"name": "g", "score": math.nan},
        {"name": "h", "weight": 10.25},
    ) == [
        "range a: @range violation on Person.age: value -1 < min 0",
        "range b: @range violation on Person.age: value 121 > max 120",
        "range g: @range violation on Person.score: value is NaN",
        "range f: @range violation on Person.score: value -2.5 < min -1.5",
        "range h: @range violation on Person.weight: value 10.25 > max 10",
    ]


def test_check_searches() -> None:
    assert values(
        PERSON, {"name": "a", "code": "AB"}, {"name": "b", "code": "ABC"}, {"name": "c"}
    ) == [
        "check b: @check violation on Person.code: value 'ABC' does not match pattern '^[A-Z]{2}$'"
    ]


def test_the_end_is_the_end_of_the_text() -> None:
    (told,) = values(PERSON, {"name": "a", "code": "AB\n"})
    assert told.startswith("check a: @check violation on Person.code: value 'AB\n' does not")


def test_a_pattern_of_looser_times_is_told_when_it_is_needed() -> None:
    strict = compile_schema("node T { a: String? }").catalog.nodes["T"]
    stored = replace(strict, checks=(CheckRule("a", "(x+x+)+(?=y)"),))
    assert values(stored, {}) == []
    (told,) = values(stored, {"a": "x" * 60})
    assert told == (
        "check x: @check violation on T.a: '(x+x+)+(?=y)' is no pattern of RE2: "
        "invalid perl operator: (?="
    )


def test_a_long_value_is_quoted_in_part() -> None:
    long = "x" * 100_000
    for told in values(PERSON, {"name": "a", "code": long, "mood": long}):
        assert len(told) < 400
        assert f"'{'x' * 199}…'" in told


def test_enum() -> None:
    expected = "enum x: invalid enum value 'mad' for Knows.mood (expected: happy, sad)"
    assert values(KNOWS, {"mood": "mad", SRC: "a", DST: "b"}) == [expected]
    assert values(PERSON, {"name": "a", "mood": "sad"}, {"name": "b", "mood": None}) == []


def test_shapes() -> None:
    not_finite = "the number is not finite; write null if there is none"
    assert values(
        PERSON,
        {"name": "a", "tags": ["x", None]},
        {"name": "b", "tags": ["x"], "face": [1.0, math.inf]},
        {"name": "c", "rates": [1.0, math.nan], "face": None},
        {"name": "d", "face": [None, 1.0]},
        {"name": "e", "weight": math.inf},
    ) == [
        "type d: Person.face: a vector has no null elements",
        f"type b: Person.face: {not_finite}",
        f"type c: Person.rates: {not_finite}",
        "type a: Person.tags: a list has no null elements",
        f"type e: Person.weight: {not_finite}",
    ]


def test_values_are_told_in_the_order_of_the_rules() -> None:
    row = {"name": "a", "age": 999, "code": "no", "mood": "mad", "tags": [None]}
    assert [told.split()[0] for told in values(PERSON, row)] == ["type", "range", "check", "enum"]


def test_required() -> None:
    violations = Violations()
    rows = table(DOC, [{"slug": "a", "body": "b", "vector": [1, 2]}, {"slug": "b"}])
    check_required(DOC, rows, violations, NoSource())
    assert [(found.rule, found.property, found.text) for found in violations.kept] == [
        ("required", "body", "non-nullable property 'body' has null or invalid values"),
        ("required", "vector", "non-nullable property 'vector' has null or invalid values"),
    ]


def test_a_vector_to_be_embedded_is_not_missing_yet() -> None:
    violations = Violations()
    rows = table(DOC, [{"slug": "a", "body": "b"}])
    check_required(DOC, rows, violations, NoSource(), before_embedding=True)
    assert not violations


@pytest.mark.parametrize("shown", [0, 3])
def test_all_are_counted_and_the_first_are_told(shown: int) -> None:
    violations = Violations(shown)
    rows = table(PERSON, [{"name": str(age), "age": -age} for age in range(10)])
    check_values(PERSON, rows, violations, NoSource())
    assert violations.total == 9
    assert [found.entity_id for found in violations.kept] == ["1", "2", "3"][:shown]


def test_no_rows() -> None:
    for type_ in (PERSON, DOC, KNOWS):
        empty = row_columns(type_).empty_table()
        violations = Violations()
        check_values(type_, empty, violations, NoSource())
        check_shapes(type_, empty, violations, NoSource())
        check_required(type_, empty, violations, NoSource())
        assert not violations
