"""Columns of text whose bytes are no UTF-8: ordinary rejects on every way in, never stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph import errors
from tests.pipeline.engines import run_tasks_here
from tests.write.writing import rows, unchanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person {
    name: String @key
    note: String?
    tags: [String]?
    born: Date?
    mood: enum(sad, happy)?
}

edge Knows: Person -> Person { since: String? }
"""
BAD = b"\xff\xfe!"

Spelled = Callable[[pa.Array], pa.Array]


def texts(*values: bytes | None) -> pa.Array:
    """A column of text that nobody has looked at."""
    plain = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(plain), plain.buffers())


def large(column: pa.Array) -> pa.Array:
    wide = column.cast(pa.large_binary())
    return pa.Array.from_buffers(pa.large_string(), len(wide), wide.buffers())


def view(column: pa.Array) -> pa.Array:
    return column.cast(pa.string_view())


def dictionary(column: pa.Array) -> pa.Array:
    return column.dictionary_encode()


def lists(column: pa.Array) -> pa.Array:
    """Each text as the second element of a list; an empty one instead of null."""
    column = pc.fill_null(column, "")
    elements = pa.concat_arrays(
        [part for at in range(len(column)) for part in (texts(b"x"), column.slice(at, 1))]
    )
    return pa.ListArray.from_arrays(
        pa.array(range(0, 2 * len(column) + 1, 2), pa.int32()), elements
    )


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    run_tasks_here(monkeypatch)
    return og.init(tmp_path / "graph", SCHEMA)


def given(way: str, table: pa.Table, directory: Path, name: str = "Person") -> dict[str, Any]:
    """The table as the data and the engine of a load."""
    if way == "parquet":
        path = directory / f"{name}.parquet"
        pq.write_table(table, path)
        return {"data": path, "engine": "spark"}
    return {"data": {name: table}, "engine": way}


WAYS = pytest.mark.parametrize("way", ["inline", "spark", "parquet"])


def refused(graph: og.Graph, load: dict[str, Any], said: str, row: int = 2) -> None:
    """Fails as a whole, and skips that row."""
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load(**load, mode="append")
    assert said in str(caught.value)
    done = graph.load(
        **load, mode="append", on_error="skip", rejects=str(Path(graph.location.path).parent)
    )
    assert done.rejects == {"format": 1}
    assert done.rejects_file is not None
    reject = json.loads(Path(done.rejects_file).read_text())
    assert (reject["line"], reject["code"]) == (row, "format")
    assert "\ufffd\ufffd!" in reject["raw"]
    list(graph.export())


@WAYS
@pytest.mark.parametrize("spelled", [None, large, view, dictionary, lists])
def test_a_property(graph: og.Graph, tmp_path: Path, way: str, spelled: Spelled | None) -> None:
    column = texts(b"a", BAD, "ż".encode(), None)
    name = "tags" if spelled is lists else "note"
    table = pa.table({"name": list("ABCD"), name: spelled(column) if spelled else column})
    refused(graph, given(way, table, tmp_path), f"Person.{name}: the text is not UTF-8")
    assert sorted(rows(graph, "Person")) == ["A", "C", "D"]


@WAYS
@pytest.mark.parametrize("column", ["name", "mood"])
def test_a_key_and_an_enum(graph: og.Graph, tmp_path: Path, way: str, column: str) -> None:
    good = {"name": texts(b"A", b"B", b"C"), "mood": texts(b"sad", b"sad", None)}
    table = pa.table({**good, column: texts(b"sad", BAD, b"happy")})
    refused(graph, given(way, table, tmp_path), f"Person.{column}: the text is not UTF-8")


@WAYS
@pytest.mark.parametrize("column", ["id", "from", "to", "since"])
def test_the_columns_of_an_edge(graph: og.Graph, tmp_path: Path, way: str, column: str) -> None:
    graph.load(pa_people(), mode="append")
    good = {"id": texts(b"1", b"2", b"3"), "from": ["A", "A", "B"], "to": ["B", "B", "A"]}
    named = f"Knows.{column}" if column == "since" else f"'{column}'"
    table = pa.table({**good, column: texts(b"A", BAD, b"B")})
    load = given(way, table, tmp_path, "Knows")
    refused(graph, load, f"{named}: the text is not UTF-8")
    assert len(rows(graph, "Knows")) == 2


def pa_people() -> dict[str, pa.Table]:
    return {"Person": pa.table({"name": ["A", "B"]})}


@WAYS
def test_a_date_written_as_text(graph: og.Graph, tmp_path: Path, way: str) -> None:
    table = pa.table({"name": ["A", "B"], "born": texts(b"2020-01-01", BAD)})
    load = given(way, table, tmp_path)
    done = graph.load(**load, mode="append", on_error="skip")
    assert (done.nodes, done.rejects) == ({"Person": 1}, {"type": 1})


@WAYS
def test_one_among_many(graph: og.Graph, tmp_path: Path, way: str) -> None:
    count, at = 5000, 3777
    notes = texts(*(BAD if row == at else b"n" for row in range(count)))
    table = pa.table({"name": [f"p{row}" for row in range(count)], "note": notes})
    refused(graph, given(way, table, tmp_path), f":{at + 1}:", at + 1)
    assert len(rows(graph, "Person")) == count - 1


@WAYS
def test_the_name_of_a_column(graph: og.Graph, tmp_path: Path, way: str) -> None:
    path = tmp_path / "Person.parquet"
    table = pa.table({"name": ["A"], "ZZZ": ["x"]})
    pq.write_table(table, path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"ZZZ", BAD))
    load = {"data": path} if way == "parquet" else {"data": {"Person": pq.read_table(path)}}
    engine = "inline" if way == "inline" else "spark"
    with unchanged(graph), pytest.raises(errors.BadRequest, match=r"column .* ?is not UTF-8"):
        graph.load(**load, mode="append", engine=engine)


@pytest.mark.slow
def test_a_frame_of_spark(tmp_path: Path, spark: SparkSession) -> None:
    graph = og.init(tmp_path / "graph", SCHEMA)
    frame = spark.sql(
        "select * from values ('A', 'x'), ('B', cast(x'fffe21' as string)) as t(name, note)"
    )
    with unchanged(graph), pytest.raises(errors.ValidationError, match="is not UTF-8"):
        graph.load({"Person": frame}, mode="append")
    done = graph.load({"Person": frame}, mode="append", on_error="skip")
    assert (done.nodes, done.rejects) == ({"Person": 1}, {"format": 1})
