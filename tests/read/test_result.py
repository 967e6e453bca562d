"""What a query returned, in every shape it can be had in."""

from __future__ import annotations

import io
import math
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import omnigraph as og
from omnigraph.errors import BadRequest
from omnigraph.read.output.result import Result
from omnigraph.read.output.shown_text import MAX_ROWS
from tests.read.graphs import SCHEMA, add_rows

MOMENT = datetime(2020, 5, 1, 12, 30, 0, 250_000, tzinfo=UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


FULL: dict[str, Any] = {
    "id": "a",
    "yes": True,
    "i32": -(2**31),
    "i64": -(2**63),
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f32": 0.1,
    "f64": 0.1,
    "day": date(2020, 5, 1),
    "moment": milliseconds(MOMENT),
    "kind": "b",
    "flags": [True, False],
    "numbers": [2**62, -1],
    "halves": [0.5, math.inf],
    "days": [date(1969, 12, 31)],
    "moments": [-1],
    "vector": [0.1, 1.0],
    "blob": b"x",
}
NAMES = [name for name in FULL if name not in ("id", "blob")]
SHOWN = {
    **{name: FULL[name] for name in NAMES},
    "day": "2020-05-01",
    "moment": "2020-05-01T12:30:00.250Z",
    "halves": [0.5, None],
    "days": ["1969-12-31"],
    "moments": ["1969-12-31T23:59:59.999Z"],
}


def samples(graph: og.Graph, columns: str = "") -> Result:
    listed = columns or ", ".join(f"$s.{name} as {name}" for name in NAMES)
    query = f"query all() {{ match {{ $s: Sample }} return {{ {listed} }} order {{ $s.i32 }} }}"
    return graph.query(query)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    rows = [
        FULL,
        {"id": "b", "i32": 0, "f32": math.nan, "f64": -math.inf, "vector": [math.nan, 2.0]},
        {"id": "c", "i32": 1},
    ]
    add_rows(graph, "node:Sample", rows)
    return graph


def people(graph: og.Graph, count: int) -> Result:
    rows = [{"id": f"p{n:03}", "name": f"p{n:03}", "age": n} for n in range(count)]
    if rows:
        add_rows(graph, "node:Person", rows)
    query = "query people() { match { $p: Person } return { $p.name as name, $p.age as age } "
    return graph.query(query + "order { $p.name } }")


# -- rows --------------------------------------------------------------------------


def test_rows_are_json_ready(graph: og.Graph) -> None:
    result = samples(graph)
    assert result.columns == NAMES
    first, second, third = result.rows
    assert first == SHOWN
    assert list(first) == NAMES
    assert (second["f32"], second["f64"], second["vector"]) == (None, None, [None, 2.0])
    assert third == {name: 1 if name == "i32" else None for name in NAMES}
    assert len(result) == 3
    assert list(result) == result.rows
    assert result.commit_id == graph.snapshot().commit_id
    assert (result.branch, result.snapshot, result.query_name) == ("main", None, "all")


def test_a_node_is_an_object_without_blobs_and_vectors(graph: og.Graph) -> None:
    (first, *_) = samples(graph, "$s as whole").rows
    wanted = {name: SHOWN[name] for name in NAMES if name != "vector"}
    assert first == {"whole": {"@id": "a", **wanted}}


def test_pages_are_the_rows_a_few_at_a_time(graph: og.Graph) -> None:
    result = people(graph, 7)
    assert [len(page) for page in result.pages(3)] == [3, 3, 1]
    assert [row for page in result.pages(3) for row in page] == result.rows
    assert "\n".join(result.json_lines(2)).count("\n") == 6
    assert result.json_rows().startswith('[{"name":"p000","age":0},{"name":"p001","age":1}')


def test_no_rows(graph: og.Graph) -> None:
    result = people(graph, 0)
    assert (result.rows, len(result), list(result), list(result.pages())) == ([], 0, [], [])
    assert (result.json_rows(), list(result.json_lines())) == ("[]", [])
    assert result.to_arrow().schema.names == ["name", "age"]
    assert list(result.to_pandas().columns) == ["name", "age"]


def test_pages_without_an_order_neither_repeat_nor_lose_a_row(graph: og.Graph) -> None:
    people(graph, 12)
    pairs = [{"id": f"k{n}", "src": f"p{(7 * n) % 12:03}", "dst": f"p{n:03}"} for n in range(12)]
    add_rows(graph, "edge:Knows", pairs)
    query = """query q($from: I64) {
        match { $b: Person $a knows $b }
        return { $a.name as a, $b.name as b }
        limit 5 offset $from
    }"""
    found = [row for start in (0, 5, 10) for row in graph.query(query, params={"from": start})]
    assert len(found) == 12
    assert len({(row["a"], row["b"]) for row in found}) == 12


# -- other libraries ---------------------------------------------------------------


def test_arrow_knows_the_time_of_day(graph: og.Graph) -> None:
    table = samples(graph, "$s.moment as at, $s.moments as ats, $s as whole, $s.day as day")
    found = table.to_arrow()
    stamp = pa.timestamp("ms", "UTC")
    assert found.schema.field("at").type == stamp
    assert found.schema.field("ats").type.value_type == stamp
    assert found.schema.field("whole").type.field("moment").type == stamp
    assert found.schema.field("day").type == pa.date32()
    first = found.to_pylist()[0]
    assert first["at"] == MOMENT
    assert first["ats"] == [BEFORE]
    assert first["whole"]["moment"] == MOMENT


def test_pandas_keeps_integers_exact(graph: og.Graph) -> None:
    frame = samples(graph).to_pandas()
    assert frame["i64"][0] == -(2**63)
    assert frame["u64"][0] == 2**64 - 1
    assert frame["u64"].isna().tolist() == [False, True, True]
    assert str(frame["i32"].dtype) == "Int32"
    assert frame["moment"][0].to_pydatetime() == MOMENT


def test_polars_is_asked_for_by_name(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(BadRequest, match="polars is not installed: install it"):
        people(graph, 1).to_polars()


# -- for people --------------------------------------------------------------------


def test_text(graph: og.Graph) -> None:
    assert repr(people(graph, 2)) == (
        "2 rows from branch main via people\n\n name   age\n ──────────\n p000     0\n p001     1"
    )


def test_only_the_first_rows_are_shown(graph: og.Graph) -> None:
    result = people(graph, MAX_ROWS + 3)
    assert repr(result).endswith(f"p{MAX_ROWS - 1:03}    {MAX_ROWS - 1}\n\n… and 3 more rows")
    html = result._repr_html_()
    assert html.count("<tr>") == MAX_ROWS + 1
    assert html.endswith("<p>… and 3 more rows</p>")


def test_nothing_in_a_value_is_markup(graph: og.Graph) -> None:
    name = '[bold]<script>"&\n\x1b[31m'
    add_rows(graph, "node:Person", [{"id": name, "name": name}])
    result = graph.query("query q() { match { $p: Person } return { $p.name, $p.tags } }")
    assert '[bold]<script>"&\\n\\x1b[31m' in repr(result)
    html = result._repr_html_()
    assert "[bold]&lt;script&gt;&quot;&amp;\\n\\x1b[31m" in html
    assert "<script>" not in html


def test_rich_prints_it(graph: og.Graph) -> None:
    out = io.StringIO()
    Console(width=60, file=out).print(people(graph, 1))
    assert "1 row from branch main via people" in out.getvalue()


def test_the_past_is_named(graph: og.Graph) -> None:
    commit = graph.snapshot().commit_id
    people(graph, 2)
    query = "query q() { match { $p: Person } return { $p.name } }"
    result = graph.query(query, snapshot=commit)
    assert (len(result), result.branch, result.snapshot) == (0, None, commit)
    assert repr(result).startswith(f"0 rows from snapshot {commit} via q")


# -- as a sequence -----------------------------------------------------------------


def test_rows_columns_and_parts(graph: og.Graph) -> None:
    result = people(graph, 7)
    assert result[0] == {"name": "p000", "age": 0}
    assert result[-1] == result.rows[6]
    assert result["age"] == list(range(7))
    assert result[1:3].rows == result.rows[1:3]
    assert result[::-3]["name"] == ["p006", "p003", "p000"]
    assert result[1:3].commit_id == result.commit_id
    assert (len(result.head()), len(result.head(2)), len(result.head(0))) == (5, 2, 0)
    assert len(result.head(100)) == 7
    with pytest.raises(IndexError):
        result[7]
    with pytest.raises(BadRequest, match="there is no column 'nam': did you mean `name`"):
        result["nam"]


def test_one_value(graph: og.Graph) -> None:
    asked = graph.query("match { $s: Sample } return { max($s.moment) as at }")
    assert asked.scalar() == MOMENT
    with pytest.raises(BadRequest, match="it has 3 rows and 1 column"):
        samples(graph, "$s.i32 as i32").scalar()


def test_values_of_python(graph: og.Graph) -> None:
    first, *_ = samples(graph, "$s.day as day, $s.moment as at, $s.moments as ats").to_dicts()
    assert first == {"day": date(2020, 5, 1), "at": MOMENT, "ats": [BEFORE]}


def test_other_libraries_read_it_as_it_is(graph: og.Graph) -> None:
    result = people(graph, 3)
    assert pa.table(result).equals(result.to_arrow())
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(result).equals(result.to_polars())
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql("select sum(age) from result").fetchall() == [(3,)]


def test_parameters_stand_behind_a_query_or_its_path(graph: og.Graph, tmp_path: Path) -> None:
    people(graph, 3)
    text = "query one($age: I32) { match { $p: Person { age: $age } } return { $p.name as name } }"
    path = tmp_path / "one.gq"
    path.write_text(text)
    for source in (text, path):
        assert graph.query(source, {"age": 2}).rows == [{"name": "p002"}]
        assert graph.query(source, "one", {"age": 1}).rows == [{"name": "p001"}]
        with pytest.raises(BadRequest, match="params are given twice"):
            graph.query(source, {"age": 2}, {"age": 1})
