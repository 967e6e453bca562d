"""The verbs that look at a graph and branch it: for people, for programs, and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.version import INTERNAL_SCHEMA
from tests.film_graph import insert_row

Run = Callable[..., Any]

SCHEMA = """\
// Who acted in what.
node Person {
    name: String @key
}

node Film {
    title: String @key
}

edge ActedIn: Person -> Film
"""
ULID = r"[0-9A-Z]{26}"


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "film.pg"
    path.write_text(SCHEMA, encoding="utf-8")
    return str(path)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "film.omni"
    og.init(path, SCHEMA, actor="ann")
    return str(path)


# -- init --------------------------------------------------------------------------


def test_init_makes_a_graph(run: Run, tmp_path: Path, schema: str) -> None:
    uri = str(tmp_path / "new.omni")
    ran = run("init", "--schema", schema, uri)
    assert (ran.code, ran.out, ran.err) == (0, f"initialized {uri}\n", "")
    assert og.open(uri).schema == SCHEMA


def test_init_says_what_it_found(run: Run, uri: str, schema: str) -> None:
    for force in ([], ["--force"]):
        ran = run("init", uri, "--schema", schema, *force)
        assert (ran.code, ran.out, ran.err) == (1, "", f"error: {uri} holds a graph already\n")


def test_init_over_remains_needs_force(run: Run, tmp_path: Path, schema: str) -> None:
    root = tmp_path / "new.omni"
    root.mkdir()
    (root / "_schema.pg").write_text("old")
    ran = run("init", str(root), "--schema", schema)
    assert ran.code == 1
    assert "the remains of one (_schema.pg)" in ran.err
    assert run("init", str(root), "--schema", schema, "--force").code == 0


def test_init_reports_the_mistakes_of_a_schema(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "film.pg"
    path.write_text("node A { x: Strng }")
    ran = run("init", str(tmp_path / "g"), "--schema", str(path))
    assert ran.code == 1
    assert f"{path}:1:13" in ran.err
    assert not (tmp_path / "g").exists()


def test_init_needs_its_arguments(run: Run, tmp_path: Path, schema: str) -> None:
    assert run("init", str(tmp_path / "g")).code == 2
    assert run("init", "--schema", schema).code == 2
    two = run("init", str(tmp_path / "g"), "--schema", schema, "--store", str(tmp_path / "h"))
    assert two.err.startswith("error: more than one address is given (URI, --store)")
    assert run("init", "--schema", str(tmp_path / "no.pg"), str(tmp_path / "g")).code == 1
    assert not (tmp_path / "g").exists()


def test_init_where_nothing_can_be_written(run: Run, schema: str) -> None:
    ran = run("init", "--schema", schema, "/proc/film.omni")
    assert (ran.code, ran.out) == (1, "")
    assert "/proc/film.omni" in ran.err


# -- snapshot ----------------------------------------------------------------------


def test_snapshot_for_people(run: Run, uri: str) -> None:
    ran = run("snapshot", uri)
    assert (ran.code, ran.err) == (0, "")
    heading, columns, rule, *rows = ran.out.splitlines()
    assert re.fullmatch(rf"branch main, manifest version 1, commit {ULID}", heading)
    assert re.split(r" +\| +", columns) == [
        "type",
        "entities",
        "version",
        "lance version",
        "path",
    ]
    assert set(rule) == {"-", "+"}
    assert [row.split()[0] for row in rows] == ["edge:ActedIn", "node:Film", "node:Person"]


def test_snapshot_for_programs(run: Run, uri: str) -> None:
    ran = run("snapshot", uri, "--branch", " main ", "--json")
    body = json.loads(ran.out)
    datasets = body.pop("datasets")
    assert body == {
        "graph_branch": "main",
        "graph_manifest_version": 1,
        "internal_schema_version": INTERNAL_SCHEMA,
    }
    assert [found["type_name"] for found in datasets] == ["ActedIn", "Film", "Person"]
    path = datasets[0].pop("dataset_path")
    assert (Path(uri) / path).is_dir()
    assert datasets[0] == {
        "entity_kind": "edge",
        "type_name": "ActedIn",
        "published_dataset_version": 1,
        "native_dataset_branch": None,
        "entity_count": 0,
        "lance_version": 1,
    }


def test_snapshot_of_a_branch(run: Run, uri: str) -> None:
    og.open(uri).branches.create("b")
    assert json.loads(run("snapshot", uri, "--branch", "b", "--json").out)["graph_branch"] == "b"


# -- commits -----------------------------------------------------------------------


def test_commit_list_for_people(run: Run, uri: str) -> None:
    ran = run("commit", "list", uri)
    assert (ran.code, ran.err) == (0, "")
    columns, _, row = ran.out.splitlines()
    assert columns.split(" | ")[0].strip() == "commit"
    assert re.fullmatch(rf"{ULID} \| \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ \| ann +\| main +\| +1", row)


def test_commit_list_for_programs(run: Run, uri: str) -> None:
    (commit,) = json.loads(run("commit", "list", uri, "--json").out)["commits"]
    known = og.open(uri).commits.list()[0]
    assert commit == {
        "graph_commit_id": known.id,
        "graph_branch": None,
        "graph_manifest_version": 1,
        "parent_commit_id": None,
        "merged_parent_commit_id": None,
        "actor_id": "ann",
        "created_at": known.created_at,
    }


@pytest.mark.parametrize(("actor", "count"), [("ann", 1), ("bob", 0)])
def test_commits_of_an_actor(run: Run, uri: str, actor: str, count: int) -> None:
    ran = run("commit", "list", uri, "--filter", f"actor={actor}", "--json")
    assert len(json.loads(ran.out)["commits"]) == count


@pytest.mark.parametrize("text", ["actor", "actor=", "branch=main", "=ann", ""])
def test_a_filter_that_is_none(run: Run, uri: str, text: str) -> None:
    ran = run("commit", "list", uri, "--filter", text)
    assert (ran.code, ran.out) == (2, "")
    assert "is not actor=NAME" in ran.err


def test_commit_show(run: Run, uri: str) -> None:
    known = og.open(uri).commits.list()[0]
    ran = run("commit", "show", known.id, "--uri", uri)
    assert ran.code == 0
    facts = dict(line.split(": ", 1) for line in ran.out.splitlines())
    assert (facts["commit"], facts["actor"], facts["branch"]) == (known.id, "ann", "main")
    assert set(facts) == {"commit", "created", "branch", "manifest version", "actor"}
    shown = json.loads(run("commit", "show", known.id, "--store", uri, "--json").out)
    assert shown == json.loads(run("commit", "list", uri, "--json").out)["commits"][0]


def test_commit_show_of_none(run: Run, uri: str) -> None:
    ran = run("commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: there is no commit 01ARZ3NDEKTSV4RRFFQ69G5FAV\n"


# -- branches ----------------------------------------------------------------------


def test_branches_for_people(run: Run, uri: str) -> None:
    ran = run("branch", "create", "draft", "--uri", uri)
    assert (ran.code, ran.out) == (0, "created branch draft from main\n")
    assert ran.err == f"omnigraph branch create → {uri} (direct, local)\n"
    ran = run("branch", "create", "next", "--uri", uri, "--from", "draft", "--quiet")
    assert (ran.out, ran.err) == ("created branch next from draft\n", "")
    ran = run("branch", "list", "--uri", uri)
    assert (ran.code, ran.out, ran.err) == (0, "draft\nmain\nnext\n", "")
    ran = run("branch", "delete", "next", "--uri", uri)
    assert (ran.code, ran.out) == (0, "deleted branch next\n")
    assert ran.err == f"omnigraph branch delete → {uri} (direct, local)\n"
    assert og.open(uri).branches.list() == ["draft", "main"]


def test_branches_for_programs(run: Run, uri: str) -> None:
    ran = run("branch", "create", " draft ", "--store", uri, "--as", "ann", "--json")
    assert json.loads(ran.out) == {"uri": uri, "from": "main", "name": "draft", "actor_id": "ann"}
    assert json.loads(run("branch", "list", "--store", uri, "--json").out) == {
        "branches": ["draft", "main"]
    }
    ran = run("--store", uri, "branch", "delete", "draft", "--json")
    assert json.loads(ran.out) == {"uri": uri, "name": "draft", "actor_id": None}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["create", "main"], "main exists always"),
        (["create", "a b"], "'a b' is not a branch name"),
        (["create", "__schema_apply_lock__"], "reserved"),
        (["create", "draft"], "branch draft exists already"),
        (["create", "draft/x"], "cannot exist beside draft"),
        (["create", "x", "--from", "y"], "there is no branch y"),
        (["delete", "main"], "main cannot be deleted"),
        (["delete", "x"], "there is no branch x"),
    ],
)
def test_branches_that_are_refused(run: Run, uri: str, args: list[str], message: str) -> None:
    og.open(uri).branches.create("draft")
    ran = run("branch", *args, "--uri", uri)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert og.open(uri).branches.list() == ["draft", "main"]


@pytest.mark.parametrize("verb", [["snapshot"], ["commit", "list"]])
def test_a_branch_that_is_missing(run: Run, uri: str, verb: list[str]) -> None:
    ran = run(*verb, uri, "--branch", "x")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: there is no branch x\n")


# -- schema ------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["show", "get"])
def test_the_schema_is_shown_as_it_was_written(run: Run, uri: str, word: str) -> None:
    ran = run("schema", word, uri)
    assert (ran.code, ran.out, ran.err) == (0, SCHEMA, "")
    assert json.loads(run("schema", word, "--store", uri, "--json").out) == {
        "schema_source": SCHEMA
    }


# -- what they have in common ------------------------------------------------------

LOOKING = [
    ["snapshot"],
    ["commit", "list"],
    ["commit", "show", "x"],
    ["branch", "list"],
    ["schema", "show"],
]


@pytest.mark.parametrize("verb", [*LOOKING, ["branch", "create", "x"], ["branch", "delete", "x"]])
def test_no_graph(run: Run, tmp_path: Path, verb: list[str]) -> None:
    place = tmp_path / "none.omni"
    ran = run(*verb, "--store", str(place))
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: there is no graph at {place}\n")
    assert not place.exists()


@pytest.mark.parametrize("verb", LOOKING)
def test_looking_leaves_lost_copies_alone(run: Run, uri: str, verb: list[str]) -> None:
    (Path(uri) / "_schema.pg").unlink()
    assert "note:" not in run(*verb, "--store", uri).err
    assert not (Path(uri) / "_schema.pg").exists()


def test_writing_mends_lost_copies_and_says_so(run: Run, uri: str) -> None:
    (Path(uri) / "_schema.pg").unlink()
    ran = run("branch", "create", "b", "--uri", uri, "--quiet")
    assert ran.err == "note: rewrote _schema.pg from the manifest\n"
    assert (Path(uri) / "_schema.pg").read_text() == SCHEMA


@pytest.mark.parametrize("group", ["branch", "commit", "schema"])
def test_a_group_lists_its_commands(run: Run, group: str) -> None:
    helped, bare, wrong = run(group, "-h"), run(group), run(group, "nonsense")
    assert (helped.code, bare.code, wrong.code) == (0, 2, 2)
    assert bare.err == helped.out
    assert "No such command 'nonsense'" in wrong.err
    words = {
        "branch": "list create merge delete rename reset",
        "commit": "list show changes",
        "schema": "show plan apply diff log",
    }[group]
    listed = helped.out.partition("Commands:")[2].partition("Examples:")[0].splitlines()
    assert [line.split()[0] for line in listed if line.strip()] == words.split()


def test_global_options_stand_anywhere(run: Run, uri: str) -> None:
    for args in (
        ["--store", uri, "branch", "list"],
        ["branch", "--store", uri, "list"],
        ["branch", "list", "--store", uri],
    ):
        assert run(*args).out == "main\n"


def test_a_flag_that_a_command_of_two_words_does_not_take(run: Run, uri: str) -> None:
    ran = run("commit", "list", uri, "--as", "ann")
    assert ran.code == 2
    assert ran.err.startswith("error: `commit list` is a data command and takes no --as: ")


def test_what_was_written_is_shown(run: Run, uri: str) -> None:
    graph = og.open(uri)
    first = graph.snapshot().commit_id
    graph.branches.create("draft")
    second = insert_row(graph, "node:Person", "ann", branch="draft", actor="bob")
    datasets = json.loads(run("snapshot", uri, "--branch", "draft", "--json").out)["datasets"]
    person = datasets[-1]
    assert (person["type_name"], person["entity_count"]) == ("Person", 1)
    assert person["published_dataset_version"] == 2
    assert person["native_dataset_branch"] == "draft"
    opened = lance.dataset(f"{uri}/{person['dataset_path']}", version=person["lance_version"])
    assert opened.to_table()["name"].to_pylist() == ["ann"]
    assert str(person["lance_version"]) in run("snapshot", uri, "--branch", "draft").out
    commits = json.loads(run("commit", "list", uri, "--branch", "draft", "--json").out)["commits"]
    assert [commit["graph_commit_id"] for commit in commits] == [second, first]
    assert (commits[0]["graph_branch"], commits[0]["parent_commit_id"]) == ("draft", first)
    assert f"parent: {first}" in run("commit", "show", second, "--uri", uri).out
    filtered = run("commit", "list", uri, "--branch", "draft", "--filter", "actor=bob").out
    assert [line.split()[0] for line in filtered.splitlines()[2:]] == [second]
    assert len(run("commit", "list", uri).out.splitlines()) == 3
