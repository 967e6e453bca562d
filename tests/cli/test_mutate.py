"""`omnigraph mutate`: sources, parameters, conditions, and what is printed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.film_graph import files
from tests.pilot_graph import DATA, SCHEMA

Run = Callable[..., Any]

ADD = "query add($name: String, $hours: I32?) { insert Pilot { name: $name, hours: $hours } }"
DROP = "query drop($name: String) { delete Pilot where name = $name }"
BOTH = f"{ADD}\n{DROP}\n"
EVE = '{"name": "Eve"}'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "pilots.omni", SCHEMA)
    graph.load(DATA, mode="append")
    return graph


@pytest.fixture
def uri(graph: og.Graph) -> str:
    return str(graph.location)


def names(graph: og.Graph, branch: str = "main") -> list[str]:
    return sorted(graph.table("Pilot", branch=branch).to_table()["name"].to_pylist())


# -- what is printed ---------------------------------------------------------------


def test_for_people(run: Run, graph: og.Graph, uri: str) -> None:
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", EVE)
    head = graph.snapshot().commit_id
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"changed main via add: 1 nodes, 0 edges\ncommit: {head}\n"
    assert names(graph) == ["Ann", "Ben", "Cat", "Dan", "Eve"]


def test_for_people_with_an_actor(run: Run, graph: og.Graph, uri: str) -> None:
    ran = run("mutate", "--store", uri, "-e", DROP, "--params", '{"name": "Ann"}', "--as", "zoe")
    newest = graph.commits.list()[0]
    assert newest.actor == "zoe"
    assert ran.out == (
        f"changed main via drop: 1 nodes, 4 edges\nactor_id: zoe\ncommit: {newest.id}\n"
    )


def test_for_programs(run: Run, graph: og.Graph, uri: str) -> None:
    before = graph.snapshot().commit_id
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", EVE, "--as", "zoe", "--json")
    newest = graph.commits.list()[0]
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out) == {
        "branch": "main",
        "query_name": "add",
        "affected_nodes": 1,
        "affected_edges": 0,
        "actor_id": "zoe",
        "commit": {
            "graph_commit_id": newest.id,
            "graph_branch": None,
            "graph_manifest_version": newest.manifest_version,
            "parent_commit_id": before,
            "merged_parent_commit_id": None,
            "actor_id": "zoe",
            "created_at": newest.created_at,
        },
        "warnings": [],
    }
    shown = json.loads(run("commit", "show", newest.id, "--uri", uri, "--json").out)
    assert shown == json.loads(ran.out)["commit"]


def test_an_insert_that_empties_a_row_is_warned_of(run: Run, uri: str) -> None:
    told = "insert replaced 1 Pilot and emptied hired, ratings; upsert changes only what is given"
    given = '{"name": "Ann", "hours": 31}'
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", given)
    assert (ran.code, ran.err) == (0, f"warning: {told}\n")
    assert "warning" not in ran.out
    run(
        "mutate",
        "--store",
        uri,
        "-e",
        'query q() { update Pilot set { ratings: ["c"] } where name = "Ann" }',
    )
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", given, "--json")
    assert json.loads(ran.out)["warnings"] == [
        {
            "code": "L301",
            "message": told.replace("hired, ", ""),
            "type_name": "Pilot",
            "rows": 1,
            "properties": ["ratings"],
        }
    ]
    assert ran.err == ""


def test_nothing_to_change(run: Run, graph: og.Graph, uri: str) -> None:
    before = files(Path(uri))
    ran = run("mutate", "--store", uri, "-e", DROP, "--params", '{"name": "Zed"}')
    assert (ran.code, ran.out) == (0, "changed main via drop: 0 nodes, 0 edges\n")
    ran = run("mutate", "--store", uri, "-e", DROP, "--params", '{"name": "Zed"}', "--json")
    assert json.loads(ran.out)["commit"] is None
    assert files(Path(uri)) == before
    assert len(graph.commits.list()) == 2


# -- the query and its parameters --------------------------------------------------


def test_a_query_of_a_file_by_name(run: Run, graph: og.Graph, uri: str, tmp_path: Path) -> None:
    path, values = tmp_path / "pilots.gq", tmp_path / "eve.json"
    path.write_text(BOTH)
    values.write_text('\ufeff{"name": "Eve", "hours": 7}')
    ran = run(
        *("mutate", "add", "--query", str(path), "--params-file", str(values), "--store", uri)
    )
    assert ran.out.startswith("changed main via add: 1 nodes, 0 edges\n")
    rows = graph.table("Pilot").to_table(filter="name = 'Eve'")
    assert rows["hours"].to_pylist() == [7]
    assert run("mutate", "drop", "-e", BOTH, "--params", EVE, "--store", uri).code == 0
    assert names(graph) == ["Ann", "Ben", "Cat", "Dan"]


def test_a_parameter_that_is_not_declared(run: Run, graph: og.Graph, uri: str) -> None:
    given = '{"name": "Eve", "hour": "12"}'
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", given)
    assert ran.code == 1
    assert ran.err == "error: there is no parameter 'hour': did you mean 'hours'?\n"
    assert "Eve" not in names(graph)


def test_no_parameters_at_all(run: Run, graph: og.Graph, uri: str) -> None:
    query = 'query q() { insert Pilot { name: "Eve" } }'
    assert run("mutate", "--store", uri, "-e", query, "--params", "null").code == 0
    assert names(graph)[-1] == "Eve"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ('{"name": "Eve', "--params is not JSON: Unterminated string starting at (line 1, column"),
        ("", "--params is not JSON: Expecting value (line 1, column 1)"),
        ('{"name": NaN}', "--params is not JSON that can be used: NaN is not a JSON number"),
        ('{"name": "a", "name": "b"}', "member 'name' is given twice"),
        ('["Eve"]', '--params must be a JSON object, like {"name": "Ann"}'),
        ('"Eve"', "--params must be a JSON object"),
        ("[" * 100_000, "--params is not JSON that can be used"),
        ("1" * 5_000, "--params is not JSON that can be used"),
        ('{"name": 1}', "param 'name': expected a string for String, found an integer"),
        ('{"name": null}', "param 'name': null is not a value of String"),
        ('{"name": "Eve", "hours": 1.5}', "param 'hours': expected an integer for I32"),
        ('{"hours": 1}', "parameter 'name' not provided"),
    ],
    ids=lambda text: text[:24],
)
def test_parameters_that_do_not_do(
    run: Run, graph: og.Graph, uri: str, params: str, message: str
) -> None:
    before = files(Path(uri))
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", params, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]
    assert ran.err.startswith("error: ")
    assert message in ran.err
    assert files(Path(uri)) == before
    assert len(graph.commits.list()) == 2


def test_null_for_a_property_that_needs_a_value(run: Run, uri: str) -> None:
    query = "query q($name: String?) { insert Pilot { name: $name } }"
    ran = run("mutate", "--store", uri, "-e", query)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: non-nullable property 'name' has null or invalid values\n"


def test_a_parameter_file_is_named_in_its_errors(run: Run, uri: str, tmp_path: Path) -> None:
    path = tmp_path / "eve.json"
    base = ("mutate", "--store", uri, "-e", ADD, "--params-file", str(path))
    assert run(*base).err == f"error: cannot read {path}: No such file or directory\n"
    path.write_text('{\n  "name": Eve\n}')
    ran = run(*base)
    assert (ran.code, ran.err) == (
        1,
        f"error: {path} is not JSON: Expecting value (line 2, column 11)\n",
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "which query? give --query FILE or -e GQ, or the NAME of a stored one"),
        (["add"], "alone is a stored query, and those are on servers"),
        (["-e", ADD, "--query", "q.gq"], "give --query FILE or -e GQ, not both"),
        (
            ["-e", ADD, "--params", EVE, "--params-file", "p.json"],
            "give --params JSON or --params-file FILE, not both",
        ),
        (["-e", ADD, "--params", EVE, "--if-commit", ""], "the commit id is empty"),
        (["-e", ADD, "add", "a", "b", "c", "d", "e"], ": 5 were given"),
        (["--snapshot", "x", "-e", ADD], "No such option"),
        (["-e", ADD, "--cluster", "c"], "`mutate` is a data command and takes no --cluster"),
    ],
)
def test_usage_errors(run: Run, uri: str, args: list[str], message: str) -> None:
    before = files(Path(uri))
    ran = run("mutate", "--store", uri, *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Usage: omnigraph mutate" in ran.err
    assert files(Path(uri)) == before


def test_which_graph(run: Run, tmp_path: Path) -> None:
    ran = run("mutate", "-e", ADD, "--params", EVE, "--as", "zoe")
    assert (ran.code, ran.out) == (2, "")
    assert "which graph? give --store URI" in ran.err
    ran = run("mutate", "-e", ADD, "--params", EVE, "--server", "s")
    assert (ran.code, ran.out) == (1, "")
    assert "there is no server 's'" in ran.err
    place = tmp_path / "none.omni"
    ran = run("mutate", "-e", ADD, "--params", EVE, "--store", str(place))
    assert (ran.code, ran.err) == (1, f"error: there is no graph at {place}\n")


@pytest.mark.parametrize(
    ("query", "args", "message"),
    [
        (BOTH, [], "the text holds 2 queries (add, drop): say which one to run"),
        (BOTH, ["ad"], "there is no query `ad`; did you mean `add`?"),
        ("", [], "the text holds no query"),
        ("query q() { insert", [], "<query>:1:"),
        ("query q() { match { $p: Pilot } return { $p.name } }", [], "query `q` is a read"),
        ('query q() { insert Pilto { name: "a" } }', [], "did you mean `Pilot`?"),
        ('query q() { insert Trains { from: "Ann", to: "Zed" } }', [], "'Zed' not found in Pilot"),
    ],
)
def test_queries_that_are_refused_change_nothing(
    run: Run, uri: str, query: str, args: list[str], message: str
) -> None:
    before = files(Path(uri))
    ran = run("mutate", *args, "--store", uri, "-e", query)
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert files(Path(uri)) == before


def test_a_query_file_is_named_in_its_errors(run: Run, uri: str, tmp_path: Path) -> None:
    path = tmp_path / "pilots.gq"
    ran = run("mutate", "--store", uri, "--query", str(path))
    assert (ran.code, ran.err) == (1, f"error: cannot read {path}: No such file or directory\n")
    path.write_text('query q() {\n    insert Pilot { nam: "Eve" }\n}\n')
    ran = run("mutate", "--store", uri, "--query", str(path))
    assert ran.code == 1
    assert f"{path}:2:20" in ran.err


# -- branches and conditions -------------------------------------------------------


def test_a_branch(run: Run, graph: og.Graph, uri: str) -> None:
    graph.branches.create("draft")
    base = ("mutate", "--store", uri, "-e", ADD, "--params", EVE)
    done = json.loads(run(*base, "--branch", " draft ", "--json").out)
    assert done["branch"] == "draft"
    assert done["commit"]["graph_branch"] == "draft"
    assert names(graph, "draft")[-1] == "Eve"
    assert names(graph)[-1] == "Dan"
    ran = run(*base, "--branch", "nowhere")
    assert (ran.code, ran.err) == (1, "error: there is no branch nowhere\n")


def test_a_condition_that_holds(run: Run, graph: og.Graph, uri: str) -> None:
    head = graph.snapshot().commit_id
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", EVE, "--if-commit", head, "--json")
    assert ran.code == 0
    assert json.loads(ran.out)["commit"]["parent_commit_id"] == head


@pytest.mark.parametrize("params", [EVE, '{"name": "Zed"}'], ids=["change", "no match"])
def test_a_condition_that_does_not_hold(run: Run, graph: og.Graph, uri: str, params: str) -> None:
    seen = graph.snapshot().commit_id
    graph.mutate(ADD, params={"name": "Fay"})
    actual = graph.snapshot().commit_id
    before = files(Path(uri))
    query = ADD if params == EVE else DROP
    base = ("mutate", "--store", uri, "-e", query, "--params", params, "--if-commit", seen)
    said = f"branch main is at commit {actual}, not {seen}: nothing was written"
    ran = run(*base)
    assert (ran.code, ran.out, ran.err) == (4, "", f"error: {said}\n")
    ran = run(*base, "--json")
    assert (ran.code, ran.err) == (4, f"error: {said}\n")
    assert json.loads(ran.out) == {
        "error": said,
        "precondition_failure": {"branch": "main", "expected": seen, "actual": actual},
    }
    assert files(Path(uri)) == before


def test_the_old_spelling_warns(run: Run, graph: og.Graph, uri: str) -> None:
    ran = run("change", "--store", uri, "-e", ADD, "--params", EVE)
    assert ran.code == 0
    assert ran.err == "warning: `omnigraph change` is deprecated: use `omnigraph mutate`\n"
    assert names(graph)[-1] == "Eve"


def test_opening_to_write_mends_and_says_so(run: Run, uri: str) -> None:
    (Path(uri) / "_schema.pg").unlink()
    ran = run("mutate", "--store", uri, "-e", ADD, "--params", EVE)
    assert (ran.code, ran.err) == (0, "note: rewrote _schema.pg from the manifest\n")


# -- runs --------------------------------------------------------------------------


def test_a_run_that_is_repeated(run: Run, graph: og.Graph, uri: str) -> None:
    asked = ("mutate", "--store", uri, "-e", ADD, "--params", EVE, "--run-id", "r1")
    first = run(*asked)
    assert (first.code, first.err) == (0, "")
    commits = graph.commits.list()
    again = run(*asked, "--if-commit", "another")
    assert (again.code, again.out) == (0, first.out)
    assert again.err == (
        "note: this run was done before: nothing was changed, and this is what it did then\n"
    )
    told = json.loads(run(*asked, "--json").out)
    assert (told["repeats_run"], told["affected_nodes"]) == (True, 1)
    assert told["commit"]["graph_commit_id"] == commits[0].id
    refused = run("mutate", "--store", uri, "-e", DROP, "--params", EVE, "--run-id", "r1")
    assert (refused.code, commits[0].id in refused.err) == (1, True)
    assert graph.commits.list() == commits


def test_a_bound_of_memory(run: Run, graph: og.Graph, uri: str) -> None:
    asked = ("mutate", "--store", uri, "-e", DROP, "--params", '{"name": "Ann"}', "--max-bytes")
    before = graph.commits.list()
    refused = run(*asked, "10B")
    assert (refused.code, refused.out) == (1, "")
    assert "bytes at once in `delete Pilot`, more than the 10 it may have" in refused.err
    assert graph.commits.list() == before
    assert run(*asked, "1MiB").code == 0
