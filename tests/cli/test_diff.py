"""`omnigraph diff` and `commit changes`: for people, for programs, and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

import omnigraph as og
from omnigraph.wire.changes import BlockBody, DiffBody
from tests.history.changing import (
    SCHEMA,
    change_schema,
    knows,
    make_people,
    mutate,
    person,
    place,
)
from tests.wire.plain import plain

Run = Callable[..., Any]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    graph = make_people(tmp_path / "people.omni")
    graph.branches.create("draft")
    return str(tmp_path / "people.omni")


@pytest.fixture
def changed(uri: str) -> og.Graph:
    """The branch differs in every way."""
    graph = og.open(uri)
    graph.load([person("Cid", age=1)], mode="append", branch="draft")
    statement = 'update Person set { age: 31, tags: ["a\\n", "\\"b\\""] } where name = "Ann"'
    mutate(graph, statement, branch="draft")
    graph.load([person("Dan")], mode="append", branch="draft")
    graph.load([knows("k1", "Cid", "Ann")], mode="merge", branch="draft")
    mutate(graph, 'delete Person where name = "Ben"', branch="draft")
    mutate(graph, 'delete Person where name = "Dan"', branch="draft")
    return graph


def test_for_people(run: Run, uri: str, changed: og.Graph) -> None:
    ran = run("diff", "main", "draft", "--uri", uri)
    assert (ran.code, ran.err) == (0, "")
    assert (
        ran.out
        == """\
edge Knows
  ~ k1 (Cid → Ann)
      from: "Ann" → "Cid"
      to: "Ben" → "Ann"
      since: "2020-01-02T03:04:05.678Z" → null
node Person
  ~ Ann
      age: 30 → 31
      tags: ["a"] → ["a\\n","\\"b\\""]
  - Ben
  + Cid
      age: 1
      name: "Cid"
1 added, 2 changed, 1 removed
"""
    )
    assert len(list(changed.diff("main", "draft"))) == 4


def test_long_values_are_cut_and_odd_ids_are_escaped(run: Run, uri: str) -> None:
    og.open(uri).load([person("a\x1b[31m\nb", tags=["x" * 100])], mode="append", branch="draft")
    lines = run("diff", "main", "draft", "--uri", uri).out.splitlines()
    assert lines[1] == r"  + a\x1b[31m\nb"
    assert lines[3] == '      tags: ["' + "x" * 57 + "…"


def test_colour_is_for_terminals(
    run: Run, uri: str, changed: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed.snapshot("draft").branch == "draft"
    plain = run("diff", "main", "draft", "--uri", uri).out
    assert "\x1b" not in plain
    monkeypatch.setattr("omnigraph.cli.render.output.use_colour", lambda _: True)
    coloured = run("diff", "main", "draft", "--uri", uri).out
    assert click.unstyle(coloured) == plain
    for text in (
        click.style("edge Knows", bold=True),
        click.style("  + Cid", fg="green"),
        click.style("  - Ben", fg="red"),
        click.style("  ~ Ann", fg="yellow"),
    ):
        assert text in coloured


def test_counts_for_people(run: Run, uri: str, changed: og.Graph) -> None:
    ran = run("diff", "main", "draft", "--stat", "--store", uri)
    assert ran.out == (
        "type        | added | changed | removed\n"
        "------------+-------+---------+--------\n"
        "edge:Knows  |     0 |       1 |       0\n"
        "node:Person |     1 |       1 |       1\n"
    )
    assert len(changed.diff("main", "draft")) == 4


@pytest.mark.parametrize("stat", [[], ["--stat"]])
def test_nothing_is_different(run: Run, uri: str, stat: list[str]) -> None:
    ran = run("diff", "main", "draft", *stat, "--uri", uri)
    assert (ran.code, ran.out, ran.err) == (0, "no differences\n", "")
    body = json.loads(run("diff", "main", "draft", *stat, "--json", "--uri", uri).out)
    assert body["stats"] == []


def test_schemas_that_differ_are_shown_first(run: Run, uri: str) -> None:
    graph = og.open(uri)
    schema = SCHEMA.replace("    score: F64?\n", "").replace(
        "age: I32?", 'years: I32? @rename_from("age")'
    )
    change_schema(graph, schema, "draft")
    mutate(graph, 'update Person set { years: 31 } where name = "Ann"', branch="draft")
    lines = run("diff", "main", "draft", "--uri", uri).out.splitlines()
    assert lines[0] == "schema"
    place = lines.index("node Person")
    assert any("node:Person.years" in line for line in lines[1:place])
    assert all(line.startswith("  ") for line in lines[1:place])
    assert lines[place:] == [
        "node Person",
        "  ~ Ann",
        "      years: 30 → 31",
        "      score: 0.5 → null",
        "1 changed",
    ]
    counted = run("diff", "main", "draft", "--stat", "--uri", uri).out.splitlines()
    assert counted[:place] == lines[:place]
    assert counted[-1].split() == ["node:Person", "|", "0", "|", "1", "|", "0"]
    body = json.loads(run("diff", "main", "draft", "--stat", "--json", "--uri", uri).out)
    assert [step["kind"] for step in body["schema"]["steps"]] == [
        "rename_property",
        "drop_property",
    ]


@pytest.mark.parametrize("stat", [[], ["--stat"]])
def test_schemas_alone_may_differ(run: Run, uri: str, stat: list[str]) -> None:
    change_schema(og.open(uri), SCHEMA.replace("score: F64?", "score: F64? @index"), "draft")
    lines = run("diff", "main", "draft", *stat, "--uri", uri).out.splitlines()
    assert (lines[0], lines[-1]) == ("schema", "no other differences")


def test_json_is_all_of_it(run: Run, uri: str, changed: og.Graph) -> None:
    ran = run("diff", "main", "draft", "--json", "--uri", uri)
    found = changed.diff("main", "draft")
    body = plain(DiffBody.of(found))
    assert json.loads(ran.out) == body
    assert ran.out == json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    counts = json.loads(run("diff", "main", "draft", "--json", "--stat", "--uri", uri).out)
    assert counts == {name: value for name, value in body.items() if name != "changes"}


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (["--kind", "edge"], ["k1"]),
        (["--type", "Person", "--op", "insert", "--op", "delete"], ["Ben", "Cid"]),
        (["--kind", "node", "--kind", "edge", "--type", "Knows"], ["k1"]),
    ],
)
def test_filters(run: Run, uri: str, changed: og.Graph, filters: list[str], ids: list[str]) -> None:
    assert changed.branches.list() == ["draft", "main"]
    ran = run("diff", "main", "draft", *filters, "--json", "--uri", uri)
    assert [change["id"] for change in json.loads(ran.out)["changes"]] == ids


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["main", "drft"], 1, "did you mean `draft`?"),
        (["main", "draft", "--type", "Persn"], 1, "did you mean `Person`?"),
        (["main", "draft", "--kind", "nodes"], 2, "nodes"),
        (["main"], 2, "A..B"),
        (["main", "draft", "--as", "ann"], 2, "takes no --as"),
    ],
)
def test_refused(run: Run, uri: str, arguments: list[str], code: int, message: str) -> None:
    ran = run("diff", *arguments, "--uri", uri)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err


# -- commit changes ----------------------------------------------------------------


def test_changes_of_a_commit_for_people(run: Run, uri: str) -> None:
    graph = og.open(uri, actor="ann")
    commit = mutate(graph, 'update Person set { age: 31 } where name = "Ann"')
    ran = run("commit", "changes", commit, "--uri", uri)
    assert (ran.code, ran.err) == (0, "")
    first, *rest = ran.out.splitlines()
    assert re.fullmatch(
        rf"commit {commit} of \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ by ann on main", first
    )
    assert rest == ["node Person", "  ~ Ann", "      age: 30 → 31", "1 changed"]


def test_changes_of_a_commit_for_programs(run: Run, uri: str) -> None:
    graph = og.open(uri)
    graph.load([place(f"p{number}") for number in range(5)], mode="append")
    commit = graph.commits.list()[0].id
    whole = plain(BlockBody.of(graph.commits.changes(commit)))
    for limit in ([], ["--limit", "2"]):
        ran = run("commit", "changes", commit, *limit, "--json", "--uri", uri)
        assert ran.out == json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    token = graph.commits.changes(commit, limit=2).next_page_token
    page = ["commit", "changes", commit, "--limit", "2", "--page-token", str(token), "--uri", uri]
    body = json.loads(run(*page, "--json").out)
    assert [change["id"] for change in body["changes"]] == ["p2", "p3"]
    assert body["next_page_token"]
    assert run(*page).out.splitlines()[-1] == f"next page: {body['next_page_token']}"


def test_changes_of_a_commit_are_filtered(run: Run, uri: str) -> None:
    commit = og.open(uri).commits.list()[0].id
    filters = ["--kind", "node", "--type", "Person", "--op", "insert", "--json"]
    body = json.loads(run("commit", "changes", commit, *filters, "--uri", uri).out)
    assert [change["id"] for change in body["changes"]] == ["Ann", "Ben"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["01KA5QWZ7N4T3M8YB0C2D6E9FG"], "there is no commit"),
        (["{genesis}"], "has no parent"),
        (["{head}", "--limit", "0"], "from 1 on"),
        (["{head}", "--limit", "9000"], "resource limit exceeded for commit_changes_page_changes"),
        (["{head}", "--page-token", "abc"], "change cursor rejected: "),
    ],
)
def test_changes_that_are_refused(run: Run, uri: str, arguments: list[str], message: str) -> None:
    commits = og.open(uri).commits.list()
    names = {"head": commits[0].id, "genesis": commits[-1].id}
    ran = run("commit", "changes", *(text.format(**names) for text in arguments), "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err


def test_one_entity_line_by_line(run: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "texts.omni")
    with og.init(uri, "node Page { name: String @key  text: String?  size: I32? }") as graph:
        old = "one\ntwo\nthree"
        graph.load([{"type": "Page", "data": {"name": "a", "text": old, "size": 1}}], mode="append")
        graph.mutate('create Page { name: "b" }')
        new = {"name": "a", "text": old.replace("two", "2"), "size": None}
        graph.load([{"type": "Page", "data": new}], mode="merge")
    shown = run("diff", uri, "main~2..main", "-p", "Page:a")
    assert shown.out == (
        "node Page a\n  - size: 1\n  text:\n  @@ -1,3 +1,3 @@\n    one\n  - two\n  + 2\n    three\n"
    )
    assert run("diff", uri, "main~2", "main", "--patch", "node:Page:b").out == (
        'node Page b\n  + name: "b"\n'
    )
    assert run("diff", uri, "main~1..main", "-p", "Page:b").out == "no differences\n"
    assert "did you mean `Page`" in run("diff", uri, "main~1..main", "-p", "Pge:b").err
    for words in (["main"], ["main..draft", "main"], ["main", "main", "-p", "Page"]):
        assert run("diff", uri, *words).code in (1, 2)
    assert run("diff", uri, "main", "main", "-p", "Page:a", "--stat").code == 2
