"""Loading on Spark as the graph asks for it: a session, the inputs, one load.

Owns the way from what a person hands over to the files that are loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.manifest.entries import MAIN
from omnigraph.pipeline.inputs import find_inputs
from omnigraph.pipeline.load.operation import SparkLoad
from omnigraph.pipeline.progress import stages
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.settings import SparkSettings
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.results import LoadResult
from omnigraph.write.writer import Writer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """The Spark to run on: a session of the caller's, or one of ours; and whether to show how."""

    settings: SparkSettings = field(default_factory=SparkSettings)
    session: SparkSession | None = None
    progress: bool = False

    @classmethod
    def of(
        cls, spark: SparkSession | SparkSettings | str | None, *, progress: bool = False
    ) -> SparkChoice:
        """What a caller says: a session, settings, the URL of a master, or nothing."""
        if spark is None:
            return cls(progress=progress)
        if isinstance(spark, SparkSettings):
            return cls(spark, progress=progress)
        if isinstance(spark, str):
            return cls(SparkSettings(master=spark), progress=progress)
        return cls(session=spark, progress=progress)


def load_on_spark(
    data: object,
    options: LoadOptions,
    writer: Writer,
    actor: str | None,
    spark: SparkChoice,
) -> LoadResult:
    """Load files of any size as one commit."""
    catalog = _catalog(writer)
    files = find_inputs(data, [*catalog.nodes, *catalog.edges])
    with (
        spark_session(spark.settings, existing=spark.session) as engine,
        stages(engine, show=spark.progress) as shown,
    ):
        load = SparkLoad(
            files,
            options,
            engine,
            shown,
            writer.operation_id,
            EmbedderConfig.of_environment(),
        )
        return load.run(writer, actor)


def _catalog(writer: Writer) -> Catalog:
    """The schema of the branch, or of the one it will be forked from."""
    branches = writer.manifest.branches()
    known = writer.branch in (MAIN, *branches)
    branch = writer.branch if known or writer.fork_from is None else writer.fork_from
    return catalog_of(writer.manifest.view(branch).state.schema)
