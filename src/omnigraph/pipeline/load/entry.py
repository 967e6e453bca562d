"""Loading on Spark as the graph asks for it: a session, the inputs, one load.

Owns the way from what a person hands over to one load on an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.pipeline.load.given import LoadInput, given
from omnigraph.pipeline.load.operation import SparkLoad
from omnigraph.pipeline.spark.engine import SparkEngine, require_shared_storage
from omnigraph.pipeline.spark.progress import stages
from omnigraph.pipeline.spark.session import spark_session
from omnigraph.pipeline.spark.settings import SparkSettings
from omnigraph.pipeline.spark.tasks import TaskRunner
from omnigraph.write.change.results import LoadResult
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.publish.driver import Writer
from omnigraph.write.publish.run_ids import Once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """The Spark to run on: a session of the caller's, or one of ours; and whether to show how."""

    settings: SparkSettings = field(default_factory=SparkSettings)
    session: SparkSession | None = None
    progress: bool = False

    @classmethod
    def of(
        cls, spark: SparkSession | SparkSettings | str | None, *, progress: bool = False
    ) -> SparkTarget:
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
    spark: SparkTarget,
    *,
    notes: Mapping[str, Any] | None = None,
    once: Once | None = None,
) -> LoadResult:
    """Load input of any size as one commit.

    ``notes`` are written down in the commit. ``once`` tells the load apart from all others: what
    the branch has is not done again.
    """
    found = given(data, catalog_for(writer))
    session = spark.session or found.session
    if session is None and spark.settings.remote is None:
        # Told before anything starts: to reach a cluster takes time.
        require_shared_storage(spark.settings.master, str(writer.root))
    with spark_session(spark.settings, existing=session) as engine:
        return load_given(
            found,
            options,
            writer,
            engine,
            actor=actor,
            progress=spark.progress,
            notes=notes,
            once=once,
        )


def load_given(
    found: LoadInput,
    options: LoadOptions,
    writer: Writer,
    engine: SparkEngine,
    *,
    actor: str | None = None,
    progress: bool = False,
    notes: Mapping[str, Any] | None = None,
    once: Once | None = None,
) -> LoadResult:
    """The same for input that has been told apart, on an engine that runs."""
    with stages(engine, show=progress) as shown:
        load = SparkLoad(
            found,
            options,
            TaskRunner(engine, shown),
            writer.operation_id,
            EmbedderConfig.of_environment(),
            once=() if once is None else (once,),
        )
        load.noted.update(notes or {})
        return load.run(writer, actor)


def catalog_for(writer: Writer) -> Catalog:
    """The schema of the branch, or of the one it will be forked from."""
    branch = writer.branch
    if writer.fork_from is not None and is_missing(writer.manifest, branch):
        branch = writer.fork_from
    return catalog_of(writer.manifest.view(branch).state.schema)
