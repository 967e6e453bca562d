"""The examples of docstrings that need Spark do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.reference.examples import copied, made, on_spark, run_example

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_examples_on_spark_do_what_they_say(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = made(tmp_path / "origin")
    assert on_spark()
    for number, name in enumerate(on_spark()):
        names = copied(origin, tmp_path / str(number), monkeypatch)
        run_example(name, {**names, "spark": spark})
    for view in ("now_Film", "now_Person", "now_ActedIn"):
        assert spark.catalog.dropTempView(view)
