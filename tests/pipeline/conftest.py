"""The Spark session and the cluster that all tests share: starting them takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from omnigraph.pipeline.spark.session import SparkEngine, spark_session
from tests.pipeline.cluster import Cluster, standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[SparkEngine]:
    """A local engine with the default settings, so that code under test gets the same one.

    A process has one session: a test that needs other settings runs a script.
    """
    with spark_session() as engine:
        yield engine


@pytest.fixture(scope="session")
def spark(spark_engine: SparkEngine) -> SparkSession:
    return spark_engine.session


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with two workers, which stay: a test that needs a worker to die brings its own."""
    with standalone_cluster(workers=2) as running:
        yield running
