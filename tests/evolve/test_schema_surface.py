"""Schema changes as callers see them: plans to read, stored queries, the log, older schemas."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.lang.source import Source

FIRST = """\
node Person {
    name: String @key
    age: I32?
}
"""
RENAMED = FIRST.replace("age: I32?", 'years: I32? @rename_from("age")')
STRICT = """\
node Person {
    name: String @key
    age: I32
    shoe: I32
}
"""
YOUNG = "query young() { match { $p: Person $p.age < 9 } return { $p.name } }"
NAMES = "query names() { match { $p: Person } return { $p.name } }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people.omni", FIRST)
    graph.load([{"type": "Person", "data": {"name": "<Ann>"}}], mode="append")
    return graph


# -- plans to read -----------------------------------------------------------------------


def test_a_plan_reads_as_text_where_it_is_printed(graph: og.Graph) -> None:
    plan = graph.plan_schema(Source(STRICT, "next.pg"), check=True)
    assert isinstance(plan, og.MigrationPlan)
    assert repr(plan) == str(plan) == plan.describe()
    assert (
        str(plan)
        == """\
2 steps: 1 refused, 1 validated
refused
  node:Person.shoe: the new property `shoe` is neither nullable nor has a `@default`, so existing \
rows cannot be filled: make it nullable or give it a `@default` [OG-MF-103]
     --> next.pg:4:5
      |
    4 |     shoe: I32
      |     ^^^^
validated
  node:Person.age becomes non-nullable (scans rows)
    1 row breaks it: <Ann>
     --> next.pg:3:5
      |
    3 |     age: I32
      |     ^^^"""
    )
    assert str(graph.plan_schema(FIRST)) == "no change"


def test_a_plan_is_a_table_in_a_notebook(graph: og.Graph) -> None:
    shown = graph.plan_schema(STRICT, check=True, queries={"q.gq": YOUNG + NAMES})._repr_html_()
    assert shown.startswith("<table><thead><tr><th>tier</th>")
    assert "<td>node:Person.shoe</td>" in shown
    assert "<td>1 row breaks it: &lt;Ann&gt;</td>" in shown
    broken = graph.plan_schema(RENAMED, queries={"q.gq": YOUNG})._repr_html_()
    assert "<td>query:young</td>" in broken
    assert graph.plan_schema(FIRST)._repr_html_() == "<p>no change</p>"
    result = graph.apply_schema(RENAMED)
    assert result._repr_html_() == result.plan._repr_html_()


def test_a_result_says_what_it_did(graph: og.Graph) -> None:
    result = graph.apply_schema(RENAMED)
    assert isinstance(result, og.SchemaResult)
    assert result.commit is not None
    assert repr(result).startswith(
        f"changed the schema of main, commit {result.commit.id}\n1 step:"
    )
    again = graph.apply_schema(RENAMED)
    assert repr(again) == "main has this schema already: nothing was changed"


def test_everything_that_is_refused_is_told_at_once(graph: og.Graph) -> None:
    before = graph.snapshot().commit_id
    with pytest.raises(errors.SchemaChangeRefused) as refused:
        graph.apply_schema(Source(STRICT, "next.pg"), queries={"q.gq": "query x( {"})
    error = refused.value
    assert error.code == "OG-MF-104"
    assert [one["entity"] for one in error.details["refusals"]] == [
        "node:Person.age",
        "node:Person.shoe",
        "query:q.gq",
    ]
    assert error.details["refusals"][1]["place"]["line"] == 4
    assert len(error.message.splitlines()) == 3
    for place in ("next.pg:3:5", "next.pg:4:5", "q.gq:1:10"):
        assert place in error.report
    assert graph.snapshot().commit_id == before


def test_an_empty_text_is_no_schema(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "empty.pg").write_text("\n")
    for source in ("", " \n", tmp_path / "empty.pg"):
        for call in (graph.plan_schema, graph.apply_schema):
            with pytest.raises(errors.BadRequest, match="is empty: that would drop every type"):
                call(source)
    assert graph.schema == FIRST
    # Whoever means it says so.
    assert graph.apply_schema("// Nothing is left.\n").applied


# -- stored queries ----------------------------------------------------------------------


def test_queries_that_go_on_compiling_stand_against_nothing(graph: og.Graph) -> None:
    plan = graph.plan_schema(RENAMED, queries={"names.gq": NAMES})
    assert (plan.supported, plan.broken_queries) == (True, ())
    assert "broken_queries" not in plan.to_json()
    assert graph.apply_schema(RENAMED, queries={"names.gq": NAMES}).applied


def test_queries_that_break_are_listed_and_refuse_it(graph: og.Graph) -> None:
    stored = {"young.gq": NAMES + YOUNG, "broken.gq": "query x( {"}
    plan = graph.plan_schema(RENAMED, queries=stored)
    assert not plan.supported
    assert [(one.source, one.name) for one in plan.broken_queries] == [
        ("young.gq", "young"),
        ("broken.gq", None),
    ]
    assert [one["source"] for one in plan.to_json()["broken_queries"]] == ["young.gq", "broken.gq"]
    assert "query `young` of young.gq does not compile against this schema" in str(plan)
    with pytest.raises(errors.SchemaChangeRefused) as refused:
        graph.apply_schema(RENAMED, queries=stored)
    assert refused.value.code == "schema_change_refused"
    (young, _) = refused.value.details["broken_queries"]
    assert (young["query"], young["diagnostics"][0]["code"]) == ("young", "T6")
    assert graph.schema == FIRST


def test_a_change_can_be_forced_on_queries(graph: og.Graph) -> None:
    result = graph.apply_schema(RENAMED, queries={"young.gq": YOUNG}, force_queries=True)
    assert (result.applied, result.supported) == (True, True)
    assert [one.name for one in result.plan.broken_queries] == ["young"]
    # What breaks for another reason is refused all the same.
    with pytest.raises(errors.SchemaChangeRefused):
        graph.apply_schema(STRICT, queries={"young.gq": YOUNG}, force_queries=True)


def test_where_nothing_changes_nothing_breaks(graph: og.Graph) -> None:
    result = graph.apply_schema(FIRST + "// The same.", queries={"x.gq": "query x( {"})
    assert (result.applied, result.supported) == (False, True)


# -- then and now ------------------------------------------------------------------------


def test_the_schema_of_a_branch_a_commit_and_a_snapshot(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.branches.create("dev")
    graph.apply_schema(RENAMED, branch="dev")
    assert graph.schema_at("main") == graph.schema == FIRST
    assert graph.schema_at(" dev ") == RENAMED
    assert graph.schema_at(before) == graph.schema_at(before.commit_id) == FIRST
    with pytest.raises(errors.NotFound, match="no branch and no commit"):
        graph.schema_at("nothing")


def test_the_log_follows_merges(graph: og.Graph) -> None:
    graph.branches.create("dev")
    made = graph.apply_schema(RENAMED, branch="dev", actor="ann").commit
    assert made is not None
    assert [one.commit.id for one in graph.schema_log("dev")] == [
        made.id,
        graph.commits.list()[-1].id,
    ]
    assert len(graph.schema_log()) == 1
    graph.apply_schema(FIRST + "node City { name: String @key }\n")
    merged = graph.branches.merge("dev").commit
    assert merged is not None
    assert (Path(str(graph.location)) / "_schema.pg").read_text() == graph.schema
    log = graph.schema_log()
    assert all(isinstance(one, og.SchemaCommit) for one in log)
    assert log[0].commit.id == merged.id
    assert made.id in [one.commit.id for one in log]
    (step,) = log[0].steps
    assert step.entity == "node:Person.years"
    assert repr(log[0]).startswith(f"commit {merged.id} on main: 1 step: 1 safe\n")
    assert repr(log[-1]).endswith(" on main: the first schema")


def test_every_kind_of_step_is_noted_and_read_back(graph: og.Graph) -> None:
    graph.apply_schema(
        """\
interface Named {
    name: String
}

node Human @rename_from("Person") @description("One of us.") implements Named {
    name: String @key
    years: I64 @rename_from("age") @default(7)
    mood: enum(good, bad)?
    note: String?
    @range(years, 0..150)
    @check(note, "^[a-z]+$")
    @unique(years)
    @index(mood)
}

edge Knows: Human -> Human @card(0..5) {
    since: Date?
    @key(src, dst)
}
"""
    )
    graph.apply_schema(
        """\
node Human @instruction("Be kind.") {
    name: String @key
    years: I64?
    mood: enum(good, bad, none)? @description("How it goes.")
}

edge Knows: Human -> Human @card(0..9)
"""
    )
    log = graph.schema_log()
    planned = {type(step).__name__ for one in log for step in one.steps}
    assert planned >= {
        *("AddType", "RenameType", "AddProperty", "RenameProperty", "ChangePropertyType"),
        *("ChangeNullability", "AddConstraint", "RemoveConstraint", "ChangeCardinality"),
        *("DropProperty", "DropType", "ChangeImplements", "ExtendEnum", "UpdateTypeMetadata"),
    }
    text = repr(log[0]) + repr(log[1])
    for words in ("@range(years, 0..150)", '@check(note, "^[a-z]+$")', "@key(src, dst)"):
        assert words in text
