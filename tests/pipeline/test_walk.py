"""The walk of a load on Spark, as the architecture page tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.pipeline.spark.engine import SparkEngine
from tests.docs.walks import at_work, modules, walk


@pytest.mark.slow
def test_a_load_on_spark(tmp_path: Path, spark_engine: SparkEngine) -> None:
    graph = og.init(tmp_path / "people.omni", "node Person { name: String @key }")
    rows = tmp_path / "people.jsonl"
    rows.write_text('{"type": "Person", "data": {"name": "fay"}}\n', encoding="utf-8")

    def load() -> object:
        return graph.load(str(rows), mode="append", engine="spark", spark=spark_engine.session)

    # What runs in tasks, other processes do.
    lines = [line for line in walk("A load on Spark") if "in the tasks" not in line]
    lines = [line for line in lines if "in tasks again" not in line]
    assert set(modules(lines)) - at_work(load) == set()
