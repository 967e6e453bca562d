"""Schema changes whose columns are written on Spark: the same rows, and still one commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SCHEMA = "node Person { name: String @key  age: I32? }\n"
WIDER = """\
node Person {
    name: String @key
    years: I64 @default(-1) @rename_from("age")
    rank: I32 @default(5)
}
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """A graph with a table in several pieces."""
    graph = og.init(tmp_path / "g", SCHEMA)
    for first in range(0, 40, 10):
        names = [f"p{number}" for number in range(first, first + 10)]
        ages = pa.array([first, *[None] * 9], pa.int32())
        graph.load(
            {"Person": pa.table({"name": names, "age": ages})}, mode="append", engine="inline"
        )
    return graph


def test_executors_write_what_this_process_would(graph: og.Graph, spark: SparkSession) -> None:
    graph.branches.create("here")
    there = graph.apply_schema(WIDER, engine="spark", spark=spark)
    here = graph.apply_schema(WIDER, branch="here", engine="inline")
    assert there.applied
    assert there.steps == here.steps
    assert [*graph.export()] == [*graph.export(branch="here")]
    graph.mutate('query m() { insert Person { name: "Next" } }')
    assert '"name":"Next","rank":5,"years":-1' in "".join(graph.export())


def test_an_engine_that_is_none(graph: og.Graph) -> None:
    with pytest.raises(BadRequest, match="no engine 'flink'"):
        graph.apply_schema(WIDER, engine="flink")
