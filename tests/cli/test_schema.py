"""`omnigraph schema`: plans, applies, differences and the log, for people and for programs."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main

Run = Callable[..., Any]

FIRST = """\
// Who knows whom.
node Person {
    name: String @key
    age: I32?
    bio: String?
}

edge Knows: Person -> Person
"""
NEXT = """\
node Person {
    name: String @key
    years: I64? @rename_from("age")
    score: F64 @default(0.5)
    @unique(years)
}

edge Knows: Person -> Person
"""
REFUSED = """\
node Person {
    name: String @key
    age: I32
    bio: Date?
    shoe: I32
}

edge Knows: Person -> Person
"""
NEXT_TEXT = """\
5 steps: 1 destructive, 1 validated, 3 safe
destructive
  node:Person.bio is dropped (metadata only)
    1 row loses a value
validated
  node:Person.years gets @unique(years) (scans rows)
safe
  node:Person.score is added as F64 (writes columns)
  node:Person.years is renamed from age (metadata only)
  node:Person.years becomes I64?, from I32? (writes columns)
"""
SHOE = """\
error[OG-MF-103]: the new property `shoe` is neither nullable nor has a `@default`, so existing \
rows cannot be filled: make it nullable or give it a `@default`
 --> {path}:5:5
  |
5 |     shoe: I32
  |     ^^^^
"""
BIO = """\
error[OG-MF-106]: the type of a property cannot change from String? to Date? while it has values: \
add another property, copy them, then drop this one
 --> {path}:4:5
  |
4 |     bio: Date?
  |     ^^^
"""
AGE = """\
error[OG-MF-104]: node:Person.age becomes non-nullable: 1 row breaks it: Ben
 --> {path}:3:5
  |
3 |     age: I32
  |     ^^^
"""
QUERY = "query young() { match { $p: Person $p.age < 9 } return { $p.name } }\n"


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = og.init(tmp_path / "film.omni", FIRST)
    people = [{"name": "Ann", "age": 30, "bio": "tall"}, {"name": "Ben"}]
    graph.load([{"type": "Person", "data": one} for one in people], mode="append")
    return str(graph.location)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        path = tmp_path / ("q.gq" if text.startswith("query") else "next.pg")
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


File = Callable[[str], str]


def head(uri: str, branch: str = "main") -> str:
    return og.open(uri, read_only=True).snapshot(branch).commit_id


# -- show --------------------------------------------------------------------------------


def test_the_schema_of_a_branch_and_of_a_commit(run: Run, uri: str) -> None:
    before = head(uri)
    og.open(uri).branches.create("dev")
    og.open(uri).apply_schema(NEXT, branch="dev")
    assert run("schema", "show", uri).out == FIRST
    assert run("schema", "show", uri, "--branch", " dev ").out == NEXT
    assert run("schema", "show", uri, "--commit", before).out == FIRST
    assert run("schema", "show", uri, "--commit", f" {head(uri, 'dev')}").out == NEXT
    assert json.loads(run("schema", "get", uri, "--branch", "dev", "--json").out) == {
        "schema_source": NEXT
    }
    # A commit is not a branch; a branch stands for its newest commit.
    assert run("schema", "show", uri, "--branch", before).code == 1
    assert run("schema", "show", uri, "--commit", "dev").out == NEXT
    for both in (["--branch", "dev", "--commit", before], ["--commit", " "]):
        assert run("schema", "show", uri, *both).code == 2


# -- plan --------------------------------------------------------------------------------


def test_a_plan_for_people(run: Run, uri: str, file: File) -> None:
    before = head(uri)
    ran = run("schema", "plan", uri, "--schema", file(NEXT))
    assert (ran.code, ran.out, ran.err) == (0, NEXT_TEXT, "")
    ran = run("schema", "plan", uri, "--schema", file(FIRST.replace("//", "// Says")), "--check")
    assert (ran.code, ran.out) == (0, "no change\n")
    assert head(uri) == before


def test_a_plan_that_is_refused_shows_where(run: Run, uri: str, file: File) -> None:
    path = file(REFUSED)
    ran = run("schema", "plan", uri, "--schema", path)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0] == "3 steps: 2 refused, 1 validated"
    assert f"     --> {path}:5:5" in lines
    assert "    5 |     shoe: I32" in lines
    assert "      |     ^^^^" in lines
    assert "breaks it" not in ran.out
    checked = run("schema", "plan", uri, "--schema", path, "--check")
    assert checked.code == 0
    assert f"    1 row breaks it: Ben\n     --> {path}:3:5\n" in checked.out


def test_the_exit_code_of_a_plan(run: Run, uri: str, file: File) -> None:
    tightened = FIRST.replace("I32?", "I32")
    for text, check, code in (
        (NEXT, [], 0),
        (NEXT, ["--check"], 0),
        (REFUSED, [], 1),
        (tightened, [], 0),
        (tightened, ["--check"], 1),
    ):
        line = ["schema", "plan", uri, "--schema", file(text), *check]
        assert run(*line).code == 0
        assert run(*line, "--exit-code").code == code


def test_a_plan_for_programs(run: Run, uri: str, file: File) -> None:
    path = file(REFUSED)
    ran = run("schema", "plan", uri, "--schema", path, "--check", "--json")
    body = json.loads(ran.out)
    assert (ran.code, body["supported"], body["step_count"]) == (0, False, 3)
    assert [(one["entity"], one["code"]) for one in body["refusals"]] == [
        ("node:Person.age", "OG-MF-104"),
        ("node:Person.bio", "OG-MF-106"),
        ("node:Person.shoe", "OG-MF-103"),
    ]
    assert body["refusals"][0]["violations"] == {"count": 1, "ids": ["Ben"]}
    assert body["refusals"][2]["place"] == {
        "path": path,
        "line": 5,
        "column": 5,
        "end_line": 5,
        "end_column": 9,
    }
    assert body["steps"][0]["violations"] == {"count": 1, "ids": ["Ben"]}
    body = json.loads(run("schema", "plan", uri, "--schema", file(NEXT), "--json").out)
    assert list(body) == ["uri", "branch", "supported", "step_count", "steps"]
    assert {step["tier"] for step in body["steps"]} == {"destructive", "validated", "safe"}


def test_dropping_for_good_is_asked_for(run: Run, uri: str, file: File) -> None:
    ran = run("schema", "plan", uri, "--schema", file(NEXT), "--allow-data-loss")
    assert "node:Person.bio is dropped with its history (metadata only)" in ran.out


def test_tiers_have_colours_on_a_terminal(
    uri: str, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["schema", "plan", uri, "--schema", file(NEXT)]) == 0
    shown = terminal.getvalue()
    assert "\x1b[32m\x1b[1msafe\x1b[0m" in shown
    assert re.sub(r"\x1b\[\d+m", "", shown) == NEXT_TEXT


# -- apply -------------------------------------------------------------------------------


def test_an_apply_for_people(run: Run, uri: str, file: File) -> None:
    ran = run("schema", "apply", uri, "--schema", file(NEXT), "--as", "ann")
    assert ran.code == 0
    assert ran.err == f"omnigraph schema apply → {uri} (direct, local)\n"
    checked = NEXT_TEXT.replace("(scans rows)", "(scans rows)\n    no row breaks it")
    assert ran.out == (f"changed the schema of main\n{checked}actor_id: ann\ncommit: {head(uri)}\n")
    assert run("schema", "show", uri).out == NEXT
    ran = run("schema", "apply", uri, "--schema", file(NEXT + "// The same.\n"), "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "main has this schema already: nothing was changed\n"


def test_an_apply_for_programs(run: Run, uri: str, file: File) -> None:
    og.open(uri).branches.create("dev")
    line = ["schema", "apply", "--store", uri, "--schema", file(NEXT), "--branch", "dev", "--json"]
    body = json.loads(run(*line, "--as", "ann").out)
    steps = body.pop("steps")
    commit = body.pop("commit")
    assert body == {
        "uri": uri,
        "branch": "dev",
        "supported": True,
        "applied": True,
        "step_count": 5,
        "graph_manifest_version": 3,
        "actor_id": "ann",
    }
    assert len(steps) == 5
    assert commit["graph_commit_id"] == head(uri, "dev")
    again = json.loads(run(*line).out)
    assert (again["applied"], again["step_count"], again["commit"]) == (False, 0, None)
    assert run("schema", "show", uri).out == FIRST


def test_a_refused_apply_tells_everything_and_changes_nothing(
    run: Run, uri: str, file: File
) -> None:
    before, path = head(uri), file(REFUSED)
    ran = run("schema", "apply", uri, "--schema", path, "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "\n".join(text.format(path=path) for text in (AGE, BIO, SHOE))
    ran = run("schema", "apply", uri, "--schema", path, "--quiet", "--json")
    assert ran.code == 1
    assert ran.err.startswith("error[OG-MF-104]: ")
    refusal = json.loads(ran.out)["schema_change_refusal"]
    assert [one["code"] for one in refusal["refusals"]] == ["OG-MF-104", "OG-MF-106", "OG-MF-103"]
    assert len(refusal["steps"]) == 3
    assert head(uri) == before


def test_an_apply_can_insist_on_a_head(run: Run, uri: str, file: File) -> None:
    stale, now = og.open(uri).commits.list()[1].id, head(uri)
    line = ["schema", "apply", uri, "--quiet", "--json", "--schema"]
    # Also where nothing would change.
    for text in (NEXT, FIRST):
        ran = run(*line, file(text), "--if-commit", stale)
        assert ran.code == 4
        assert json.loads(ran.out)["precondition_failure"] == {
            "branch": "main",
            "expected": stale,
            "actual": now,
        }
        assert head(uri) == now
    assert run(*line, file(NEXT), "--if-commit", f" {now} ").code == 0
    assert run(*line, file(NEXT), "--if-commit", "").code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node Person { name Strng }\n", "next.pg:1:20"),
        ('node A { x: String @check(x, "(") }\n', "next.pg:1:31"),
        ("node A implements B { x: String }\n", "next.pg:1:19"),
        (" \n", "next.pg is empty: that would drop every type"),
    ],
)
def test_a_schema_that_is_none(run: Run, uri: str, file: File, text: str, message: str) -> None:
    before, path = head(uri), file(text)
    for verb in ("plan", "apply"):
        ran = run("schema", verb, uri, "--schema", path)
        assert (ran.code, ran.out) == (1, "")
        assert message in ran.err
        body = json.loads(run("schema", verb, uri, "--schema", path, "--json").out)
        assert body["code"] == "bad_request"
    assert head(uri) == before


@pytest.mark.parametrize("verb", ["plan", "apply", "log", "show"])
def test_a_branch_that_is_missing(run: Run, uri: str, file: File, verb: str) -> None:
    schema = ["--schema", file(NEXT)] if verb in ("plan", "apply") else []
    ran = run("schema", verb, uri, "--branch", "x", "--quiet", *schema)
    assert (ran.code, ran.out, ran.err) == (1, "", "error: there is no branch x\n")


def test_a_schema_file_is_needed(run: Run, uri: str, tmp_path: Path) -> None:
    for verb in ("plan", "apply"):
        assert run("schema", verb, uri).code == 2
        ran = run("schema", verb, uri, "--schema", str(tmp_path / "no.pg"))
        assert (ran.code, ran.out) == (1, "")
        assert "cannot read" in ran.err


# -- stored queries ----------------------------------------------------------------------


def test_queries_that_would_break_refuse_it(run: Run, uri: str, file: File) -> None:
    query, schema, before = file(QUERY), file(NEXT), head(uri)
    line = [uri, "--schema", schema, "--queries", query]
    ran = run("schema", "plan", *line)
    assert ran.code == 0
    assert f"  query `young` of {query} does not compile against this schema\n" in ran.out
    assert f"     --> {query}:1:39\n" in ran.out
    assert run("schema", "plan", *line, "--exit-code").code == 1
    ran = run("schema", "apply", *line, "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        f"error[schema_change_refused]: query `young` of {query} does not compile against this "
        "schema\nerror[T6]: node type Person has no property `age`\n"
    )
    body = json.loads(run("schema", "apply", *line, "--quiet", "--json").out)
    (broken,) = body["schema_change_refusal"]["broken_queries"]
    assert (broken["source"], broken["query"]) == (query, "young")
    assert broken["diagnostics"][0]["code"] == "T6"
    assert head(uri) == before
    body = json.loads(run("schema", "apply", *line, "--force-queries", "--json").out)
    assert body["applied"]
    assert [one["query"] for one in body["broken_queries"]] == ["young"]


# -- diff and log ------------------------------------------------------------------------


def test_what_leads_from_one_schema_to_another(run: Run, uri: str, file: File) -> None:
    before = head(uri)
    run("schema", "apply", uri, "--schema", file(NEXT), "--quiet")
    ran = run("schema", "diff", before, "main", "--uri", uri)
    assert (ran.code, ran.err) == (0, "")
    assert "node:Person.years is renamed from age" in ran.out
    assert run("schema", "diff", "main", "main", "--store", uri).out == "no change\n"
    body = json.loads(run("schema", "diff", "main", before, "--uri", uri, "--json").out)
    assert (body["from"], body["to"], body["step_count"]) == ("main", before, len(body["steps"]))
    assert {"rename_property", "drop_property"} <= {step["kind"] for step in body["steps"]}
    ran = run("schema", "diff", "main", "mian", "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert "did you mean `main`?" in ran.err


def test_the_log_has_the_commits_that_changed_the_schema(run: Run, uri: str, file: File) -> None:
    first = og.open(uri).commits.list()[-1].id
    run("schema", "apply", uri, "--schema", file(NEXT), "--quiet", "--as", "ann")
    changed = head(uri)
    og.open(uri).load('{"type":"Person","data":{"name":"Cy"}}', mode="append")
    ran = run("schema", "log", uri)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert re.fullmatch(rf"commit {changed} of .*Z by ann on main", lines[0])
    assert lines[1] == "  5 steps: 1 destructive, 1 validated, 3 safe"
    assert "    node:Person.years gets @unique(years) (scans rows)" in lines
    assert re.fullmatch(rf"commit {first} of .*Z on main", lines[-2])
    assert lines[-1] == "  the first schema"
    body = json.loads(run("schema", "log", uri, "--json").out)
    assert [one["commit"]["graph_commit_id"] for one in body["changes"]] == [changed, first]
    assert [one["step_count"] for one in body["changes"]] == [5, 0]
    steps = json.loads(run("schema", "plan", uri, "--schema", file(FIRST), "--json").out)["steps"]
    assert all(step.keys() >= {"kind", "tier", "cost"} for step in steps)
    assert f"{changed} " in run("log", uri).out
    assert "schema_apply" in run("log", uri).out


# -- scope -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "flag", "message"),
    [
        (["plan", "--schema", "x"], "--as", "`schema plan` is a direct command and takes no --as"),
        (["plan", "--schema", "x"], "--server", "takes no --server: use --store URI"),
        (["log"], "--as", "`schema log` is a data command and takes no --as"),
        (["diff", "a", "b"], "--as", "`schema diff` is a data command and takes no --as"),
    ],
)
def test_flags_that_are_not_taken(run: Run, words: list[str], flag: str, message: str) -> None:
    ran = run("schema", *words, flag, "x")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
