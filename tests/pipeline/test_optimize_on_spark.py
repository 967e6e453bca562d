"""Optimizing on Spark: tasks write the files and the segments, one commit shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.maintain.indexing import check_filters, states
from tests.maintain.test_optimize import BOOK, fragments, grown, told
from tests.write.writing import image

pytestmark = pytest.mark.slow


def test_tasks_do_the_work(tmp_path: Path, spark: SparkSession) -> None:
    graph = grown(tmp_path / "library.omni", 2)
    before, commits = image(graph), len(graph.commits.list())
    report = graph.optimize(engine="spark", spark=spark)
    assert report.engine == "spark"
    assert told(report)[BOOK].committed
    assert len(graph.commits.list()) == commits + 1
    assert image(graph) == before
    assert fragments(graph, BOOK) == 1
    assert {one.state for one in states(graph).values()} == {"complete", "none"}
    check_filters(graph)
    assert graph.optimize(engine="spark", spark=spark).commit_id is None
