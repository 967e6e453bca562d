"""Physical columns and reserved ids, through versions of one schema."""

from __future__ import annotations

import pytest

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.columns import (
    ColumnNames,
    carried,
    columns_from_text,
    columns_of_new,
)
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.schema.ir.identity import identities, new_identities
from omnigraph.lang.schema.ir.ir import SchemaIR, validate_ir


def compiled(
    source: str, accepted: SchemaIR | None = None, first_id: int | None = None
) -> SchemaIR:
    ir = compile_schema(source, accepted=accepted, first_id=first_id).ir
    validate_ir(ir)
    return ir


def shown(columns: ColumnNames, ir: SchemaIR) -> dict[str, str]:
    """Columns by property; what is stored of them reads back the same."""
    assert columns_from_text(columns.to_text(ir), ir) == columns
    return {
        f"{table.name}.{property_.name}": columns[table.type_id][property_.property_id]
        for table in ir.tables()
        for property_ in table.properties
    }


def test_a_new_property_has_a_column_of_its_name() -> None:
    ir = compiled("node A { id: String b: I32 } edge E: A -> A { src: String }")
    columns = columns_of_new(ir)
    assert shown(columns, ir) == {"A.id": "id", "A.b": "b", "E.src": "src"}
    assert columns.to_text(ir) == "{}"


def test_names_that_differ_in_case_or_belong_to_storage_get_others() -> None:
    ir = compiled("node A { ab: I32 aB: I32 _ROWID: I32 _score: F64 }")
    found = shown(columns_of_new(ir), ir)
    by_name = {p.name: p.property_id for p in ir.nodes[0].properties}
    assert found == {
        "A._ROWID": f"_ROWID@{by_name['_ROWID']}",
        "A._score": f"_score@{by_name['_score']}",
        "A.aB": "aB",
        "A.ab": f"ab@{by_name['ab']}",
    }


def test_a_rename_keeps_the_column_and_its_name_is_not_given_again() -> None:
    first = compiled("node A { age: I32 }")
    columns = columns_of_new(first)
    second = compiled('node A { years: I32 @rename_from("age") }', first)
    columns = carried(columns, second)
    assert shown(columns, second) == {"A.years": "age"}
    third = compiled("node A { years: I32 age: String? }", second)
    columns = carried(columns, third)
    age = third.nodes[0].properties[0].property_id
    assert shown(columns, third) == {"A.years": "age", "A.age": f"age@{age}"}
    assert columns[third.nodes[0].type_id].retired == ()


def test_a_dropped_property_retires_its_column() -> None:
    first = compiled("node A { age: I32 b: I32 }")
    second = compiled("node A { b: I32 }", first)
    columns = carried(columns_of_new(first), second)
    assert columns[second.nodes[0].type_id].retired == ("age",)
    third = compiled("node A { b: I32 aGE: I32? age: I32? }", second)
    columns = carried(columns, third)
    found = shown(columns, third)
    assert len({column.lower() for column in found.values()} | {"age"}) == 4
    assert '"retired":["age"]' in columns.to_text(third)


def test_a_rewritten_property_gets_another_column_each_time() -> None:
    ir = compiled("node A { n: I32 }")
    (n,) = (p.property_id for p in ir.nodes[0].properties)
    columns, seen = columns_of_new(ir), []
    for identity in (71, 72, 73):
        seen.append(columns[ir.nodes[0].type_id][n])
        columns = carried(columns, ir, {n: identity})
        shown(columns, ir)
    assert seen == ["n", "n@71", "n@72"]
    assert columns[ir.nodes[0].type_id].retired == ("n", "n@71", "n@72")


def test_a_new_type_starts_anew() -> None:
    first = compiled("node A { a: I32 }")
    second = compiled("node B { a: I32 }", first)
    columns = carried(columns_of_new(first), second)
    assert list(columns.tables) == [second.nodes[0].type_id]
    assert shown(columns, second) == {"B.a": "a"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "expected `object`"),
        ('{"tables":{"9":{}}}', "there is no type 9"),
        ('{"tables":{"1":{"columns":{"77":"x"}}}}', "A has no property 77"),
        ('{"tables":{"1":{"retired":["A"]}}}', "A has one column twice"),
    ],
)
def test_stored_names_that_do_not_fit_are_refused(text: str, problem: str) -> None:
    ir = compiled("node A { a: I32 }")
    with pytest.raises(SchemaError, match=problem):
        columns_from_text(text, ir)


# -- reserved ids --------------------------------------------------------------------


def test_new_ids_come_from_the_reserved_range_and_are_counted() -> None:
    first = compiled("node A { a: I32 }")
    assert (new_identities(None, first), first.next_identity_id) == (3, 4)
    source = "node A { a: I32 b: I32? } node B { c: I32 } edge E: A -> B"
    needed = new_identities(first, compiled(source, first))
    assert needed == 1 + 3 + 2
    second = compiled(source, first, first_id=100)
    assert identities(second) - identities(first) == set(range(100, 100 + needed))
    assert second.next_identity_id == 106
    assert compiled(source, second, first_id=500) == second


def test_a_range_below_the_counter_leaves_the_counter() -> None:
    first = compiled("node A { a: I32 }", first_id=50)
    assert first.next_identity_id == 53
    second = compiled("node A { a: I32 b: I32? }", first, first_id=10)
    assert second.next_identity_id == 53
    assert identities(second) == {10, 50, 51, 52}


@pytest.mark.parametrize("first_id", [0, 2, 3])
def test_a_range_that_is_taken_is_refused(first_id: int) -> None:
    first = compiled("node A { a: I32 }")
    with pytest.raises(SchemaError, match=r"taken|never zero"):
        compiled("node A { a: I32 b: I32? }", first, first_id=first_id)
