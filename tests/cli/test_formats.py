"""The five formats, to the letter."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from omnigraph.cli.render.formats import FORMATS, Format, render
from omnigraph.wire.results import QueryBody, ReadOutput

ROWS: list[Mapping[str, Any]] = [
    {"name": "Ann", "n": 1, "x": 0.1, "ok": True, "tags": ["a", "b"], "node": {"@id": "Ann"}},
    {"name": None, "n": None, "x": None, "ok": None, "tags": None, "node": None},
    {"name": "", "n": -20, "x": 2.0, "ok": False, "tags": [], "node": {"@id": "é", "at": None}},
]
COLUMNS = ["name", "n", "x", "ok", "tags", "node"]


def output(rows: list[Mapping[str, Any]], columns: list[str] | None = None) -> ReadOutput:
    names = COLUMNS if columns is None else columns
    return ReadOutput("q", "main", None, len(rows), names, lambda: [rows], "01C")


def text(wanted: Format, found: ReadOutput) -> str:
    return "\n".join(render(found, wanted))


def test_table() -> None:
    assert text("table", output(ROWS)) == (
        "3 rows from branch main via q\n"
        "name |    n |    x | ok    | tags      | node\n"
        "-----+------+------+-------+-----------+----------------------\n"
        'Ann  |    1 |  0.1 | true  | ["a","b"] | {"@id":"Ann"}\n'
        "null | null | null | null  | null      | null\n"
        '     |  -20 |  2.0 | false | []        | {"@id":"é","at":null}'
    )


def test_kv() -> None:
    assert text("kv", output(ROWS[:2])) == (
        "2 rows from branch main via q\n"
        'row 1\nname: Ann\nn: 1\nx: 0.1\nok: true\ntags: ["a","b"]\nnode: {"@id":"Ann"}\n'
        "\n"
        "row 2\nname: null\nn: null\nx: null\nok: null\ntags: null\nnode: null"
    )


def test_csv() -> None:
    assert text("csv", output(ROWS)) == (
        "name,n,x,ok,tags,node\n"
        'Ann,1,0.1,true,"[""a"",""b""]","{""@id"":""Ann""}"\n'
        ",,,,,\n"
        '"",-20,2.0,false,[],"{""@id"":""é"",""at"":null}"'
    )


@pytest.mark.parametrize(
    "value", ["a,b", 'say "x"', "a\nb", "a\rb", "a\r\nb", '"', ",", " a ", "'"]
)
def test_csv_fields_read_back(value: str) -> None:
    written = text("csv", output([{"a,b": value, "c": "z"}], ["a,b", "c"]))
    assert list(csv.reader(io.StringIO(written, newline=""))) == [["a,b", "c"], [value, "z"]]
    assert ('"' in written.splitlines()[-1]) == any(found in value for found in ',"\r\n')


def test_jsonl() -> None:
    lines = text("jsonl", output(ROWS)).split("\n")
    assert lines[1] == '{"name":null,"n":null,"x":null,"ok":null,"tags":null,"node":null}'
    assert [json.loads(line) for line in lines] == ROWS


def test_json() -> None:
    written = text("json", output(ROWS))
    assert written.startswith('{\n  "query_name": "q",\n  "target": {\n    "branch": "main",\n')
    assert json.loads(written) == {
        "query_name": "q",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 3,
        "columns": COLUMNS,
        "rows": ROWS,
        "graph_commit_id": "01C",
    }


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("table", "0 rows from branch main via q\na | bc\n--+---"),
        ("kv", "0 rows from branch main via q\n(no rows)"),
        ("csv", "a,bc"),
        ("jsonl", ""),
    ],
)
def test_no_rows(wanted: Format, expected: str) -> None:
    assert text(wanted, output([], ["a", "bc"])) == expected
    empty = ReadOutput("q", "main", None, 0, ["a", "bc"], list)
    assert text(wanted, empty) == expected


def test_no_rows_and_no_columns() -> None:
    nothing = output([], [])
    assert text("table", nothing) == "0 rows from branch main via q\n(no rows)"
    assert text("kv", nothing) == "0 rows from branch main via q\n(no rows)"
    assert "columns" not in json.loads(text("json", nothing))


def test_a_snapshot_is_named() -> None:
    found = ReadOutput("q", None, "01AB", 0, ["a"], list)
    assert text("table", found).startswith("0 rows from snapshot 01AB via q\n")
    assert json.loads(text("json", found))["target"] == {"branch": None, "snapshot": "01AB"}


def test_wide_cells_are_cut_and_newlines_shown() -> None:
    lines = text("table", output([{"a": "x" * 81, "b": "1\n2\t3\x1b[0m"}], ["a", "b"])).split("\n")
    assert lines[-1] == "x" * 79 + r"… | 1\n2\t3\x1b[0m"
    exact = text("table", output([{"a": "x" * 80}], ["a"]))
    assert exact.endswith("\n" + "x" * 80)


def test_kv_stays_on_one_line_and_is_not_cut() -> None:
    assert text("kv", output([{"a": "x" * 100 + "\r\n"}], ["a"])).endswith(
        "row 1\na: " + "x" * 100 + r"\r\n"
    )


def test_several_pages_are_one_output() -> None:
    paged = ReadOutput("q", "main", None, 3, COLUMNS, lambda: ([row] for row in ROWS), "01C")
    for wanted in FORMATS:
        assert text(wanted, paged) == text(wanted, output(ROWS))


def served(body: QueryBody) -> ReadOutput:
    """The output as a server sends it; without `columns` the names of the rows, sorted."""
    return ReadOutput(
        body.query_name,
        body.target.branch,
        body.target.snapshot,
        body.row_count,
        body.columns or sorted({name for row in body.rows for name in row}),
        lambda: [body.rows],
        body.graph_commit_id,
    )


def test_the_body_of_a_server() -> None:
    body = msgspec.json.decode(text("json", output(ROWS)), type=QueryBody)
    for wanted in FORMATS:
        assert text(wanted, served(body)) == text(wanted, output(ROWS))


def test_a_body_without_columns_has_them_sorted() -> None:
    body = {
        "query_name": "q",
        "target": {"branch": "main", "snapshot": None},
        "row_count": 2,
        "rows": [{"b": 1}, {"a": 2, "b": 3}],
    }
    assert text("csv", served(msgspec.convert(body, QueryBody))) == "a,b\n,1\n2,3"
