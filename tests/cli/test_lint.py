from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og

Run = Callable[..., Any]

SCHEMA = """\
node Reader {
    card: String @key
    name: String?
}

node Book {
    isbn: String @key
}

edge Borrowed: Reader -> Book
"""

FIVE_MISTAKES = """\
query a() { match { $r: Raeder } return { $r.card } }
query b() { match { $r: Reader $r borowed $b } return { $b.isbn } }
query c() { match { $r: Reader } return { $r.nmae } }
query d() { match { $reader: Reader } return { $raeder.card } }
query e() { match { $r: Reader } retrun { $r.card } }
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "s.pg"
    path.write_text(SCHEMA)
    return path


def queries(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "q.gq"
    path.write_text(text)
    return path


def test_five_different_mistakes_give_five_diagnostics_with_carets(
    run: Run, schema: Path, tmp_path: Path
) -> None:
    path = queries(tmp_path, FIVE_MISTAKES)
    result = run("lint", "--schema", str(schema), "--query", str(path))
    assert result.code == 1
    assert result.out.count("ERROR ") == 5
    assert sum(1 for line in result.out.splitlines() if " | " in line and "^" in line) == 5
    for place, suggestion in [
        ("1:25", "`Reader`"),
        ("2:35", "`borrowed`"),
        ("3:46", "`name`"),
        ("4:48", "`$reader`"),
        ("5:34", "`return`"),
    ]:
        assert f"{path}:{place}" in result.out
        assert f"did you mean {suggestion}?" in result.out


def test_a_parse_failure_is_the_documented_object(run: Run, schema: Path, tmp_path: Path) -> None:
    path = queries(tmp_path, FIVE_MISTAKES)
    result = run("lint", "--schema", str(schema), "--query", str(path), "--json")
    report = json.loads(result.out)
    assert result.code == 1
    assert report["status"] == "error"
    assert report["schema_source"] == {"kind": "file", "path": str(schema)}
    assert report["query_path"] == str(path)
    assert (report["queries_processed"], report["errors"], report["results"]) == (0, 1, [])
    assert [finding["code"] for finding in report["findings"]] == ["Q000"]
    assert len(report["diagnostics"]) == 5


def test_type_errors_are_counted_by_query(run: Run, schema: Path, tmp_path: Path) -> None:
    path = queries(tmp_path, FIVE_MISTAKES.replace("retrun", "return"))
    result = run("lint", "--schema", str(schema), "--query", str(path), "--json")
    report = json.loads(result.out)
    assert (report["queries_processed"], report["errors"]) == (5, 4)
    assert [entry["status"] for entry in report["results"]] == ["error"] * 4 + ["ok"]
    assert report["results"][0]["error"] == "type error: T1: unknown node type Raeder"
    assert "operation" not in report["results"][0]
    assert report["results"][4]["operation"]["reads"] == [{"kind": "node", "type_name": "Reader"}]


def test_sound_files_say_so(run: Run, schema: Path, tmp_path: Path) -> None:
    path = queries(
        tmp_path,
        "query r() { match { $r: Reader } return { $r.card } }\n"
        'query w() { update Reader set { name: "x" } where card = "1" }\n',
    )
    result = run("lint", "--schema", str(schema), "--query", str(path))
    assert result.code == 0
    assert result.out.splitlines() == [
        "OK    query `r` (read)",
        "OK    query `w` (mutation)",
        "WARN  mutation `w` declares no parameters: it does the same every time",
        "INFO  Lint complete: 2 queries, 0 errors, 1 warning",
    ]


def test_a_schema_alone(run: Run, schema: Path) -> None:
    result = run("lint", "--schema", str(schema))
    assert (result.code, result.out) == (
        0,
        "INFO  Lint complete: 0 queries, 0 errors, 0 warnings\n",
    )


def test_a_broken_schema_is_reported_instead_of_the_queries(run: Run, tmp_path: Path) -> None:
    schema = tmp_path / "s.pg"
    schema.write_text("node A { x: Strng }\nedge E: A -> B\n")
    path = queries(tmp_path, FIVE_MISTAKES)
    result = run("lint", "--schema", str(schema), "--query", str(path), "--json")
    report = json.loads(result.out)
    assert result.code == 1
    assert {found["path"] for found in report["diagnostics"]} == {str(schema)}
    assert report["errors"] == len(report["findings"]) == 2


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path, content: bytes | None) -> None:
    schema = tmp_path / "s.pg"
    if content is not None:
        schema.write_bytes(content)
    result = run("lint", "--schema", str(schema))
    assert result.code == 1
    assert str(schema) in result.err
    assert result.out == ""


def test_something_to_check_is_required(run: Run) -> None:
    assert run("lint").code == 2


def test_queries_against_a_graph(run: Run, schema: Path, tmp_path: Path) -> None:
    graph = str(tmp_path / "g.omni")
    assert run("init", graph, "--schema", str(schema)).code == 0
    path = queries(tmp_path, FIVE_MISTAKES.replace("retrun", "return"))
    result = run("lint", graph, "--query", str(path), "--json")
    report = json.loads(result.out)
    assert result.code == 1
    assert report["schema_source"] == {"kind": "graph", "uri": graph}
    assert (report["queries_processed"], report["errors"]) == (5, 4)
    assert run("lint", "--store", graph, "--query", str(path)).code == 1
    assert run("lint", "--query", str(path)).code == 2


def test_queries_against_a_branch_or_a_commit(run: Run, tmp_path: Path) -> None:
    uri = str(tmp_path / "g.omni")
    graph = og.init(uri, "node Person { name: String @key }")
    old = graph.snapshot().commit_id
    graph.branches.create("draft")
    graph.apply_schema("node Person { name: String @key\n age: I32? }", branch="draft")
    path = str(queries(tmp_path, "query q() { match { $p: Person } return { $p.age } }"))
    assert run("lint", uri, "--query", path).code == 1
    assert run("lint", uri, "--query", path, "--branch", "draft").code == 0
    assert run("lint", uri, "--query", path, "--snapshot", old).code == 1
    newer = graph.snapshot("draft").commit_id
    assert run("lint", uri, "--query", path, "--snapshot", newer).code == 0
    both = ("--branch", "draft", "--snapshot", old)
    assert run("lint", uri, "--query", path, *both).code == 2
    assert run("lint", "--schema", path, "--branch", "draft").code == 2
