"""`omnigraph branch merge`: for people, for programs, with conflicts, and refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests import faults

Run = Callable[..., Any]

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    city: String?
}

edge Knows: Person -> Person
"""


def change(uri: str, body: str, branch: str = "main") -> None:
    og.open(uri).mutate(f"query change() {{ {body} }}", branch=branch)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = str(tmp_path / "people.omni")
    graph = og.init(path, SCHEMA)
    for name, age in (("Ann", 30), ("Ben", 40)):
        graph.mutate(f'query add() {{ insert Person {{ name: "{name}", age: {age} }} }}')
    graph.branches.create("review")
    return path


@pytest.fixture
def torn(uri: str) -> str:
    """Both sides give Ann another age; main loses Ben, whom the other side gets to know."""
    change(uri, 'update Person set { age: 31 } where name = "Ann"', "review")
    change(uri, 'insert Knows { from: "Ann", to: "Ben" }', "review")
    change(uri, 'update Person set { age: 32 } where name = "Ann"')
    change(uri, 'delete Person where name = "Ben"')
    return uri


def head(uri: str) -> str:
    return og.open(uri).commits.list()[0].id


def test_a_merge_says_its_outcome(run: Run, uri: str) -> None:
    change(uri, 'insert Person { name: "Cat" }', "review")
    ran = run("branch", "merge", "review", "--uri", uri)
    assert (ran.code, ran.out) == (0, "merged review into main: fast_forward\n")
    assert "omnigraph branch merge → " in ran.err
    again = run("branch", "merge", "review", "--uri", uri, "--quiet")
    assert (again.code, again.out, again.err) == (
        0,
        "merged review into main: already_up_to_date\n",
        "",
    )


def test_a_merge_that_is_repeated(run: Run, uri: str) -> None:
    change(uri, 'insert Person { name: "Cat" }', "review")
    asked = ("branch", "merge", "review", "--uri", uri, "--run-id", "m1", "--delete-branch")
    first = run(*asked, "--quiet")
    assert (first.code, first.out) == (0, "merged review into main: fast_forward\n")
    again = run(*asked, "--quiet")
    assert (again.code, again.out) == (0, first.out)
    assert again.err.startswith("note: this run was done before")
    told = json.loads(run(*asked, "--json").out)
    assert (told["repeats_run"], told["branch_deleted"]) == (True, True)
    assert told["commit"]["graph_commit_id"] == head(uri)


def test_a_merge_for_programs(run: Run, uri: str) -> None:
    change(uri, 'insert Person { name: "Cat" }', "review")
    change(uri, 'insert Person { name: "Dan" }')
    ran = run("branch", "merge", "review", "--uri", uri, "--json", "--as", "eve")
    body = json.loads(ran.out)
    commit = body.pop("commit")
    assert body == {
        "source": "review",
        "target": "main",
        "outcome": "merged",
        "actor_id": "eve",
    }
    assert commit["graph_commit_id"] == head(uri)
    assert commit["merged_parent_commit_id"] is not None


def test_another_target_and_the_end_of_the_source(run: Run, uri: str) -> None:
    og.open(uri).branches.create("next")
    change(uri, 'insert Person { name: "Cat" }', "review")
    ran = run("branch", "merge", "review", "--into", "next", "--delete-branch", "--uri", uri)
    assert (ran.code, ran.out) == (0, "merged review into next: fast_forward\n")
    assert og.open(uri).branches.list() == ["main", "next"]


def test_a_source_that_cannot_be_deleted_is_a_warning(run: Run, uri: str) -> None:
    change(uri, 'insert Person { name: "Cat" }', "review")
    with faults.armed("branch_deleting"):
        ran = run("branch", "merge", "review", "--delete-branch", "--uri", uri, "--json")
    body = json.loads(ran.out)
    assert (ran.code, body["outcome"], body["branch_deleted"]) == (0, "fast_forward", False)
    assert "injected fault" in body["branch_delete_error"]
    assert "warning: branch review was not deleted: " in ran.err


def test_conflicts_are_told_with_every_value(run: Run, torn: str) -> None:
    before = head(torn)
    ran = run("branch", "merge", "review", "--uri", torn, "--quiet")
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: review was not merged into main: merge conflicts: ")
    at = lines.index("Person:Ann")
    assert lines[at + 1 : at + 5] == [
        "  divergent_update: divergent update for id 'Ann', property 'age'",
        "      base  age 30",
        "    source  age 31",
        "    target  age 32",
    ]
    assert any("orphan_edge: dst 'Ben' not found in Person" in line for line in lines)
    assert "--resolve KIND=SIDE" in ran.err
    assert head(torn) == before


def test_a_dry_run_says_what_would_happen(run: Run, torn: str) -> None:
    before = head(torn)
    ran = run("branch", "merge", "review", "--uri", torn, "--dry-run")
    assert ran.code == 1
    assert ran.out.startswith("cannot merge review into main\n")
    assert "2 conflicts:" in ran.out
    sides = ("--resolve", "source", "--dry-run")
    ran = run("branch", "merge", "review", "--uri", torn, *sides)
    assert ran.code == 0
    *lines, last = ran.out.splitlines()
    assert lines == [
        "would merge review into main: merged",
        "type        | inserted | updated | deleted | combined",
        "------------+----------+---------+---------+---------",
        "edge:Knows  |        1 |       0 |       0 |        0",
        "node:Person |        1 |       1 |       0 |        0",
        "2 conflicts resolved:",
        "  Person:Ann: divergent_update, source wins",
    ]
    assert last.startswith("  Knows:")
    assert last.endswith(": orphan_edge, source wins")
    assert head(torn) == before


def test_a_dry_run_for_programs(run: Run, torn: str) -> None:
    ran = run("branch", "merge", "review", "--uri", torn, "--dry-run", "--json")
    body = json.loads(ran.out)
    assert (ran.code, body["dry_run"], body["outcome"]) == (1, True, "merged")
    found = {conflict["kind"]: conflict for conflict in body["merge_conflicts"]}
    assert sorted(found) == ["divergent_update", "orphan_edge"]
    assert {key: found["divergent_update"][key] for key in ("property", "base", "source")} == {
        "property": "age",
        "base": 30,
        "source": 31,
    }


def test_conflicts_are_resolved_by_kind_and_by_entity(run: Run, torn: str) -> None:
    sides = ("--resolve", "Person:Ann=target", "--resolve", "orphan_edge=source")
    ran = run("branch", "merge", "review", "--uri", torn, "--json", *sides)
    body = json.loads(ran.out)
    assert ran.code == 0
    assert [(one["kind"], one["side"]) for one in body["resolved"]] == [
        ("divergent_update", "target"),
        ("orphan_edge", "source"),
    ]
    people = og.open(torn).query("query q() { match { $p: Person } return { $p.name, $p.age } }")
    assert people.rows == [{"p.name": "Ann", "p.age": 32}, {"p.name": "Ben", "p.age": 40}]


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--resolve", "both"), 1, "not to 'both'"),
        (("--resolve", "source", "--resolve", "orphan_edge=target"), 2, "settles everything"),
        (("--resolve", "divergent_updat=source"), 1, "divergent_update"),
        (("--resolve", "unique_violation=source"), 1, "cannot be resolved by taking a side"),
        (("--resolve", "Persn:Ann=source"), 1, "Person"),
        (("--resolve", "source", "--into", "review"), 1, "cannot be merged into itself"),
        (("--into", "nowhere"), 1, "there is no branch nowhere"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    run: Run, torn: str, options: tuple[str, ...], code: int, told: str
) -> None:
    before = head(torn)
    ran = run("branch", "merge", "review", "--uri", torn, *options)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert head(torn) == before


def test_a_resolution_that_nothing_needs_is_refused(run: Run, torn: str) -> None:
    sides = ("--resolve", "Person:Zoe=target", "--resolve", "orphan_edge=source")
    ran = run("branch", "merge", "review", "--uri", torn, *sides)
    assert ran.code == 1
    assert "node:Person:Zoe is in no conflict" in ran.err


# -- schemas -----------------------------------------------------------------------------


@pytest.fixture
def reshaped(uri: str) -> str:
    """The source renames a property and adds one; the target gets another type."""
    graph = og.open(uri)
    renamed = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
    graph.apply_schema(
        renamed.replace("city: String?", "score: F64 @default(0.5)\n    city: String?"),
        branch="review",
    )
    graph.apply_schema(SCHEMA + "\nnode City {\n    name: String @key\n}\n")
    return uri


def test_what_becomes_of_the_schema_is_shown(run: Run, reshaped: str) -> None:
    uri = reshaped
    told = """\
schema:
  2 steps: 2 safe
  safe
    node:Person.score is added as F64 (writes columns)
    node:Person.years is renamed from age (metadata only)
"""
    ran = run("branch", "merge", "review", "--uri", uri, "--dry-run")
    assert (ran.code, ran.out) == (0, f"would merge review into main: merged\n{told}")
    ran = run("branch", "merge", "review", "--uri", uri, "--quiet", "--json")
    assert [step["kind"] for step in json.loads(ran.out)["schema"]["steps"]] == [
        "add_property",
        "rename_property",
    ]
    changes = json.loads(run("schema", "log", uri, "--json").out)["changes"]
    assert [len(one["steps"]) for one in changes] == [2, 1, 2, 0]
    assert changes[0]["commit"]["merged_parent_commit_id"] is not None
    assert run("schema", "log", uri).out.splitlines()[0].endswith(" on main, merge of review")
    assert "node City" in run("schema", "show", uri).out


def test_schemas_that_disagree_are_told_and_settled(run: Run, uri: str) -> None:
    graph = og.open(uri)
    for name, branch in (("years", "review"), ("alter", "main")):
        graph.apply_schema(
            SCHEMA.replace("age: I32?", f'{name}: I32? @rename_from("age")'), branch=branch
        )
    ran = run("branch", "merge", "review", "--uri", uri, "--quiet")
    assert (ran.code, ran.out) == (1, "")
    lines = ran.err.splitlines()
    at = lines.index("node Person.alter")
    assert lines[at - 1] == "1 conflict:"
    assert lines[at + 1].startswith("  schema_divergent_change: ")
    assert lines[at + 2 : at + 5] == ["      base  age", "    source  years", "    target  alter"]
    assert lines[-1].endswith("--resolve TYPE.PROPERTY=SIDE")
    line = ["branch", "merge", "review", "--uri", uri, "--quiet"]
    found = json.loads(run(*line, "--dry-run", "--json").out)["merge_conflicts"]
    assert [(one["entity_id"], one["property"]) for one in found] == [("", "alter")]
    ran = run(*line, "--resolve", "Person.alter=theirs")
    assert ran.code == 0
    assert "node Person.alter: schema_divergent_change, source wins" in ran.out
    assert "years: I32?" in run("schema", "show", uri).out
