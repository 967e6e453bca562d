"""`omnigraph config`, and which graph a command means in a project."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

import omnigraph as og
from omnigraph.cli.options.shared import BranchOption
from tests.cli.test_wrong_values import commands
from tests.film_graph import SCHEMA

Run = Callable[..., Any]
FILE = """\
version: 1
graphs:
  film: { uri: film.omni, schema: film.pg }
  far: { uri: s3://nowhere/far.omni }
  served: { uri: "http://127.0.0.1:1/graphs/film" }
default: { graph: film }
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project as the working directory, and a person who has configured nothing."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    for name in ("PROFILE", "GRAPH", "BRANCH", "CONFIG"):
        monkeypatch.delenv(f"OMNIGRAPH_{name}", raising=False)
    found = tmp_path / "project"
    found.mkdir()
    (found / "film.pg").write_text(SCHEMA)
    (found / "omnigraph.yaml").write_text(FILE)
    monkeypatch.chdir(found)
    return found


@pytest.fixture
def graph(project: Path) -> og.Graph:
    return og.init(project / "film.omni", SCHEMA)


def test_show_names_the_source_of_every_value(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_BRANCH", "dev")
    found = json.loads(run("config", "show", "--json", "--as", "ann").out)
    sources = {one["key"]: (one["value"], one["source"]) for one in found["values"]}
    assert found["project"] == str(project / "omnigraph.yaml")
    assert sources["graph"] == ("film", "omnigraph.yaml:6")
    assert sources["branch"] == ("dev", "OMNIGRAPH_BRANCH")
    assert sources["actor"] == ("ann", "--as")
    assert sources["output.format"] == ("table", "built-in")
    assert sources["graphs.far.uri"] == ("s3://nowhere/far.omni", "omnigraph.yaml:4")
    text = run("config", "show", "--branch", "b").out
    assert "branch: b  (--branch)\n" in text


def test_show_without_a_project(run: Run) -> None:
    ran = run("config", "show", "--no-config")
    assert ran.out.startswith("project: none\nbranch: main  (built-in)\n")


def test_the_schema_is_one(run: Run) -> None:
    schema = json.loads(run("config", "schema").out)
    jsonschema_rs.meta.validate(schema)


def test_validate(run: Run, project: Path) -> None:
    ran = run("config", "validate")
    assert ran.code == 0
    assert ran.out == "omnigraph.yaml is in order (version 1, 3 graphs, 0 aliases)\n"
    (project / "film.pg").write_text("node Person {")
    (project / "q.gq").write_text("query a($n: String) { match { $p: Person } return { $p.name } }")
    (project / "omnigraph.yaml").write_text(
        FILE + "aliases:\n  one: { query: q.gq, args: [m] }\n  two: { query: none.gq }\n"
        "  three: { query: q.gq, command: change }\n"
    )
    ran = run("config", "validate", "--json")
    assert ran.code == 1
    found = json.loads(ran.out)
    assert (found["ok"], len(found["problems"])) == (False, 4)
    said = [f"{one['place']} {one['message']}" for one in found["problems"]]
    assert said[0].startswith("omnigraph.yaml:3 ")
    assert said[1].startswith("omnigraph.yaml:8 its query has no parameter `m`: known here: `n`")
    assert said[2].startswith("omnigraph.yaml:9 there is no none.gq for the alias 'two'")
    assert "says `command: change`, but its query reads" in said[3]


def test_validate_reads_addresses(run: Run, project: Path) -> None:
    uris = ("ftp://x", "http://", "http://x:99999/graphs/a", "s3://", "https://x?y")
    lines = [f"  g{number}: {{ uri: '{uri}' }}\n" for number, uri in enumerate(uris)]
    (project / "omnigraph.yaml").write_text(f"version: 1\ngraphs:\n{''.join(lines)}")
    ran = run("config", "validate", "--json")
    found = json.loads(ran.out)["problems"]
    assert [one["place"] for one in found] == [f"omnigraph.yaml:{n}" for n in range(3, 8)]
    assert "ftp:// is not supported" in found[0]["message"]


def test_migrate(run: Run, project: Path) -> None:
    old = "# mine\ntargets:\n  film: { storage: film.omni } # here\ncli: { target: film }\n"
    path = project / "omnigraph.yaml"
    path.write_text(old)
    ran = run("config", "migrate")
    assert ran.code == 0
    assert "targets is called graphs\n" in ran.err
    assert path.read_text() == old
    ran = run("config", "migrate", "--write")
    assert (ran.code, ran.out) == (0, f"rewrote {path}\n")
    assert "# mine" in path.read_text()
    assert "# here" in path.read_text()
    assert "version: 1" in path.read_text()
    assert run("config", "validate").code == 0
    assert "is in version 1 already" in run("config", "migrate", "--write").out


@pytest.mark.parametrize("verb", ["validate", "migrate"])
def test_there_has_to_be_a_project(run: Run, verb: str) -> None:
    ran = run("config", verb, "--no-config")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no omnigraph.yaml in " in ran.err


def test_a_broken_file_is_told_with_its_place_and_can_be_left_out(run: Run, project: Path) -> None:
    (project / "omnigraph.yaml").write_text("graphs: [x]\n")
    ran = run("branch", "list")
    assert (ran.code, ran.out) == (1, "")
    assert "omnigraph.yaml:1:9: graphs: this must be a mapping" in ran.err
    assert "which graph? give its URI" in run("branch", "list", "--no-config").err


def test_unknown_keys_are_remarked_once(run: Run, project: Path) -> None:
    (project / "omnigraph.yaml").write_text(FILE + "alises: {}\n")
    err = run("config", "show").err
    assert err.count("did you mean `aliases`?") == 1


# -- which graph -------------------------------------------------------------------------


@pytest.mark.usefixtures("graph")
def test_the_graph_of_the_project_is_meant(run: Run) -> None:
    assert run("branch", "list").out == "main\n"
    assert run("branch", "list", "--graph", "film").out == "main\n"
    assert run("branch", "list", "--uri", "film").out == "main\n"
    ran = run("branch", "create", "dev")
    line = "omnigraph branch create → film (film.omni) from omnigraph.yaml (direct, local)\n"
    assert ran.err == line
    assert run("snapshot", "film.omni", "--json").code == 0


@pytest.mark.usefixtures("graph")
def test_a_path_that_is_there_wins_with_a_note(run: Run, project: Path) -> None:
    og.init(project / "far", SCHEMA)
    ran = run("branch", "list", "--uri", "far")
    assert (ran.code, ran.out) == (0, "main\n")
    assert "note: far is taken as the path that is there" in ran.err


def test_a_name_that_is_not_there(run: Run) -> None:
    ran = run("branch", "list", "--graph", "flim")
    assert (ran.code, ran.out) == (1, "")
    assert "did you mean `film`?" in ran.err
    ran = run("snapshot", "flim")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no graph at flim, and no graph 'flim' in " in ran.err
    assert "did you mean `film`?" in ran.err


@pytest.mark.usefixtures("graph")
@pytest.mark.parametrize(
    "words",
    [
        ("snapshot", "--branch", "darft"),
        ("branch", "delete", "darft"),
        ("branch", "merge", "darft"),
        ("branch", "create", "b", "--from", "darft"),
        ("branch", "rename", "darft", "b"),
        ("load", "--data", "none.jsonl", "--mode", "merge", "--branch", "darft"),
        ("export", "--branch", "darft"),
    ],
)
def test_a_branch_that_is_not_there_is_told_with_the_nearest(
    run: Run, project: Path, words: tuple[str, ...]
) -> None:
    (project / "none.jsonl").write_text("")
    assert run("branch", "create", "draft").code == 0
    ran = run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert "there is no branch darft: did you mean `draft`?" in ran.err


@pytest.mark.usefixtures("graph")
def test_the_environment_names_graph_and_branch(
    run: Run, monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    (project / "omnigraph.yaml").write_text(FILE.replace("graph: film", "graph: far"))
    monkeypatch.setenv("OMNIGRAPH_GRAPH", "film")
    assert run("branch", "create", "dev").code == 0
    monkeypatch.setenv("OMNIGRAPH_BRANCH", "dev")
    assert json.loads(run("snapshot", "--json").out)["graph_branch"] == "dev"
    assert json.loads(run("snapshot", "--json", "--branch", "main").out)["graph_branch"] == "main"
    assert json.loads(run("snapshot", "film.omni", "--json").out)["graph_branch"] == "dev"


@pytest.mark.usefixtures("graph")
def test_the_branch_of_the_graph_is_the_default(run: Run, project: Path) -> None:
    run("branch", "create", "dev")
    text = FILE.replace("uri: film.omni,", "uri: film.omni, branch: dev,")
    (project / "omnigraph.yaml").write_text(text)
    for address in ([], ["film"]):
        assert json.loads(run("snapshot", *address, "--json").out)["graph_branch"] == "dev"
    # A path of its own is no graph of the project.
    assert (
        json.loads(run("snapshot", "--store", "film.omni", "--json").out)["graph_branch"] == "main"
    )


ALL_BRANCHES = {"maintain", "verify"}
"""The commands that look at every branch if none is named."""
OTHERWISE = {
    "embed": "tests/embed/test_verb.py, since --all has another meaning there",
    "config show": "it shows what is configured",
    "policy explain": "it asks about a branch, and uses none",
}


def test_every_branch_that_may_be_given_may_be_configured() -> None:
    by_themselves = {
        words
        for words, command in commands()
        for option in command.params
        if "--branch" in option.opts and not isinstance(option, BranchOption)
    }
    assert by_themselves == ALL_BRANCHES | set(OTHERWISE)


def test_a_graph_on_a_server_is_not_for_commands_on_storage(run: Run) -> None:
    ran = run("optimize", "--graph", "served")
    assert (ran.code, ran.out) == (2, "")
    assert "the graph 'served' of omnigraph.yaml is on a server" in ran.err
    ran = run("branch", "create", "b", "--graph", "served", "--as", "ann")
    assert (ran.code, ran.out) == (2, "")
    assert "the token of the server decides who acts" in ran.err


def test_the_gate_stands_before_a_graph_of_a_file_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_GRAPH", "far")
    ran = run("branch", "delete", "b", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]
    assert "cannot be undone: agree to it with --yes" in ran.err


def test_two_addresses_are_one_too_many(run: Run) -> None:
    ran = run("snapshot", "film", "--graph", "far")
    assert ran.code == 2
    assert "a store is one graph: leave --graph out" in ran.err
