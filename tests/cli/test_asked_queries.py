"""The words of `query`, `mutate` and `explain`: locations, names, aliases, parameters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

Run = Callable[..., Any]
SCHEMA = "node Person { name: String @key  age: I32? }"
QUERIES = """\
query person($name: String, $least: I32?) {
    match { $p: Person { name: $name } }
    return { $p.name as name, $p.age as age }
}

query everybody() {
    match { $p: Person }
    return { $p.name as name }
    order { name asc }
}

query add($name: String, $age: I32?) {
    insert Person { name: $name, age: $age }
}
"""
FILE = """\
graphs:
  people: { uri: people.omni, queries: stored }
  others: { uri: others.omni }
cli: { graph: people }
query: { roots: [more] }
aliases:
  ann: { command: read, query: more.gq, name: named, params: { name: Ann } }
  named: { query: more.gq, name: named, args: [name], format: csv }
  stored: { query: person, args: [name], graph: people }
  new: { command: change, query: more.gq, name: put, args: [name, age] }
  wrong: { command: read, query: more.gq, name: put }
  everybody: { query: nothing.gq }
"""
MORE = """\
query named($name: String) {
    match { $p: Person { name: $name } }
    return { $p.name as name }
}

query put($name: String, $age: I32) {
    insert Person { name: $name, age: $age }
}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two graphs, one of them with stored queries, and aliases of the older dialect."""
    found = tmp_path_factory.mktemp("made") / "project"
    (found / "stored").mkdir(parents=True)
    (found / "stored" / "q.gq").write_text(QUERIES)
    (found / "more").mkdir()
    (found / "more" / "more.gq").write_text(MORE)
    (found / "omnigraph.yaml").write_text(FILE)
    for name, rows in (("people", ("Ann", "Ben", "7")), ("others", ("Zoe",))):
        graph = og.init(found / f"{name}.omni", SCHEMA)
        records: list[dict[str, object]] = [
            {"type": "Person", "data": {"name": row, "age": 40}} for row in rows
        ]
        graph.load(records, mode="append")
    return found


@pytest.fixture(autouse=True)
def _there(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project as the working directory, and a person who has configured nothing."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    for name in ("PROFILE", "GRAPH", "BRANCH", "CONFIG"):
        monkeypatch.delenv(f"OMNIGRAPH_{name}", raising=False)
    monkeypatch.chdir(made)


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy to write to."""
    found = Path(shutil.copytree(made, tmp_path / "project"))
    monkeypatch.chdir(found)
    return found


READS = [
    (["person", "Ann"], "Ann"),
    (["person", "7"], "7"),
    (["person", "Ann", "3"], "Ann"),
    (["person", "--params", '{"name": "Ben"}'], "Ben"),
    (["person", "Ann", "--params", '{"name": "Ben"}'], "Ben"),
    (["people", "person", "Ann"], "Ann"),
    (["people.omni", "--query", "stored/q.gq", "person", "Ann"], "Ann"),
    (["person", "Ann", "--graph", "people"], "Ann"),
    (["ann"], "Ann"),
    (["named", "Ben"], "Ben"),
    (["others", "named", "Zoe"], "Zoe"),
    (["--alias", "named", "Ben"], "Ben"),
    (["--alias", "named", "Zoe", "--graph", "others"], "Zoe"),
    (["stored", "Ann"], "Ann"),
    (["others", "--query", "more.gq", "named", "Zoe"], "Zoe"),
    (["others.omni", "--query", "more.gq", "named", "Zoe"], "Zoe"),
    (["--store", "others.omni", "--query", "more.gq", "named", "Zoe"], "Zoe"),
    (["--query", "more.gq", "named", "Ann"], "Ann"),
]


@pytest.mark.parametrize(("words", "found"), READS, ids=[" ".join(words) for words, _ in READS])
def test_what_words_mean(run: Run, words: list[str], found: str) -> None:
    ran = run("query", *words, "--format", "json")
    assert ran.code == 0, ran.err
    assert [row["name"] for row in json.loads(ran.out)["rows"]] == [found]


def test_a_stored_query_comes_before_an_alias_of_its_name(run: Run) -> None:
    assert run("query", "everybody", "--format", "csv").out == "name\n7\nAnn\nBen\n"


def test_the_format_is_that_of_the_option_the_alias_the_file_and_the_person(
    run: Run, project: Path, tmp_path: Path
) -> None:
    assert run("query", "named", "Ann").out == "name\nAnn\n"
    assert run("query", "named", "Ann", "--format", "jsonl").out == '{"name":"Ann"}\n'
    assert run("query", "ann").out.startswith("1 row from branch main via named\nname\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("defaults: {output: jsonl}\n")
    assert run("query", "ann").out == '{"name":"Ann"}\n'
    (project / "omnigraph.yaml").write_text(FILE + "output: {format: csv}\n")
    assert run("query", "ann").out == "name\nAnn\n"
    assert run("query", "ann", "--json").out.startswith("{\n")


def test_the_layout_of_tables_is_configured(run: Run, project: Path) -> None:
    text = "output: {format: table, table_max_column_width: 8, table_cell_layout: wrap}\n"
    (project / "omnigraph.yaml").write_text(FILE + text)
    query = 'query q() { match { $p: Person { name: "Ann" } } return { "abcdefghij" as x } }'
    assert run("query", "-e", query).out.splitlines()[3:] == ["abcdefgh", "ij"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "which query? give --query FILE or -e GQ, or the NAME"),
        (["people"], 2, "which query?"),
        (["peeple", "everybody"], 1, "did you mean `people`?"),
        (["persn", "Ann"], 1, "there is no stored query and no alias `persn`: did you mean"),
        (["--alias", "nmed"], 1, "there is no alias 'nmed': did you mean `named`?"),
        (["person", "a", "1", "c"], 2, "the query `person` takes name, least: 3 were given"),
        (["named", "a", "b"], 2, "the alias 'named' takes name: 2 were given"),
        (["add", "Cid"], 1, "run it with mutate, not query"),
        (["new", "Cid", "3"], 1, "run it with mutate, not query"),
        (["wrong"], 1, "says `command: read`, but its query changes"),
        (["--alias", "everybody"], 1, "there is no nothing.gq for the alias 'everybody'"),
        (["s3://b/g", "person", "--graph", "people"], 2, "more than one address is given"),
        (["person", "Ann", "--graph", "peple"], 1, "did you mean `people`?"),
        (["--alias", "ann", "-e", "query q() {}"], 2, "leave --query and -e out"),
        (["gone.omni", "--query", "more.gq", "named"], 1, "there is no graph at"),
        (
            ["./gone", "-e", "query q() { match { $p: Person } return { $p.age } }"],
            1,
            "no graph at",
        ),
        (["others", "person", "Ann"], 1, "there is no stored query and no alias `person`"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_words_do_not_mean(run: Run, words: list[str], code: int, said: str) -> None:
    ran = run("query", *words)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_what_could_be_two_things_is_neither(run: Run, project: Path) -> None:
    (project / "omnigraph.yaml").write_text(FILE + "  people: { query: more.gq, name: named }\n")
    ran = run("query", "people", "Ann")
    assert (ran.code, ran.out) == (1, "")
    assert "`people` could be the graph `people` (--graph people), or the alias `people`" in ran.err
    assert run("query", "--graph", "people", "people", "Ann").code == 0
    assert run("query", "--alias", "people", "Ann").code == 0


@pytest.mark.usefixtures("project")
def test_mutations_name_the_target_that_a_file_named(run: Run) -> None:
    line = "omnigraph mutate → people (people.omni) from omnigraph.yaml (direct, local)\n"
    ran = run("mutate", "add", "Cid", "3")
    assert (ran.code, ran.err) == (0, line)
    assert run("mutate", "new", "Dan", "4", "--quiet").err == ""
    assert run("change", "--alias", "new", "Eve", "5").err.endswith(line)
    ran = run("mutate", "add", "Flo", "--store", "others.omni")
    assert (ran.code, "there is no stored query and no alias `add`" in ran.err) == (1, True)
    add = "query a($n: String) { insert Person { name: $n } }"
    assert run("mutate", "--store", "others.omni", "-e", add, "a", "Flo").err == ""
    assert run("query", "everybody", "--format", "csv").out.split() == [
        *("name", "7", "Ann", "Ben", "Cid", "Dan", "Eve")
    ]
    ran = run("mutate", "person", "Ann")
    assert ran.code == 1
    assert "run it with query, not mutate" in ran.err


def test_the_branch_is_that_of_the_option_the_alias_and_the_graph(run: Run, project: Path) -> None:
    for name in ("of-graph", "of-alias"):
        run("branch", "create", name)
    text = FILE.replace("uri: people.omni,", "uri: people.omni, branch: of-graph,")
    text = text.replace("format: csv }", "format: csv, branch: of-alias }")
    (project / "omnigraph.yaml").write_text(text)

    def branch(*words: str) -> str:
        return str(json.loads(run("query", *words, "--json").out)["target"]["branch"])

    assert branch("person", "Ann") == "of-graph"
    assert branch("named", "Ann") == "of-alias"
    assert branch("named", "Ann", "--branch", "main") == "main"
    query = "query q() { match { $p: Person } return { $p.age } }"
    assert branch("--store", "people.omni", "-e", query) == "main"
    assert run("mutate", "add", "Gil").out.startswith("changed of-graph via add")
    assert "of-graph" in run("explain", "person", "Ann").out.splitlines()[0]


def test_alias_runs_reads_and_takes_no_scope(run: Run) -> None:
    assert run("alias", "named", "Ben").out == "name\nBen\n"
    assert run("alias", "named", "Ben", "--format", "jsonl").out == '{"name":"Ben"}\n'
    assert run("alias", "ann", "--json").code == 0
    ran = run("alias", "new", "x", "1")
    assert "run it with mutate, not query" in ran.err
    ran = run("alias", "named", "Ben", "--graph", "others")
    assert (ran.code, ran.out) == (2, "")
    assert "`alias` is a local command and takes no --graph" in ran.err


def test_aliases_of_a_person(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(
        "aliases:\n  mine: { query: person, args: [name], graph: people, format: csv }\n"
        "  named: { query: person, args: [name] }\n"
    )
    assert run("query", "mine", "Ann").out == "name,age\nAnn,40\n"
    # The project's own is the stronger one.
    assert run("query", "named", "Ann").out == "name\nAnn\n"
    assert "did you mean `mine`" in run("alias", "mien").err


def test_lint_and_plan_use_the_schema_of_the_project(run: Run, project: Path) -> None:
    assert run("lint").code == 2
    (project / "people.pg").write_text(SCHEMA)
    text = FILE.replace("uri: people.omni,", "uri: people.omni, schema: people.pg,")
    (project / "omnigraph.yaml").write_text(text)
    ran = run("lint")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "OK    query `person` (read)")
    assert "query `named`" in run("lint", "--query", "more.gq").out
    assert run("schema", "plan", "people").code == 0
    assert run("schema", "plan").code == 0
    ran = run("schema", "plan", "others")
    assert (ran.code, "which schema?" in ran.err) == (2, True)
    (project / "people.pg").write_text("node Person { name: String @key }")
    assert run("lint").code == 1
