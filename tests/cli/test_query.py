"""`omnigraph query`: the example graph in every format, sources, views, and refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.docs.follow import Follower
from tests.ferry_graph import EXAMPLES, QUERIES, make_ferries
from tests.film_graph import files

Run = Callable[..., Any]

NAMES = "query names() { match { $p: Port } return { $p.name as name } order { $p.name } }"
FULL = "{ $p.code as code, $p.opened as opened, $p.services as services, $p.note as note }"
PORTS = f"query q() {{ match {{ $p: Port }} return {FULL} order {{ $p.code }} limit 3 }}"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_ferries(tmp_path / "f.omni")


@pytest.fixture
def uri(graph: og.Graph) -> str:
    return str(graph.location)


# -- the example graph -------------------------------------------------------------


def test_the_readme_of_the_examples_does_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in EXAMPLES.glob("ferries.*"):
        if path.is_file():
            shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    follower = Follower(EXAMPLES / "README.md", capsys)
    follower.follow()
    assert follower.ran == 7


def test_the_examples_are_sound_and_canonical(run: Run) -> None:
    schema = EXAMPLES / "ferries.pg"
    assert run("lint", "--schema", str(schema), "--query", str(QUERIES)).code == 0
    assert run("fmt", "--check", str(schema), str(QUERIES)).code == 0


TABLE = """\
3 rows from branch main via q
code | opened     | services          | note
-----+------------+-------------------+------------------------------------
ARD  | 1908-05-01 | ["fuel","repair"] | null
BRE  | 1931-07-12 | ["fuel"]          | Ring the bell, "twice".\\nThen wait.
COR  | null       | []                | null
"""

KV = """\
3 rows from branch main via q
row 1
code: ARD
opened: 1908-05-01
services: ["fuel","repair"]
note: null

row 2
code: BRE
opened: 1931-07-12
services: ["fuel"]
note: Ring the bell, "twice".\\nThen wait.

row 3
code: COR
opened: null
services: []
note: null
"""

CSV = """\
code,opened,services,note
ARD,1908-05-01,"[""fuel"",""repair""]",
BRE,1931-07-12,"[""fuel""]","Ring the bell, ""twice"".
Then wait."
COR,,[],
"""

JSONL = r"""
{"code":"ARD","opened":"1908-05-01","services":["fuel","repair"],"note":null}
{"code":"BRE","opened":"1931-07-12","services":["fuel"],"note":NOTE}
{"code":"COR","opened":null,"services":[],"note":null}
""".lstrip().replace("NOTE", r'"Ring the bell, \"twice\".\nThen wait."')


@pytest.mark.parametrize(
    ("wanted", "expected"), [("table", TABLE), ("kv", KV), ("csv", CSV), ("jsonl", JSONL)]
)
def test_formats(run: Run, uri: str, wanted: str, expected: str) -> None:
    before = files(Path(uri))
    ran = run("query", "--store", uri, "-e", PORTS, "--format", wanted)
    assert (ran.code, ran.out, ran.err) == (0, expected, "")
    assert files(Path(uri)) == before


def test_a_table_is_the_default(run: Run, uri: str) -> None:
    assert run("query", "--store", uri, "-e", PORTS).out == TABLE


@pytest.mark.parametrize(
    "flags", [["--json"], ["--format", "json"], ["--format", "csv", "--json"]], ids=" ".join
)
def test_json(run: Run, graph: og.Graph, uri: str, flags: list[str]) -> None:
    ran = run("query", "fleet", "--store", uri, "--query", str(QUERIES), *flags)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith('{\n  "query_name": "fleet",\n  "target": {\n    "branch": "main",\n')
    assert json.loads(ran.out) == {
        "query_name": "fleet",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 3,
        "columns": ["kind", "ships", "deepest"],
        "rows": [
            {"kind": "ferry", "ships": 2, "deepest": 4.2},
            {"kind": "freighter", "ships": 1, "deepest": 6.1},
            {"kind": "tug", "ships": 1, "deepest": None},
        ],
        "graph_commit_id": graph.snapshot().commit_id,
    }


def test_a_whole_node_is_an_object(run: Run, uri: str) -> None:
    base = ("query", "port", "--store", uri, "--query", str(QUERIES))
    ran = run(*base, "--params", '{"code": "ELV"}', "--format", "csv")
    assert ran.out.splitlines()[1] == (
        '"{""@id"":""ELV"",""berths"":1,""code"":""ELV"",""name"":""Elvöy"",""note"":null,'
        '""opened"":null,""services"":null}",'
    )


def test_no_rows(run: Run, uri: str) -> None:
    base = ("query", "calls", "--store", uri, "--query", str(QUERIES), "--params")
    assert run(*base, '{"code": "ELV"}').out == (
        "0 rows from branch main via calls\nship | draught | since\n-----+---------+------\n"
    )
    assert run(*base, '{"code": "ELV"}', "--format", "kv").out == (
        "0 rows from branch main via calls\n(no rows)\n"
    )


def test_the_old_spelling_warns(run: Run, uri: str) -> None:
    ran = run("read", "--store", uri, "-e", NAMES, "--format", "csv")
    assert ran.out == "name\nArdvik\nBrenna\nCorrin\nDunmar\nElvöy\n"
    assert ran.err == "warning: `omnigraph read` is deprecated: use `omnigraph query`\n"


# -- sources and parameters --------------------------------------------------------


def test_parameters_from_a_file(run: Run, uri: str, tmp_path: Path) -> None:
    values = tmp_path / "from.json"
    values.write_text('{"from": "COR"}')
    base = ("query", "reachable", "--store", uri, "--query", str(QUERIES))
    ran = run(*base, "--params-file", str(values), "--format", "csv")
    assert ran.out == "port,ships\nDunmar,0\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "which query? give --query FILE or -e GQ, or the NAME of a stored one"),
        (["names"], "alone is a stored query, and those are on servers"),
        (["-e", NAMES, "--query", "q.gq"], "give --query FILE or -e GQ, not both"),
        (["-e", NAMES, "--params", "{}", "--params-file", "p"], "--params-file FILE, not both"),
        (["-e", NAMES, "--branch", "main", "--snapshot", "x"], "--snapshot ID, not both"),
        (["-e", NAMES, "--snapshot", " "], "the commit id of --snapshot is empty"),
        (["-e", NAMES, "--format", "xml"], "'xml' is not one of"),
        (["-e", NAMES, "--timeout", "0"], "0.0 is not in the range x>0"),
        (["-e", NAMES, "--max-bytes", "lots"], "'lots' is not a size"),
        (["-e", NAMES, "names", "f.omni"], "the query `names` takes no words: 1 were given"),
        (["-e", NAMES, "--as", "ann"], "`query` is a data command and takes no --as"),
        (["-e", NAMES, "--cluster", "c"], "`query` is a data command and takes no --cluster"),
    ],
)
def test_usage_errors(run: Run, uri: str, args: list[str], message: str) -> None:
    ran = run("query", "--store", uri, *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Usage: omnigraph query" in ran.err


def test_which_graph(run: Run, tmp_path: Path) -> None:
    ran = run("query", "-e", NAMES)
    assert (ran.code, ran.out) == (2, "")
    assert "which graph? give --store URI" in ran.err
    place = tmp_path / "none.omni"
    ran = run("query", "-e", NAMES, "--store", str(place))
    assert (ran.code, ran.err) == (1, f"error: there is no graph at {place}\n")


@pytest.mark.parametrize(
    ("query", "args", "message"),
    [
        (f"{NAMES} {PORTS}", [], "the text holds 2 queries (names, q): say which one to run"),
        (NAMES, ["name"], "there is no query `name`; did you mean `names`?"),
        ("query q() { match", [], "<query>:1:"),
        ('query q() { delete Ship where name = "Dot" }', [], "query `q` is a mutation: run it"),
        ("query q() { match { $p: Prot } return { $p.name } }", [], "did you mean `Port`?"),
        (
            "query q($n: I32) { match { $p: Port { berths: $n } } return { $p.name } }",
            [],
            "parameter 'n' not provided",
        ),
    ],
)
def test_queries_that_are_refused(
    run: Run, uri: str, query: str, args: list[str], message: str
) -> None:
    ran = run("query", *args, "--store", uri, "-e", query, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]
    assert message in ran.err


def test_a_query_file_is_named_in_its_errors(run: Run, uri: str, tmp_path: Path) -> None:
    path = tmp_path / "ports.gq"
    path.write_text("query q() {\n    match { $p: Port }\n    return { $p.nam }\n}\n")
    ran = run("query", "--store", uri, "--query", str(path))
    assert ran.code == 1
    assert f"{path}:3:17" in ran.err


# -- what is looked at -------------------------------------------------------------


def test_a_branch_and_the_past(run: Run, graph: og.Graph, uri: str) -> None:
    past = graph.snapshot().commit_id
    graph.branches.create("draft")
    graph.mutate('query q() { delete Port where code = "ELV" }', branch="draft")
    base = ("query", "--store", uri, "-e", NAMES)
    assert run(*base, "--branch", " draft ").out.startswith("4 rows from branch draft via names\n")
    assert run(*base).out.startswith("5 rows from branch main via names\n")
    graph.mutate('query q() { delete Port where code = "COR" }')
    ran = run(*base, "--snapshot", past)
    assert ran.out.startswith(f"5 rows from snapshot {past} via names\n")
    found = json.loads(run(*base, "--snapshot", past, "--json").out)
    assert found["target"] == {"branch": None, "snapshot": past}
    assert found["graph_commit_id"] == past
    assert run(*base).out.startswith("4 rows from branch main via names\n")


def test_a_branch_or_a_commit_that_is_not_there(run: Run, uri: str) -> None:
    ran = run("query", "--store", uri, "-e", NAMES, "--branch", "nowhere")
    assert (ran.code, ran.err) == (1, "error: there is no branch nowhere\n")
    ran = run("query", "--store", uri, "-e", NAMES, "--snapshot", "01KA5QWZ7N4T3M8YB0C2D6E9FG")
    assert (ran.code, ran.out) == (1, "")
    assert "01KA5QWZ7N4T3M8YB0C2D6E9FG" in ran.err


@pytest.mark.parametrize("verb", [["query"], ["explain", "--analyze"]])
def test_a_bound_of_memory(run: Run, uri: str, verb: list[str]) -> None:
    ask = (*verb, "--store", uri, "-e", NAMES, "--max-bytes")
    assert run(*ask, "64MB").code == 0
    ran = run(*ask, "1B")
    assert ran.code == 1
    assert "more than the 1 it may have" in ran.err


def test_a_timeout(run: Run, uri: str) -> None:
    assert run("query", "--store", uri, "-e", NAMES, "--timeout", "60").code == 0
    ran = run("query", "--store", uri, "-e", NAMES, "--timeout", "1e-9")
    assert (ran.code, ran.out) == (1, "")
    assert "longer than its timeout of 1e-09 s" in ran.err
