"""Input that is named by its type, and CSV that is not as RFC 4180 has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest, ValidationError
from omnigraph.pipeline.load.stage import stage_input

SCHEMA = """
node Person {
    name: String @key
    age: I32?
    said: String?
}

edge Knows: Person -> Person {
    how: String?
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "graph", SCHEMA)


def people(graph: og.Graph) -> dict[str, tuple[Any, Any]]:
    found = graph.table("Person").to_table().to_pylist()
    return {row["name"]: (row["age"], row["said"]) for row in found}


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("name;said;age\nAnn;'a;''b\nc';NA\nBén;;5\n", {"delimiter": ";", "quote": "'"}),
        ('Ann\tNA\t"a;\'b\nc"\nBén\t5\t\n', {"delimiter": "\t", "header": False}),
        ('x|y|z\nAnn|NA|"a;\'b\nc"\nBén|5|\n', {"delimiter": "|", "encoding": "latin-1"}),
    ],
)
def test_dialects(
    graph: og.Graph, tmp_path: Path, text: str, options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(stage_input, "LEAST_BYTES", 8)
    csv = og.CsvOptions(
        null="NA", columns=None if "quote" in options else ["name", "age", "said"], **options
    )
    (tmp_path / "x.csv").write_bytes(text.encode(csv.encoding))
    done = graph.load({"Person": tmp_path / "x.csv"}, mode="append", csv=csv)
    assert done.total == 2
    assert people(graph) == {"Ann": (None, "a;'b\nc"), "Bén": (5, None)}


def test_a_quoted_null_is_a_text(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "Person.csv").write_text('name,said,age\nAnn,"NA",\nBen,NA,NA\n')
    graph.load(tmp_path / "Person.csv", mode="append", csv=og.CsvOptions(null="NA"))
    assert people(graph) == {"Ann": (None, "NA"), "Ben": (None, None)}
    (tmp_path / "Person.csv").write_text("name,age\nCat,NA\n")
    with pytest.raises(ValidationError, match=r"Person\.csv:2: .* found the string \"NA\""):
        graph.load(tmp_path / "Person.csv", mode="append")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimiter": ";;"}, "one character of ASCII"),
        ({"delimiter": '"'}, "cannot be the same"),
        ({"header": False}, "needs the names of its columns"),
        ({"columns": ["a", "a"]}, "names 'a' twice"),
        ({"null": "a,b"}, "cannot be an unquoted value"),
        ({"encoding": "utf-16"}, "save it as UTF-8"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        og.CsvOptions(**options)


def test_the_delimiter_is_guessed_for_the_message_alone(graph: og.Graph, tmp_path: Path) -> None:
    (tmp_path / "Person.csv").write_text("name;age\nAnn;1\n")
    with pytest.raises(BadRequest, match="delimiter says, which may be ';' here"):
        graph.load(tmp_path / "Person.csv", mode="append")


def test_rows_of_json_without_envelopes(graph: og.Graph, tmp_path: Path) -> None:
    rows = [{"name": "Ann", "age": 1}, {"name": "from", "said": "to"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    edges = [
        {"from": "Ann", "to": "from", "how": "from"},
        {"how": "x", "src": "Ann", "@dst": "Ann"},
    ]
    (tmp_path / "k.jsonl").write_text("\n".join(map(json.dumps, edges)))
    graph.load({"Person": tmp_path / "p.jsonl", "knows": [tmp_path / "k.jsonl"]}, mode="append")
    assert people(graph) == {"Ann": (1, None), "from": (None, "to")}
    found = [json.loads(line) for line in graph.export(types=["Knows"])]
    ends = {(one["from"], one["to"], one["data"]["how"]) for one in found}
    assert ends == {("Ann", "from", "from"), ("Ann", "Ann", "x")}


def test_rows_of_json_that_are_wrong_are_told_where_they_stand(
    graph: og.Graph, tmp_path: Path
) -> None:
    wrong = ['{"name": "Ann", "age": "x"}', '{"name": "B", "name": "C"}', "[1]", '{"name": "D"}']
    (tmp_path / "p.jsonl").write_text("\n".join(wrong))
    bad = ['{"from": "D", "to": "D", "how": "a", "how": "b"}', '{"from": "D", "src": "D"}', "{"]
    (tmp_path / "k.jsonl").write_text("\n".join(bad))
    given = {"Person": tmp_path / "p.jsonl", "Knows": tmp_path / "k.jsonl"}
    with pytest.raises(ValidationError, match=r"p\.jsonl:1: Person\.age"):
        graph.load(given, mode="append")
    done = graph.load(given, mode="append", on_error="skip", rejects=str(tmp_path / "r"))
    assert (done.total, done.rejected) == (1, 6)
    (listed,) = (tmp_path / "r").iterdir()
    assert {json.loads(one)["raw"] for one in listed.read_text().splitlines()} == {*wrong[:3], *bad}


def test_the_command(tmp_path: Path, graph: og.Graph, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "people.csv").write_text("Ann;n/a\n")
    (tmp_path / "more.jsonl").write_text('{"name": "Ben"}\n')
    argv = ["load", str(tmp_path / "graph"), "--mode", "append", "--quiet"]
    csv = ["--delimiter", ";", "--null", "n/a", "--columns", "name, age", "--no-header"]
    typed = [f"--data=Person={tmp_path / name}" for name in ("people.csv", "more.jsonl")]
    assert main([*argv, *csv, *typed]) == 0
    assert people(graph) == {"Ann": (None, None), "Ben": (None, None)}
    assert main([*argv, typed[0], "--data", str(tmp_path / "more.jsonl")]) == 2
    assert "name all of them" in capsys.readouterr().err
