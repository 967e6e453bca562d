"""Bytes: a value of Blob, and of nothing else, wherever they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph import errors
from tests.pipeline.engines import content, run_tasks_here
from tests.write.writing import rows, unchanged

SCHEMA = """
node File {
    name: String @key
    title: String?
    tags: [String]?
    size: I64?
    content: Blob?
}

edge Refers: File -> File {
    why: String?
    proof: Blob?
}
"""
ENGINES = pytest.mark.parametrize("engine", ["inline", "spark"])
SPELLINGS = pytest.mark.parametrize("spelled", [bytes, bytearray, memoryview, np.bytes_])


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    run_tasks_here(monkeypatch)
    return og.init(tmp_path / "graph", SCHEMA)


def file(name: Any, **data: Any) -> dict[str, Any]:
    return {"type": "File", "data": {"name": name, **data}}


def wrong(graph: og.Graph, engine: str, record: dict[str, Any], said: str) -> None:
    with unchanged(graph), pytest.raises(errors.ValidationError) as caught:
        graph.load([file("good"), record], mode="append", engine=engine)
    assert said in str(caught.value)
    given = [file("good"), record]
    done = graph.load(given, mode="append", engine=engine, on_error="skip")
    assert (done.nodes, sum(done.rejects.values())) == ({"File": 1}, 1)


@ENGINES
@SPELLINGS
def test_a_blob_of_a_record_takes_bytes(graph: og.Graph, engine: str, spelled: Any) -> None:
    edge = {"edge": "refers", "from": "a", "to": "a", "data": {"proof": spelled(b"\xff")}}
    records = [file("a", content=spelled(b"\x00hi")), edge]
    graph.load(records, mode="append", engine=engine)
    exported = "".join(content(graph))
    assert '"content":"base64:AGhp"' in exported
    assert '"proof":"base64:/w=="' in exported


@ENGINES
@SPELLINGS
@pytest.mark.parametrize("name", ["title", "size"])
def test_no_other_property_does(graph: og.Graph, engine: str, spelled: Any, name: str) -> None:
    kind = "String" if name == "title" else "I64"
    record = file("a", **{name: spelled(b"hi")})
    wrong(graph, engine, record, f"File.{name}: expected {kind}, found bytes")


@ENGINES
def test_nor_a_key_an_element_or_an_end(graph: og.Graph, engine: str) -> None:
    wrong(graph, engine, file(b"a"), "File.name: expected String, found bytes")
    graph = og.init(Path(graph.location.path).parent / "second", SCHEMA)
    wrong(graph, engine, file("a", tags=["x", b"y"]), "element 2: expected String, found bytes")
    graph = og.init(Path(graph.location.path).parent / "third", SCHEMA)
    edge = {"edge": "Refers", "from": b"good", "to": "good"}
    wrong(graph, engine, edge, "'from' must be a string, the id of a node; found bytes")


def test_what_stands_for_bytes_is_none_in_a_file(graph: og.Graph) -> None:
    line = '{"type": "File", "data": {"name": "a", "content": {"@bytes": 2}}}'
    with unchanged(graph), pytest.raises(errors.ValidationError, match="expected Blob"):
        graph.load(line, mode="append")


@pytest.mark.parametrize("way", ["inline", "spark", "parquet"])
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)])
def test_columns(graph: og.Graph, tmp_path: Path, way: str, kind: pa.DataType) -> None:
    path = tmp_path / "File.parquet"

    def load(table: pa.Table) -> None:
        data: object = {"File": table}
        if way == "parquet":
            pq.write_table(table, path)
            data = path
        graph.load(data, mode="append", engine="inline" if way == "inline" else "spark")

    column = pa.array([b"hi"]).cast(kind) if kind != pa.binary(2) else pa.array([b"hi"], kind)
    for name in ("title", "tags"):
        values = pa.ListArray.from_arrays([0, 1], column) if name == "tags" else column
        with unchanged(graph), pytest.raises(errors.ValidationError, match="cannot hold"):
            load(pa.table({"name": ["a"], name: values}))
    with unchanged(graph), pytest.raises(errors.ValidationError, match="cannot hold"):
        load(pa.table({"name": column}))
    load(pa.table({"name": ["a"], "content": column}))
    assert '"content":"base64:aGk="' in content(graph)[0]


@SPELLINGS
def test_parameters(graph: og.Graph, spelled: Any) -> None:
    insert = "query q({}) {{ insert File {{ name: 'a', {}: ${} }} }}"
    insert = insert.replace("'", '"')
    for declared in ("title: String", "title: String?", "tags: [String]"):
        name = declared.partition(":")[0]
        value = [spelled(b"hi")] if name == "tags" else spelled(b"hi")
        with unchanged(graph), pytest.raises(errors.ParamError, match="found"):
            graph.mutate(insert.format(f"${declared}", name, name), params={name: value})
    graph.mutate(
        insert.format("$content: Blob", "content", "content"), params={"content": spelled(b"hi")}
    )
    assert '"content":"base64:aGk="' in content(graph)[0]
    assert rows(graph, "File")["a"]["title"] is None
