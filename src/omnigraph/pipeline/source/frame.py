"""Frames: a DataFrame of one type, asked for from a graph that is open.

Owns the check of names before Spark starts, and which sessions a DataFrame can outlive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.errors import BadRequest
from omnigraph.extras import require_extra
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.pipeline.load.entry import SparkTarget
from omnigraph.pipeline.source import FORMAT, register
from omnigraph.pipeline.spark.session import require_shared_storage, spark_session
from omnigraph.pipeline.spark.settings import SparkSettings, is_local
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_frame(
    root: Location,
    shown: Snapshot,
    type_name: str,
    columns: Sequence[str] | None,
    spark: SparkSession | SparkSettings | str | None,
) -> DataFrame:
    """The rows of a type as a snapshot shows them; nothing is read yet."""
    names = [columns] if isinstance(columns, str) else columns
    choice = SparkTarget.of(spark)
    if choice.session is None:
        require_extra("spark", "a DataFrame of Spark")
    from omnigraph.pipeline.source.reading import select

    select(shown, type_name, names)
    if choice.session is None and not _lives_on(choice.settings):
        raise BadRequest(
            "a DataFrame lives no longer than its session: start a session on the cluster"
            " yourself, and pass that"
        )
    with spark_session(choice.settings, existing=choice.session) as engine:
        require_shared_storage(engine, root.uri)
        register(engine.session)
        reader = engine.session.read.format(FORMAT).option("type", type_name)
        reader = reader.option("snapshot", shown.commit_id)
        if names is not None:
            reader = reader.option("columns", ",".join(names))
        return reader.load(root.uri)


def _lives_on(settings: SparkSettings) -> bool:
    """Whether a session of ours outlives the work it was started for."""
    return settings.remote is None and is_local(settings.master)
