"""A graph as a source of Spark: `spark.read.format("omnigraph")`.

Owns how the source becomes known to a session. Importing this imports no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.pipeline.spark.engine import engine_of, ship_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMAT = "omnigraph"


def register(session: SparkSession) -> None:
    """Let a session read graphs by the format `omnigraph`; saying it again changes nothing."""
    from omnigraph.pipeline.source.datasource import GraphSource

    ship_package(engine_of(session))
    session.dataSource.register(GraphSource)
