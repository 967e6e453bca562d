"""Plans of random changes, held against rows in memory; and what people see of plans."""

from __future__ import annotations

from collections import Counter
from random import Random

import msgspec
import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from omnigraph.errors import SchemaChangeRefused
from omnigraph.lang.diagnostics import Diagnostic, Phase
from omnigraph.lang.schema.columns import carried, columns_of_new
from omnigraph.lang.schema.compile import check_schema_source, compile_schema
from omnigraph.lang.schema.ir.ir import SchemaIR
from omnigraph.lang.schema.keys import canonical_scalar
from omnigraph.lang.schema.migration.effects import AddColumn, DropColumn
from omnigraph.lang.schema.migration.facts import KnownFacts
from omnigraph.lang.schema.migration.places import locate
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.schema.migration.steps import UnsupportedChange, Violations
from omnigraph.lang.types import Scalar
from tests.lang import migration_model as model
from tests.lang import migration_schemas as schemas

seeds = st.integers(0, 2**32)


def compiled(text: str, accepted: SchemaIR | None = None) -> SchemaIR:
    assume(not check_schema_source(text))
    return compile_schema(text, accepted=accepted).ir


def planned(before: str, after: str, facts: KnownFacts | None = None) -> MigrationPlan:
    accepted = compile_schema(before).ir
    desired = compile_schema(after, accepted=accepted).ir
    return plan_migration(accepted, desired, facts=facts or KnownFacts())


def meaning(ir: SchemaIR) -> SchemaIR:
    """A schema without its counter, which says what was given out and not what is there."""
    return msgspec.structs.replace(ir, next_identity_id=2**64 - 1)


# -- random changes --------------------------------------------------------------------


@pytest.mark.slow
@given(seeds)
def test_every_difference_is_a_step_and_no_difference_is_none(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    schema = schemas.drawn(random)
    accepted = compiled(schemas.written(schema))
    desired = compiled(schemas.written(schemas.changed(random, schema)), accepted)
    assert plan_migration(accepted, accepted) == MigrationPlan()
    assert plan_migration(desired, desired) == MigrationPlan()
    plan = plan_migration(accepted, desired)
    assert bool(plan.steps) == (meaning(accepted) != meaning(desired))
    # The way back is a plan too, for instance when a diff looks into the past.
    back = plan_migration(desired, accepted)
    assert bool(back.steps) == bool(plan.steps)
    for each in (plan, back):
        assert_sound(each)


def assert_sound(plan: MigrationPlan) -> None:
    """Whatever a plan says holds together."""
    for part in (*plan.effects, *plan.checks):
        assert not isinstance(plan.steps[part.step], UnsupportedChange)
    written = Counter(
        effect.property_id for effect in plan.effects if hasattr(effect, "property_id")
    )
    assert all(count == 1 for count in written.values()), "a column is changed by one effect"
    for place, step in enumerate(plan.steps):
        document = step.to_json()
        assert next(iter(document)) == "kind"
        if not isinstance(step, UnsupportedChange):
            assert (document["tier"], document["cost"]) == (step.tier, step.cost)
            assert not document.keys() & {"violations"}
            is_asked = any(check.step == place for check in plan.checks)
            assert not is_asked or step.tier == "validated"
    assert str(plan).count("\n") >= len(plan.steps) or not plan.steps
    assert plan._repr_html_().count("<tr>") == (len(plan.steps) + 1 if plan.steps else 0)


@pytest.mark.slow
@given(seeds)
def test_renames_touch_the_manifest_alone(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    schema = schemas.drawn(random)
    accepted = compiled(schemas.written(schema))
    text = schemas.written(schemas.renamed(random, schema))
    assert not check_schema_source(text)
    desired = compile_schema(text, accepted=accepted).ir
    plan = plan_migration(accepted, desired)
    assert {step.to_json()["kind"] for step in plan.steps} <= {"rename_type", "rename_property"}
    for step in plan.steps:
        assert not isinstance(step, UnsupportedChange)
        assert (step.tier, step.cost) == ("safe", "metadata")
    assert not plan.checks
    assert not plan.rewritten
    columns = columns_of_new(accepted)
    assert carried(columns, desired).tables == columns.tables


@pytest.mark.slow
@given(seeds)
def test_what_passes_the_checks_obeys_the_new_schema(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    schema = schemas.drawn(random)
    accepted = compiled(schemas.written(schema))
    desired = compiled(schemas.written(schemas.changed(random, schema)), accepted)
    graph = model.drawn_rows(random, accepted)
    assert not model.broken_rules(graph, accepted)
    plan = plan_migration(accepted, desired, facts=model.facts_of(graph, accepted))
    event(f"supported: {plan.supported}")
    if not plan.supported:
        return
    after = model.carried_out(plan, graph)
    broken = model.broken_rules(after, desired)
    violations = model.violations(plan, graph, after)
    event(f"violations: {bool(violations)}")
    assert bool(broken) == bool(violations), (broken, violations)
    assert_nothing_else_changed(plan, accepted, desired, graph, after)


def assert_nothing_else_changed(
    plan: MigrationPlan,
    accepted: SchemaIR,
    desired: SchemaIR,
    graph: model.Graph,
    after: model.Graph,
) -> None:
    stays = {node.type_id for node in desired.nodes} & graph.keys()
    for type_id in stays:
        assert [row.id for row in after[type_id]] == [row.id for row in graph[type_id]]
    lost = {effect.property_id for effect in plan.effects if isinstance(effect, DropColumn)}
    gained = {effect.property_id for effect in plan.effects if isinstance(effect, AddColumn)}
    for type_id in graph.keys() & after.keys():
        for old, new in zip(graph[type_id], after[type_id], strict=True):
            assert new.values.keys() == (old.values.keys() - lost) | (new.values.keys() & gained)
            for id_, value in old.values.items():
                assert id_ in lost or value is None or new.values[id_] == value
    fresh = {identity: 10**6 + at for at, identity in enumerate(sorted(plan.rewritten))}
    columns = carried(columns_of_new(accepted), desired, fresh)
    for table in desired.tables():
        assert len({*columns[table.type_id].by_property.values()}) == len(table.properties)


# -- numbers in keys -------------------------------------------------------------------


@given(st.integers(-(2**31), 2**32 - 1))
def test_whole_numbers_have_one_text_in_every_wider_type(value: int) -> None:
    texts = {canonical_scalar(value, scalar) for scalar in (Scalar.I64, Scalar.U64)}
    assert texts == {canonical_scalar(float(value), Scalar.F64)}


# -- what people see -------------------------------------------------------------------

BEFORE = "node A { a: String? b: String c: String } node Gone {} edge E: A -> A"
AFTER = """\
interface I { i: I32 }
node A implements I {
  a: String
  c: I32
  @unique(a)
}
edge E: A -> A
  @card(0..1)
"""
NULLABILITY, TYPE, INJECTED, UNIQUE, DROPPED, CARD, GONE = range(2, 9)


def found() -> MigrationPlan:
    """A plan with refusals and with what somebody has found in the data."""
    plan = planned(BEFORE, AFTER, KnownFacts({2: 7}))
    kinds = [step.to_json()["kind"] for step in plan.steps[NULLABILITY:]]
    assert kinds == [
        "change_nullability",
        "unsupported_change",
        "unsupported_change",
        "add_constraint",
        "drop_property",
        "change_cardinality",
        "drop_type",
    ]
    return plan.with_findings(
        {
            NULLABILITY: Violations(12, ("<x>", "y")),
            UNIQUE: Violations(0, ()),
            CARD: Violations(1, ("z",)),
        },
        {DROPPED: 3},
    )


def test_a_step_says_what_was_found_in_the_data() -> None:
    plan = found()
    assert [list(step.to_json())[-1] for step in plan.steps[NULLABILITY:]] == [
        "violations",
        "code",
        "code",
        "violations",
        "rows_losing_value",
        "violations",
        "rows_losing_value",
    ]
    assert plan.steps[NULLABILITY].to_json()["violations"] == {"count": 12, "ids": ["<x>", "y"]}
    assert plan.steps[DROPPED].to_json()["rows_losing_value"] == 3
    assert plan.steps[GONE].to_json()["rows_losing_value"] == 7


def test_data_alone_refuses_a_plan() -> None:
    plan = planned("node A { a: String? }", "node A { a: String }")
    assert plan.supported
    plan.require_supported()
    assert plan.with_findings({0: Violations(0, ())}).supported
    broken = plan.with_findings({0: Violations(1, ("x",))})
    assert not broken.supported
    assert broken.to_json()["supported"] is False
    assert broken.code == "OG-MF-104"
    with pytest.raises(SchemaChangeRefused) as raised:
        broken.require_supported()
    assert raised.value.code == "OG-MF-104"
    assert raised.value.message == ("[OG-MF-104] node:A.a becomes non-nullable: 1 row breaks it: x")


def test_a_refused_plan_tells_everything_at_once() -> None:
    plan = found()
    with pytest.raises(SchemaChangeRefused) as raised:
        plan.require_supported()
    error = raised.value
    assert error.code == plan.code == "OG-MF-104"
    lines = error.message.split("\n")
    assert len(lines) == 4
    assert lines[0] == ("[OG-MF-104] node:A.a becomes non-nullable: 12 rows break it: <x>, y, …")
    assert lines[1].startswith(
        "[OG-MF-106] node:A.c: the type of a property cannot change from String to"
    )
    assert lines[2].startswith("[OG-MF-103] node:A.i: the new property `i` is neither nullable")
    assert lines[3] == "edge:E has @card(0..1) instead of @card(0..): 1 row breaks it: z"
    assert error.details["supported"] is False
    assert error.details["steps"] == plan.to_json()["steps"]
    assert [each["entity"] for each in error.details["refusals"]] == [
        "node:A.a",
        "node:A.c",
        "node:A.i",
        "edge:E",
    ]
    assert error.details["refusals"][3] == {
        "entity": "edge:E",
        "reason": "edge:E has @card(0..1) instead of @card(0..): 1 row breaks it: z",
        "violations": {"count": 1, "ids": ["z"]},
    }


def test_a_plan_without_a_code_is_refused_all_the_same() -> None:
    plan = planned("node A { a: String }", "node A { a: String @key }")
    assert plan.code is None
    with pytest.raises(SchemaChangeRefused) as raised:
        plan.require_supported()
    assert raised.value.code == "schema_change_refused"


def test_nothing_is_found_about_what_is_refused() -> None:
    with pytest.raises(ValueError, match=r"node:A\.c"):
        found().with_findings({TYPE: Violations(1, ("x",))})


def test_a_plan_in_words() -> None:
    lines = str(found()).split("\n")
    assert lines[0] == "9 steps: 2 refused, 2 destructive, 3 validated, 2 safe"
    assert "    12 rows break it: <x>, y, …" in lines
    assert "    no row breaks it" in lines
    assert "    1 row breaks it: z" in lines
    assert "    3 rows lose a value" in lines
    assert "    7 rows go with it" in lines
    assert [line for line in lines if not line.startswith(" ")][1:] == [
        "refused",
        "destructive",
        "validated",
        "safe",
    ]
    assert str(MigrationPlan()) == "no change"


def test_a_plan_as_html() -> None:
    html = found()._repr_html_()
    assert html.startswith("<table>")
    assert "12 rows break it: &lt;x&gt;, y, …" in html
    assert "<x>" not in html
    assert html.count("<tr>") == 10


def test_every_refusal_has_its_place_in_the_new_schema() -> None:
    schema = compile_schema(AFTER)
    plan = found()

    def line_and_text(entity: str) -> tuple[int, str] | None:
        span = locate(entity, schema.syntax)
        if span is None:
            return None
        place = Diagnostic(schema.source, span, Phase.CATALOG, "x").position
        return place.line, AFTER[span.start : span.end]

    assert [line_and_text(step.entity) for step in plan.steps] == [
        (1, "I"),
        (2, "A"),
        (3, "a"),
        (4, "c"),
        (1, "i"),
        (3, "a"),
        (2, "A"),
        (7, "E"),
        None,
    ]
    assert line_and_text("schema") is None
    assert line_and_text("node:E") is None
    assert line_and_text("interface:I.i") == (1, "i")
    assert line_and_text("interface:I.x") == (1, "I")


# -- what those who apply a plan ask ---------------------------------------------------


def test_effects_and_checks_by_table() -> None:
    accepted = compile_schema(
        "node A { a: I32? b: String? c: String? d: I32 } edge E: A -> A { w: I32 }"
    ).ir
    desired = compile_schema(
        "node A { a: I64 b: String @default(x) c: Date? d: I32? } edge E: A -> A { w: I64 }",
        accepted=accepted,
    ).ir
    node, edge = accepted.nodes[0], accepted.edges[0]
    ids = {p.name: p.property_id for p in (*node.properties, *edge.properties)}
    facts = KnownFacts({}, {(node.type_id, ids["c"]): True})
    plan = plan_migration(accepted, desired, facts=facts)
    assert plan.rewritten == {ids["a"], ids["b"], ids["c"], ids["w"]}
    assert [type(effect).__name__ for effect in plan.effects_on(node.type_id)] == [
        "WidenColumn",
        "FillNulls",
        "ReplaceColumn",
        "SetNullable",
    ]
    assert [type(effect).__name__ for effect in plan.effects_on(edge.type_id)] == ["WidenColumn"]
    assert [type(check).__name__ for check in plan.checks_on(node.type_id)] == [
        "NotNull",
        "ColumnIsEmpty",
    ]
    assert plan.checks_on(edge.type_id) == ()


def test_the_way_back_is_a_plan_too() -> None:
    first = compile_schema("node A { a: I32 b: String }").ir
    second = compile_schema(
        'node B @rename_from("A") { a: I32 } node C {}', accepted=first, first_id=100
    ).ir
    third = compile_schema("node B { a: I32 b: I32? }", accepted=second, first_id=200).ir
    assert third.next_identity_id > first.next_identity_id
    kinds = [step.to_json()["kind"] for step in plan_migration(third, first).steps]
    # What was dropped has another identity than what came later under its name.
    assert kinds == ["rename_type", "unsupported_change", "drop_property"]
    assert plan_migration(second, third).supported
