"""Merging schemas: identities over several merges, physical columns, and bad requests."""

from __future__ import annotations

import re
from dataclasses import replace

import msgspec
import pytest

from omnigraph.errors import BadRequest, ParseError, SchemaError
from omnigraph.lang.schema.compile import compile_schema, shape_of_source
from omnigraph.lang.schema.ir.ir import PropertyField, SchemaIR, UniqueConstraint
from omnigraph.lang.schema.merge.conflicts import (
    SCHEMA_CONFLICTS,
    Resolve,
    concerns_schema,
    read_schema_resolution,
    schema_part,
)
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.merge.operation import SchemaMerge, merge_schemas
from tests.lang.schema_merging import Sides, Wrote, ids_by_name, shape_of, version

SHIP = "node Ship { name: String @key tons: F64? }"


def stored(found: SchemaMerge) -> SchemaVersion:
    assert found.ir is not None
    assert found.source_text is not None
    return SchemaVersion(found.source_text, found.ir)


# -- what became one stays one -----------------------------------------------------------


def test_a_later_merge_in_either_direction_sees_one_thing() -> None:
    base = version("node A {}")
    theirs = version(f"node A {{}} {SHIP}", base, 1000)
    ours = version(f"node A {{}} {SHIP}", base, 2000)
    first = Sides(base, theirs, ours).merged()
    main = stored(first)
    # Both go on: theirs renames the type, ours gives it a property.
    later = version(
        'node A {} node Boat @rename_from("Ship") { name: String @key tons: F64? }', theirs, 1100
    )
    moved = version(f"node A {{}} {SHIP.replace('tons', 'crew: I32? tons')}", main, 2100)
    sides = Sides(theirs, later, moved, unified=first.unified)
    there, back = sides.merged(), sides.swapped().merged()
    assert there.ir is not None
    assert back.ir is not None
    assert shape_of(there) == shape_of(back)
    # Each side keeps its table.
    assert ids_by_name(there.ir)["node Boat"] == 2000
    assert ids_by_name(back.ir)["node Boat"] == 1000
    assert ids_by_name(there.ir)["node Boat.crew"] == ids_by_name(back.ir)["node Boat.crew"] == 2100
    assert back.unified == {own: merged for merged, own in there.unified.items()}
    # Without the record they are two things, of which one was renamed.
    assert {each.kind for each in replace(sides, unified=()).merged().conflicts} != set()


def test_a_third_branch_learns_from_both_records() -> None:
    base = version("node A {}")
    one, two, three = (version(f"node A {{}} {SHIP}", base, first) for first in (1000, 2000, 3000))
    pairs = [
        *Sides(base, one, two).merged().unified.items(),
        *Sides(base, one, three).merged().unified.items(),
    ]
    renamed = version(
        'node A {} node Boat @rename_from("Ship") { name: String @key tons: F64? }', two, 2100
    )
    found = Sides(one, renamed, three, unified=pairs).merged()
    assert found.ir is not None
    assert ids_by_name(found.ir)["node Boat"] == 3000


def test_what_was_known_to_be_one_and_is_declared_differently() -> None:
    base = version("node A {}")
    theirs = version(f"node A {{}} {SHIP}", base, 1000)
    ours = version(f"node A {{}} {SHIP.replace('F64', 'F32')}", base, 2000)
    pairs = [
        (1000, 2000),
        *(
            (ids_by_name(theirs.ir)[name], ids_by_name(ours.ir)[name])
            for name in ("node Ship.tons",)
        ),
    ]
    sides = Sides(base, theirs, ours, unified=pairs)
    assert [each.kind for each in sides.merged().conflicts] == ["schema_divergent_add"]
    found = replace(sides, resolve="theirs").merged()
    assert "tons: F64?" in (found.source_text or "")


def test_ids_that_contradict_each_other_are_refused() -> None:
    base = version("")
    theirs, ours = version("node A {}", base, 1000), version("interface B {}", base, 1000)
    with pytest.raises(SchemaError, match="one identity is used twice"):
        Sides(base, theirs, ours).merged()
    both = version("node A {} node B {}", base, 1000)
    with pytest.raises(SchemaError, match="one identity is used twice"):
        Sides(base, both, base, unified=[(1000, 1001)]).merged()


# -- requests ----------------------------------------------------------------------------


def test_schemas_of_different_graphs() -> None:
    here = version("node A {}")
    there = SchemaVersion("node A {}", compile_schema("node A {}").ir)
    with pytest.raises(SchemaError, match="different graphs"):
        Sides(here, there, here).merged()


def test_a_text_that_is_not_that_of_the_ir() -> None:
    base = version("node A { a: I32 }")
    for text in ("node B { a: I32 }", "node A { b: I32 }"):
        with pytest.raises(SchemaError, match="IR"):
            Sides(base, SchemaVersion(text, base.ir), base).merged()


@pytest.mark.parametrize(
    ("resolve", "problem"),
    [
        ("mine", "source (theirs) or target (ours), not to 'mine'"),
        ({"A": "mine"}, "not to 'mine'"),
        ({"schema_drop_chnge": "ours"}, "did you mean `schema_drop_change`?"),
        ({"divergent_update": "ours"}, "Type or Type.property"),
        ({"A:x": "ours"}, "no kind of conflict 'A:x' between schemas"),
        ({"": "ours"}, "the kinds are schema_divergent_add"),
    ],
)
def test_a_resolution_that_means_nothing(resolve: Resolve, problem: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(problem)):
        read_schema_resolution(resolve)


def test_which_keys_are_about_schemas() -> None:
    schema = [*SCHEMA_CONFLICTS, "Crew", "Crew.age", "node:Crew", "edge:Knows.since", "interface:I"]
    rows = ["Crew:ann", "node:Crew:ann", "divergent_update", "Crew.age:x", "crew", ""]
    assert [name for name in schema if not concerns_schema(name)] == []
    assert [name for name in rows if concerns_schema(name)] == []
    assert schema_part(dict.fromkeys([*schema, *rows], "ours")) == dict.fromkeys(schema, "ours")
    assert (schema_part(None), schema_part("ours")) == (None, "ours")


def test_a_constraint_that_was_accepted_long_ago_stays() -> None:
    text = "node A { a: I32 b: Blob? @unique(b) }"
    new = version(text.replace("@unique(b)", ""))
    with pytest.raises(ParseError, match="cannot be part of"):
        compile_schema(text)
    (node,) = new.ir.nodes
    b = next(each for each in node.properties if each.name == "b")
    field = PropertyField(node.type_id, node.name, b.property_id, b.name)
    node = msgspec.structs.replace(node, constraints=(UniqueConstraint((field,)),))
    base = SchemaVersion(text, msgspec.structs.replace(new.ir, nodes=(node,)))
    theirs = SchemaVersion(
        "node A { a: I32 b: Blob? @unique(b) c: I32? }", with_property(base.ir, "c", 1000)
    )
    ours = SchemaVersion(
        "node A { a: I32 b: Blob? @unique(b) d: I32? }", with_property(base.ir, "d", 2000)
    )
    wrote = Wrote(theirs, ours)
    found = merge_schemas(base, theirs, ours, touched=wrote)
    assert found.conflicts == ()
    (merged,) = shape_of_source(found.source_text or "", stored=True).nodes
    assert [each.name for each in merged.properties] == ["a", "b", "c", "d"]


def with_property(ir: SchemaIR, name: str, identity: int) -> SchemaIR:
    (node,) = ir.nodes
    like = next(each for each in node.properties if each.name == "a")
    type_ = msgspec.structs.replace(like.prop_type, nullable=True)
    new = msgspec.structs.replace(like, name=name, property_id=identity, prop_type=type_)
    node = msgspec.structs.replace(node, properties=(*node.properties, new))
    return msgspec.structs.replace(ir, nodes=(node,), next_identity_id=identity + 1)
