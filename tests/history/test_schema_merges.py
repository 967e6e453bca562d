"""Branches with different schemas merge: what comes out, what stands in the way, what follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from tests.faults import observed

PEOPLE = """\
node Person {
    name: String @key
    age: I32?
    bio: String?
}
edge Knows: Person -> Person {
    since: I32?
}
"""
ROWS = """\
{"type":"Person","data":{"name":"Ann","age":30,"bio":"hi"}}
{"type":"Person","data":{"name":"Ben"}}
{"type":"Person","data":{"name":"Cy","age":7}}
{"edge":"Knows","from":"Ann","to":"Ben","data":{"id":"ab","since":2020}}
{"edge":"Knows","from":"Ben","to":"Cy","data":{"id":"bc"}}
"""

Edit = Callable[[str], str]


def put(old: str, new: str) -> Edit:
    def edit(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return edit


def plus(more: str) -> Edit:
    return lambda text: f"{text}{more}\n"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", PEOPLE)
    graph.load(ROWS, mode="append")
    graph.branches.create("dev")
    return graph


def change(graph: og.Graph, branch: str, *edits: Edit) -> None:
    text = graph.schema_at(branch)
    for edit in edits:
        text = edit(text)
    graph.apply_schema(text, branch=branch)


def write(graph: og.Graph, branch: str, *statements: str) -> None:
    graph.mutate(f"query m() {{ {' '.join(statements)} }}", branch=branch)


def rows(graph: og.Graph, branch: str = "main") -> dict[str, dict[str, Any]]:
    """Everything on a branch by type and id, as export has it."""
    found: dict[str, dict[str, Any]] = {}
    for line in graph.export(branch=branch):
        body = json.loads(line)
        data = body["data"]
        id_ = data.pop("id")
        if "edge" in body:
            data |= {"from": body["from"], "to": body["to"]}
        found[f"{body.get('type') or body['edge']}:{id_}"] = data
    return found


def conflicts_of(
    graph: og.Graph, source: str = "dev", into: str = "main"
) -> list[errors.MergeConflict]:
    before = graph.snapshot(into).commit_id
    with pytest.raises(errors.MergeConflicts) as error:
        graph.branches.merge(source, into)
    assert graph.snapshot(into).commit_id == before
    told = graph.branches.merge(source, into, dry_run=True).conflicts
    assert set(map(str, told)) == set(map(str, error.value.conflicts))
    return list(error.value.conflicts)


def kinds(found: list[errors.MergeConflict]) -> list[tuple[str, str, str | None, str]]:
    return [(one.kind, one.type_name, one.property, one.entity_id) for one in found]


# -- both sides, different parts -------------------------------------------------------------


def test_both_sides_change_different_parts(graph: og.Graph) -> None:
    change(
        graph,
        "dev",
        put("age: I32?", 'years: I64? @rename_from("age")\n    score: F64 @default(0.5)'),
        plus("node City { name: String @key }\nedge Lives: Person -> City"),
    )
    write(
        graph,
        "dev",
        'insert City { name: "Rome" }',
        'insert Lives { from: "Ann", to: "Rome" }',
        'update Person set { score: 0.9, years: 5000000000 } where name = "Ann"',
    )
    change(graph, "main", put("bio: String?", "bio: String?\n    mail: String? @unique"))
    write(graph, "main", 'insert Person { name: "Dee", age: 9, mail: "d@x" }')
    write(graph, "main", 'update Person set { bio: "ho", mail: "a@x" } where name = "Ann"')
    planned = graph.branches.merge("dev", "main", dry_run=True)
    assert planned.commit is None
    steps = [step.to_json()["kind"] for step in planned.schema.steps]
    assert sorted(steps) == [
        "add_property",
        "add_type",
        "add_type",
        "change_property_type",
        "rename_property",
    ]
    merged = graph.branches.merge("dev", "main")
    assert merged.outcome == "merged"
    found = rows(graph)
    assert found["Person:Ann"] == {
        "name": "Ann",
        "bio": "ho",
        "mail": "a@x",
        "score": 0.9,
        "years": 5_000_000_000,
    }
    assert found["Person:Dee"] == {
        "name": "Dee",
        "bio": None,
        "mail": "d@x",
        "score": 0.5,
        "years": 9,
    }
    assert found["City:Rome"] == {"name": "Rome"}
    assert [one for one in found if one.startswith("Lives:")]
    assert graph.schema_diff("main", "main").steps == ()
    assert rows(og.open(str(graph.location.uri))) == found
    # The other way it is taken over as it is.
    assert graph.branches.merge("main", "dev").outcome == "fast_forward"
    assert rows(graph, "dev") == found
    assert graph.schema_at("dev") == graph.schema


def test_a_fast_forward_takes_the_schema_over_as_it_is(graph: og.Graph) -> None:
    text = "// with a comment\n" + PEOPLE.replace("    age: I32?\n", "    size: F64?\n")
    graph.apply_schema(text, branch="dev")
    write(graph, "dev", 'update Person set { size: 1.5 } where name = "Ben"')
    assert graph.branches.merge("dev", "main").outcome == "fast_forward"
    assert graph.schema == text
    assert rows(graph) == rows(graph, "dev")
    assert graph.branches.merge("dev", "main").outcome == "already_up_to_date"


def test_a_rename_meets_other_changes(graph: og.Graph) -> None:
    change(
        graph,
        "dev",
        put("node Person {", 'node Human @rename_from("Person") {'),
        put("edge Knows: Person -> Person", "edge Knows: Human -> Human"),
    )
    more = put("since: I32?", "since: I32?\n    where: String?")
    change(graph, "main", put("age: I32?", "age: I64?"), more)
    write(graph, "main", 'update Person set { age: 5000000000 } where name = "Cy"')
    write(graph, "dev", 'update Human set { bio: "dev" } where name = "Cy"')
    graph.branches.merge("dev", "main")
    found = rows(graph)
    assert found["Human:Cy"] == {"name": "Cy", "age": 5_000_000_000, "bio": "dev"}
    assert found["Knows:ab"]["where"] is None


def test_a_dropped_property_that_nobody_wrote_to_goes(graph: og.Graph) -> None:
    change(graph, "dev", put("    bio: String?\n", ""))
    write(graph, "main", 'update Person set { age: 31 } where name = "Ann"')
    graph.branches.merge("dev", "main")
    assert rows(graph)["Person:Ann"] == {"name": "Ann", "age": 31}


def test_a_dropped_type_goes_with_its_edges(graph: og.Graph) -> None:
    change(
        graph,
        "dev",
        lambda _: "node Person {\n    name: String @key\n    age: I32?\n    bio: String?\n}\n",
    )
    write(graph, "main", 'update Person set { age: 31 } where name = "Ann"')
    graph.branches.merge("dev", "main")
    assert sorted(rows(graph)) == ["Person:Ann", "Person:Ben", "Person:Cy"]


# -- equal additions -------------------------------------------------------------------------

CITY = "node City {\n    name: String @key\n    size: I32?\n}"


def test_equal_additions_become_one(graph: og.Graph) -> None:
    for branch, name in (("dev", "Rome"), ("main", "Oslo")):
        change(graph, branch, plus(CITY), put("bio: String?", "bio: String?\n    mail: String?"))
        write(graph, branch, f'insert City {{ name: "{name}", size: 1 }}')
        write(graph, branch, f'insert Person {{ name: "{name}", mail: "{branch}" }}')
    graph.branches.merge("dev", "main")
    assert {"City:Rome", "City:Oslo"} <= rows(graph).keys()
    assert rows(graph)["Person:Rome"]["mail"] == "dev"
    assert rows(graph)["Person:Oslo"]["mail"] == "main"
    # Later merges in either direction see one thing.
    write(
        graph,
        "dev",
        'insert City { name: "Bonn" }',
        'update City set { size: 2 } where name = "Rome"',
    )
    write(graph, "main", 'delete City where name = "Oslo"', 'insert City { name: "Nice" }')
    graph.branches.merge("dev", "main")
    cities = {name: row["size"] for name, row in rows(graph).items() if name.startswith("City:")}
    assert cities == {"City:Rome": 2, "City:Bonn": None, "City:Nice": None}
    graph.branches.merge("main", "dev")
    assert rows(graph, "dev") == rows(graph)
    write(graph, "dev", 'delete City where name = "Rome"')
    graph.branches.merge("dev", "main")
    assert "City:Rome" not in rows(graph)


def test_equal_additions_with_different_rows_of_one_key(graph: og.Graph) -> None:
    for branch, size in (("dev", 1), ("main", 2)):
        change(graph, branch, plus(CITY))
        write(graph, branch, f'insert City {{ name: "Rome", size: {size} }}')
    found = conflicts_of(graph)
    assert kinds(found) == [("divergent_insert", "City", None, "Rome")]
    graph.branches.merge("dev", "main", resolve={"City:Rome": "source"})
    assert rows(graph)["City:Rome"] == {"name": "Rome", "size": 1}


@pytest.mark.parametrize("is_on_both", [False, True])
def test_a_new_type_that_got_more_properties_before_it_is_merged(
    graph: og.Graph, is_on_both: bool
) -> None:
    """Its first version has no column of them."""
    grown = CITY.replace("size: I32?", "size: I64?\n    mayor: String?")
    for branch in ("dev", "main") if is_on_both else ("dev",):
        change(graph, branch, plus(CITY))
        write(graph, branch, f'insert City {{ name: "{branch}", size: 1 }}')
        change(graph, branch, put(CITY, grown))
    write(graph, "dev", 'insert City { name: "Rome", size: 2, mayor: "Ann" }')
    write(graph, "main", 'update Person set { age: 31 } where name = "Ann"')
    planned = graph.branches.merge("dev", "main", dry_run=True)
    assert planned.counts["node:City"].inserted == 2
    graph.branches.merge("dev", "main")
    assert rows(graph)["City:Rome"] == {"name": "Rome", "size": 2, "mayor": "Ann"}
    assert rows(graph)["City:dev"] == {"name": "dev", "size": 1, "mayor": None}


def test_a_dropped_type_whose_rows_were_only_deleted_goes(graph: og.Graph) -> None:
    change(graph, "dev", lambda text: text[: text.index("edge Knows")])
    write(graph, "main", 'delete Knows where from = "Ann"')
    assert graph.branches.merge("dev", "main").outcome == "merged"
    assert not [name for name in rows(graph) if name.startswith("Knows:")]


# -- conflicts -------------------------------------------------------------------------------


def test_conflicts_of_schemas_and_of_rows_are_told_together(graph: og.Graph) -> None:
    change(graph, "dev", put("age: I32?", "age: I64?"), plus(CITY))
    change(
        graph,
        "main",
        put("age: I32?", "age: F64?"),
        plus(CITY.replace("size: I32?", "size: String?")),
    )
    write(graph, "dev", 'update Person set { bio: "dev" } where name = "Ann"')
    write(graph, "main", 'update Person set { bio: "main" } where name = "Ann"')
    found = conflicts_of(graph)
    assert set(kinds(found)) == {
        ("schema_divergent_change", "Person", "age", ""),
        ("schema_divergent_add", "City", None, ""),
        ("divergent_update", "Person", "bio", "Ann"),
    }
    merged = graph.branches.merge("dev", "main", resolve="ours")
    assert len(merged.resolved) == 3
    assert rows(graph)["Person:Ann"] == {"name": "Ann", "age": 30.0, "bio": "main"}


def test_resolved_to_the_source(graph: og.Graph) -> None:
    change(graph, "dev", put("bio: String?", 'bio: String? @description("dev")'))
    change(graph, "main", put("bio: String?", 'bio: String? @description("main")'))
    assert [one.kind for one in conflicts_of(graph)] == ["schema_divergent_change"]
    graph.branches.merge("dev", "main", resolve={"Person.bio": "theirs"})
    assert '@description("dev")' in graph.schema


def test_an_element_that_is_in_no_conflict_is_not_resolved(graph: og.Graph) -> None:
    change(graph, "dev", put("age: I32?", "age: I64?"))
    with pytest.raises(errors.BadRequest, match=r"Person\.bio is in no conflict"):
        graph.branches.merge("dev", "main", resolve={"Person.bio": "ours"})


def test_what_one_side_dropped_and_the_other_wrote_to(graph: og.Graph) -> None:
    change(graph, "dev", put("    bio: String?\n", ""))
    write(graph, "main", 'update Person set { bio: null } where name = "Ann"')
    assert graph.branches.merge("dev", "main", dry_run=True).conflicts == ()
    write(graph, "main", 'update Person set { bio: "new" } where name = "Ben"')
    assert kinds(conflicts_of(graph)) == [("schema_drop_change", "Person", "bio", "")]
    graph.branches.merge("dev", "main", resolve={"schema_drop_change": "target"})
    assert rows(graph)["Person:Ben"]["bio"] == "new"


def test_a_side_says_nothing_of_what_it_has_dropped(graph: og.Graph) -> None:
    """Rows that it has changed since keep what the other side has there."""
    change(graph, "dev", put("    bio: String?\n", ""))
    write(graph, "dev", 'update Person set { age: 31 } where name = "Ann"')
    write(graph, "dev", 'update Person set { age: 8 } where name = "Cy"')
    write(graph, "main", 'update Person set { bio: "cy" } where name = "Cy"')
    graph.branches.merge("dev", "main", resolve={"Person.bio": "target"})
    found = rows(graph)
    assert found["Person:Ann"] == {"name": "Ann", "age": 31, "bio": "hi"}
    assert found["Person:Cy"] == {"name": "Cy", "age": 8, "bio": "cy"}


def test_what_the_target_dropped_comes_back_from_the_source(graph: og.Graph) -> None:
    change(graph, "main", put("    bio: String?\n", ""))
    write(graph, "main", 'update Person set { age: 8 } where name = "Cy"')
    write(graph, "dev", 'update Person set { bio: "cy" } where name = "Cy"')
    graph.branches.merge("dev", "main", resolve={"Person.bio": "source"})
    found = rows(graph)
    assert found["Person:Ann"] == {"name": "Ann", "age": 30, "bio": "hi"}
    assert found["Person:Cy"] == {"name": "Cy", "age": 8, "bio": "cy"}


@pytest.mark.parametrize("how", ["changed", "as it was", "optimized", "all new", "schema alone"])
def test_rows_that_the_target_wrote_since_it_dropped_a_property(graph: og.Graph, how: str) -> None:
    """They have again what they had, although the source has touched others, or none."""
    change(graph, "main", put("    bio: String?\n", ""))
    age = 30
    if how != "optimized":
        age = 31
        write(graph, "main", 'update Person set { age: 31 } where name = "Ann"')
    if how == "as it was":
        age = 30
        write(graph, "main", 'update Person set { age: 30 } where name = "Ann"')
    elif how in {"all new", "optimized"}:
        write(graph, "main", 'insert Person { name: "Dan" }')
        graph.optimize()
    if how == "schema alone":
        change(graph, "dev", put("bio: String?", 'bio: String? @default("-")'))
    else:
        write(graph, "dev", 'update Person set { bio: "cy" } where name = "Cy"')
    planned = graph.branches.merge("dev", "main", resolve="source", dry_run=True)
    counted = planned.counts["node:Person"]
    assert (counted.inserted, counted.deleted) == (0, 0)
    graph.branches.merge("dev", "main", resolve="source")
    found = rows(graph)
    assert found["Person:Ann"] == {"name": "Ann", "age": age, "bio": "hi"}
    assert found["Person:Cy"]["bio"] == (None if how == "schema alone" else "cy")
    assert found["Person:Ben"] == {"name": "Ben", "age": None, "bio": None}


def test_a_dropped_type_comes_back_if_asked(graph: og.Graph) -> None:
    change(graph, "main", lambda text: text[: text.index("edge Knows")])
    write(graph, "dev", 'insert Knows { from: "Cy", to: "Ann", since: 1 }')
    assert kinds(conflicts_of(graph)) == [("schema_drop_change", "Knows", None, "")]
    graph.branches.merge("dev", "main", resolve={"Knows": "source"})
    edges = [row for name, row in rows(graph).items() if name.startswith("Knows:")]
    assert len(edges) == 3
    write(graph, "main", 'insert Knows { from: "Ann", to: "Ann" }')
    assert len(rows(graph)) == 7


def test_values_that_do_not_fit_what_was_resolved_to_are_told(graph: og.Graph) -> None:
    """Also where a cast would make something of them."""
    for new, old in (("F32?", "12345.678"), ("Bool?", "7"), ("enum(a, b)?", "3")):
        name = f"p{new[0]}"
        kind = "F64?" if new == "F32?" else "I32?"
        change(graph, "dev", put("bio: String?", f"bio: String?\n    {name}: {new}"))
        change(graph, "main", put("bio: String?", f"bio: String?\n    {name}: {kind}"))
        write(graph, "main", f'insert Person {{ name: "{name}", {name}: {old} }}')
    found = graph.branches.merge("dev", "main", resolve="source", dry_run=True).conflicts
    told = {(one.kind, one.property) for one in found}
    assert told == {("value_constraint_violation", one) for one in ("pF", "pB", "pe")}


def test_what_became_one_is_not_taken_for_written(graph: og.Graph) -> None:
    """An edge type that was dropped although its rows lie under another identity now."""
    more = put("since: I32?", "since: I32?\n    note: String?")
    for branch in ("dev", "main"):
        change(graph, branch, more)
    write(graph, "dev", 'update Knows set { note: "x" } where from = "Ann"')
    graph.branches.merge("dev", "main")
    change(graph, "dev", lambda text: text[: text.index("edge Knows")])
    write(graph, "main", 'update Person set { age: 31 } where name = "Ann"')
    graph.branches.merge("dev", "main")
    assert sorted(rows(graph)) == ["Person:Ann", "Person:Ben", "Person:Cy"]


# -- rules of one side on rows of the other ----------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True])
def test_a_new_rule_meets_new_rows(graph: og.Graph, swapped: bool) -> None:
    strict, loose = ("main", "dev") if swapped else ("dev", "main")
    change(
        graph,
        strict,
        put("bio: String?", "bio: String?\n    @range(age, 0..100)\n    @unique(bio)"),
    )
    write(graph, loose, 'insert Person { name: "Old", age: 200 }')
    write(graph, loose, 'update Person set { bio: "hi" } where name = "Cy"')
    found = conflicts_of(graph)
    assert {(one.kind, one.entity_id) for one in found} >= {
        ("value_constraint_violation", "Old"),
        ("unique_violation", "Cy"),
    }
    write(graph, loose, 'update Person set { age: 20 } where name = "Old"')
    write(graph, loose, 'update Person set { bio: "cy" } where name = "Cy"')
    graph.branches.merge("dev", "main")
    assert rows(graph)["Person:Old"]["age"] == 20


def test_a_required_property_is_filled_or_told(graph: og.Graph) -> None:
    change(graph, "dev", put("bio: String?", 'bio: String @default("none")'))
    write(graph, "main", 'insert Person { name: "Dee" }')
    graph.branches.merge("dev", "main")
    found = {name: row["bio"] for name, row in rows(graph).items() if name.startswith("Person")}
    assert found == {
        "Person:Ann": "hi",
        "Person:Ben": "none",
        "Person:Cy": "none",
        "Person:Dee": "none",
    }


def test_a_required_property_without_a_default(graph: og.Graph) -> None:
    change(graph, "dev", lambda text: text + "node Pet { name: String @key }\n")
    graph.branches.merge("dev", "main")
    change(
        graph,
        "dev",
        put("node Pet { name: String @key }", "node Pet { name: String @key  kind: String }"),
    )
    write(graph, "main", 'insert Pet { name: "Rex" }')
    found = conflicts_of(graph)
    assert {one.kind for one in found} == {"value_constraint_violation"}
    assert {one.type_name for one in found} == {"Pet"}


def test_filled_values_are_those_of_the_side_that_filled_them(graph: og.Graph) -> None:
    """Whatever the default became later."""
    change(graph, "dev", put("age: I32?", "age: I32 @default(1)"))
    change(graph, "dev", put("@default(1)", "@default(2)"))
    write(graph, "main", 'insert Person { name: "Dee" }')
    write(graph, "main", 'update Person set { bio: "x" } where name = "Cy"')
    graph.branches.merge("dev", "main")
    ages = {name: row["age"] for name, row in rows(graph).items() if name.startswith("Person")}
    assert ages == {"Person:Ann": 30, "Person:Ben": 1, "Person:Cy": 7, "Person:Dee": 2}


# -- keys of edges ---------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True])
def test_edges_are_matched_by_the_key_that_one_side_gave_them(
    graph: og.Graph, swapped: bool
) -> None:
    keyed, plain = ("main", "dev") if swapped else ("dev", "main")
    change(graph, keyed, put("since: I32?", "since: I32?\n    @key(src, dst)"))
    write(graph, plain, 'insert Knows { from: "Cy", to: "Ann", since: 3 }')
    write(graph, plain, 'update Knows set { since: 2021 } where from = "Ann"')
    write(graph, keyed, 'delete Knows where from = "Ben"')
    graph.branches.merge("dev", "main")
    edges = {name: row["since"] for name, row in rows(graph).items() if name.startswith("Knows")}
    assert edges == {'Knows:["Ann","Ben"]': 2021, 'Knows:["Cy","Ann"]': 3}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_dry_run_that_meets_a_new_key_writes_nothing(graph: og.Graph, swapped: bool) -> None:
    keyed, plain = ("main", "dev") if swapped else ("dev", "main")
    key = put("since: I32?", 'since: I64?\n    note: String @default("-")\n    @key(src, dst)')
    change(graph, keyed, key)
    write(graph, plain, 'insert Knows { from: "Cy", to: "Ann", since: 3 }')
    write(graph, plain, 'update Knows set { since: 2021 } where from = "Ann"')
    write(graph, keyed, 'update Knows set { since: 2022 } where from = "Ann"')
    root = Path(str(graph.location.path))
    before = sorted(root.rglob("*"))
    found = graph.branches.merge("dev", "main", dry_run=True)
    assert kinds([*found.conflicts]) == [("divergent_update", "Knows", "since", '["Ann","Ben"]')]
    planned = graph.branches.merge("dev", "main", resolve="source", dry_run=True)
    assert sorted(root.rglob("*")) == before
    counts = planned.counts["edge:Knows"]
    assert (counts.inserted, counts.updated, counts.deleted) == (int(swapped), 1, 0)
    graph.branches.merge("dev", "main", resolve="source")
    edges = {name: row["since"] for name, row in rows(graph).items() if name.startswith("Knows")}
    assert edges['Knows:["Cy","Ann"]'] == 3
    assert edges['Knows:["Ann","Ben"]'] == (2021 if swapped else 2022)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_new_key_meets_a_column_that_was_written_anew(graph: og.Graph, swapped: bool) -> None:
    keyed, plain = ("main", "dev") if swapped else ("dev", "main")
    change(graph, plain, put("since: I32?", "since: I32 @default(0)"))
    change(graph, plain, put("since: I32 @default(0)", "since: I32?"))
    write(graph, plain, 'insert Knows { from: "Cy", to: "Ann", since: 3 }')
    change(graph, keyed, put("since: I32?", "since: I32?\n    @key(src, dst)"))
    graph.branches.merge("dev", "main")
    edges = {name: row["since"] for name, row in rows(graph).items() if name.startswith("Knows")}
    assert edges['Knows:["Cy","Ann"]'] == 3
    assert len(edges) == 3


@pytest.mark.parametrize("swapped", [False, True])
def test_a_new_key_of_what_the_other_side_has_dropped(graph: og.Graph, swapped: bool) -> None:
    """Edges that were written there since have lost what their ids would be made of."""
    keyed, plain = ("main", "dev") if swapped else ("dev", "main")
    for branch in ("main", "dev"):
        change(graph, branch, put("since: I32?", "since: I32 @default(7)\n    note: String?"))
    graph.branches.merge("dev", "main")
    graph.branches.merge("main", "dev")
    change(graph, plain, put("    since: I32 @default(7)\n", ""))
    write(graph, plain, 'update Knows set { note: "new" } where from = "Ann"')
    change(graph, keyed, put("note: String?", "note: String?\n    @key(src, dst, since)"))
    before = rows(graph)
    kept = {"schema_drop_change": "target" if swapped else "source"}
    with pytest.raises(errors.MergeConflicts) as caught:
        graph.branches.merge("dev", "main", resolve=kept)
    assert kinds([*caught.value.conflicts]) == [
        ("value_constraint_violation", "Knows", "since", "")
    ]
    assert rows(graph) == before


@pytest.mark.parametrize("swapped", [False, True])
def test_a_new_key_meets_a_side_that_has_dropped_a_property(graph: og.Graph, swapped: bool) -> None:
    """Its table still has the column that the merge keeps."""
    keyed, plain = ("main", "dev") if swapped else ("dev", "main")
    change(graph, plain, put("    since: I32?\n", "    note: String?\n"))
    write(graph, plain, 'insert Knows { from: "Cy", to: "Ann", note: "new" }')
    change(graph, keyed, put("since: I32?", "since: I32?\n    @key(src, dst)"))
    write(graph, keyed, 'update Knows set { since: 2021 } where from = "Ann"')
    resolved = {"Knows.since": "target" if swapped else "source"}
    graph.branches.merge("dev", "main", resolve=resolved, dry_run=True)
    graph.branches.merge("dev", "main", resolve=resolved)
    edges = {name: row["since"] for name, row in rows(graph).items() if name.startswith("Knows")}
    assert edges == {
        'Knows:["Ann","Ben"]': 2021,
        'Knows:["Ben","Cy"]': None,
        'Knows:["Cy","Ann"]': None,
    }


def test_a_new_key_meets_a_side_that_has_dropped_the_type(graph: og.Graph) -> None:
    key = put("since: I32?", "since: I32?\n    note: String?\n    @key(src, dst)")
    change(graph, "main", key)
    write(graph, "main", 'update Knows set { note: "new" } where from = "Ann"')
    dropped = graph.schema_at("dev").partition("edge Knows")[0]
    graph.apply_schema(dropped, branch="dev")
    write(graph, "dev", 'insert Person { name: "Dan" }')
    graph.branches.merge("dev", "main", resolve="target")
    found = rows(graph)
    assert found['Knows:["Ann","Ben"]'] == {
        "from": "Ann",
        "to": "Ben",
        "since": 2020,
        "note": "new",
    }
    assert "Person:Dan" in found


def test_edges_that_a_key_cannot_tell_apart(graph: og.Graph) -> None:
    change(graph, "dev", put("since: I32?", "since: I32?\n    @key(src, dst)"))
    write(graph, "main", 'insert Knows { from: "Ann", to: "Ben", since: 3 }')
    found = conflicts_of(graph)
    assert {one.kind for one in found} == {"unique_violation"}
    assert len(found) == 2


@pytest.mark.parametrize("swapped", [False, True])
def test_edges_that_are_counted_under_a_changed_schema(graph: og.Graph, swapped: bool) -> None:
    wider, plain = ("main", "dev") if swapped else ("dev", "main")
    for branch in ("main", "dev"):
        change(graph, branch, put("Person -> Person", "Person -> Person @card(0..2)"))
    change(graph, wider, put("since: I32?", 'since: I64?\n    note: String @default("-")'))
    write(graph, wider, 'insert Knows { from: "Cy", to: "Ann" }')
    write(graph, plain, 'insert Knows { from: "Cy", to: "Ben" }')
    assert graph.branches.merge("dev", "main", dry_run=True).conflicts == ()
    write(graph, plain, 'insert Knows { from: "Cy", to: "Cy" }')
    assert [one.kind for one in conflicts_of(graph)] == ["cardinality_violation"]


# -- orphans ---------------------------------------------------------------------------------


def test_edges_of_a_new_type_lose_an_end_on_the_other_side(graph: og.Graph) -> None:
    change(graph, "dev", plus("edge Likes: Person -> Person"))
    write(graph, "dev", 'insert Likes { from: "Ann", to: "Cy" }')
    write(graph, "main", 'delete Person where name = "Cy"')
    assert [one.kind for one in conflicts_of(graph)] == ["orphan_edge"]
    graph.branches.merge("dev", "main", resolve={"orphan_edge": "target"})
    assert not [name for name in rows(graph) if name.startswith("Likes")]


def test_several_writers_beside_a_merge_of_schemas(graph: og.Graph) -> None:
    """The target moves between planning and publishing."""
    change(graph, "dev", put("age: I32?", "age: I64?"))
    change(graph, "main", put("bio: String?", "bio: String?\n    mail: String?"))
    done: list[int] = []

    def meanwhile() -> None:
        if not done:
            done.append(1)
            other = og.open(str(graph.location.uri))
            write(other, "main", 'insert Person { name: "Late", age: 1 }')

    with observed("changes_checked", meanwhile, times=None):
        graph.branches.merge("dev", "main")
    assert rows(graph)["Person:Late"]["age"] == 1
    assert done
