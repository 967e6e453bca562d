"""The past on Spark: frames and exports of a commit have the schema that it was made with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph as og
from omnigraph.errors import NotFound
from omnigraph.pipeline.source.reading import find_snapshot, select, spark_schema
from tests.history.changing import change_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD = "node Person { name: String @key  age: I32?  city: String? }"
NEW = (
    'node Human @rename_from("Person") { name: String @key  years: I64? @rename_from("age")  '
    "rank: I32 @default(7) }"
)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "people", OLD)
    rows = [("Ann", 30, "Rome"), ("Ben", 40, None)]
    graph.load(
        [
            {"type": "Person", "data": {"name": name, "age": age, "city": city}}
            for name, age, city in rows
        ],
        mode="append",
    )
    return graph


@pytest.fixture
def old(graph: og.Graph) -> str:
    commit = graph.snapshot().commit_id
    change_schema(graph, NEW)
    return commit


def test_columns_are_those_of_the_commit(graph: og.Graph, old: str) -> None:
    shown = find_snapshot(graph.location, None, old)
    found = spark_schema(select(shown, "Person")).simpleString()
    assert found == "struct<id:string,age:int,city:string,name:string>"
    found = spark_schema(select(graph.snapshot(), "Human")).simpleString()
    assert found == "struct<id:string,name:string,rank:int,years:bigint>"
    with pytest.raises(NotFound, match="Human"):
        select(shown, "Human")


@pytest.mark.slow
def test_frames_and_exports_of_a_commit(
    spark: SparkSession, graph: og.Graph, old: str, tmp_path: Path
) -> None:
    frame = graph.to_spark("Person", snapshot=old, spark=spark)
    assert [tuple(row) for row in frame.where("age > 35").collect()] == [("Ben", 40, None, "Ben")]
    frame = graph.to_spark("Human", spark=spark)
    assert [tuple(row) for row in frame.where("years < 35").collect()] == [("Ann", "Ann", 7, 30)]
    for format_ in ("jsonl", "parquet"):
        out = tmp_path / format_
        report = graph.export(f"{out}/", snapshot=old, format=format_, spark=spark)
        assert report.nodes == {"Person": 2}
        assert (out / "Person" / f"part-00000.{format_}").is_file()
    lines = (tmp_path / "jsonl" / "Person" / "part-00000.jsonl").read_text().splitlines()
    assert lines == list(graph.export(snapshot=old))
    copy = og.init(tmp_path / "copy", graph.schema_at(old))
    copy.load(tmp_path / "parquet", mode="append", spark=spark)
    assert list(copy.export()) == lines
    assert sorted(json.loads(lines[0])["data"]) == ["age", "city", "id", "name"]
