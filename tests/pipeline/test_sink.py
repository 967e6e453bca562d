"""A DataFrame written by `format("omnigraph")`: one commit of what all tasks have left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.pipeline.source.datasource import GraphSource
from omnigraph.spark import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
ROWS = StructType([StructField("name", StringType()), StructField("age", IntegerType())])


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "graph", SCHEMA)
    graph.load([{"type": "Person", "data": {"name": "Ann", "age": 1}}], mode="append")
    return graph


def people(graph: og.Graph, branch: str = "main") -> dict[str, int | None]:
    found = [json.loads(line)["data"] for line in graph.export(branch=branch, types=["Person"])]
    return {one["name"]: one["age"] for one in found}


def leftovers(graph: og.Graph) -> list[str]:
    """What a job keeps while it is under way."""
    root = Path(graph.location.path)
    return [str(path) for name in ("__staging", "__recovery") for path in (root / name).glob("*")]


# -- options, without Spark --------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "Persn"}, "Persn"),
        ({"tpe": "Person"}, "a write has no option tpe: did you mean `type`?"),
        ({}, 'which type? say .option("type", "Person")'),
        ({"type": "Person", "branch": "nowhere"}, "there is no branch nowhere"),
        ({"type": "Person", "mode": "upsert"}, "there is no load mode 'upsert'"),
        ({"type": "Person", "mode": "overwrite"}, 'for overwrite say .mode("overwrite")'),
        ({"type": "Person", "max_rejects": "x"}, "max_rejects is a number of rows, found 'x'"),
        ({"type": "Knows"}, "name"),
    ],
)
def test_wrong_options_are_explained(graph: og.Graph, options: dict[str, str], said: str) -> None:
    source = GraphSource({"path": str(graph.location), **options})
    with pytest.raises(OmniGraphError) as raised:
        source.writer(ROWS, overwrite=False)
    assert said in str(raised.value)
    assert leftovers(graph) == []


# -- on Spark ----------------------------------------------------------------------


@pytest.mark.slow
def test_every_write_is_one_commit(spark: SparkSession, graph: og.Graph) -> None:
    register(spark)
    root = str(graph.location)

    def writer(rows: DataFrame, type_name: str = "Person") -> DataFrameWriter:
        return rows.write.format("omnigraph").option("type", type_name)

    before = graph.snapshot().commit_id
    many = spark.range(100).selectExpr("concat('p', id) as name", "int(id) as age").repartition(3)
    writer(many).option("actor", "ann").mode("append").save(root)
    [commit, *_] = graph.commits.list()
    assert (commit.parent_id, commit.actor) == (before, "ann")
    assert commit.metadata["written_by"] == "spark"
    assert len(people(graph)) == 101
    assert leftovers(graph) == []

    edges = spark.sql("select concat('p', id) as `from`, 'Ann' as `to` from range(50)")
    writer(edges, "Knows").mode("append").save(root)
    assert graph.table("Knows").count_rows() == 50

    changed = spark.sql("select 'p1' as name, -1 as age union all select 'New', 2")
    merged = writer(changed).options(mode="merge", run_id="r1", branch="b", from_branch="main")
    merged.mode("append").save(root)
    head = graph.snapshot("b").commit_id
    assert (people(graph, "b")["p1"], people(graph, "b")["New"], len(people(graph))) == (-1, 2, 101)
    merged.mode("append").save(root)
    assert graph.snapshot("b").commit_id == head

    writer(spark.createDataFrame([], ROWS)).option("branch", "b").mode("append").save(root)
    assert len(people(graph, "b")) == 102
    lonely = spark.sql("select 'x' as name, 1 as age where rand() > 2")
    og.open(root).mutate("query q() { delete Knows where since is null }", branch="b")
    writer(lonely).option("branch", "b").mode("overwrite").save(root)
    assert people(graph, "b") == {}
    assert leftovers(graph) == []


@pytest.mark.slow
def test_what_fails_leaves_nothing(spark: SparkSession, graph: og.Graph) -> None:
    register(spark)
    root, head = str(graph.location), graph.snapshot().commit_id
    cases = {
        "select 'Ann' as name, 1 as age": "Ann",
        "select nam as name, 1 as age from values (null), ('b') as t(nam)": "name",
        "select string(id) as name, int(1 / (id - 7)) as age from range(0, 9, 1, 3)": "DIVIDE",
        "select 'x' as name, 'old' as age": "a column of string cannot hold I32",
    }
    for text, said in cases.items():
        written = spark.sql(text).write.format("omnigraph").option("type", "Person").mode("append")
        with pytest.raises(PySparkException, match=said):
            written.save(root)
        assert graph.snapshot().commit_id == head
        assert leftovers(graph) == []
    assert people(graph) == {"Ann": 1}
