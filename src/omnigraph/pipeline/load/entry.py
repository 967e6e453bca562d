"""Loading on Spark as the graph asks for it: a session, the inputs, one load.

Owns the way from what a person hands over to one load on an engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.pipeline.load.operation import SparkLoad
from omnigraph.pipeline.load.stage.frames import LoadInput, given
from omnigraph.pipeline.spark.engine import SparkEngine, require_shared_storage
from omnigraph.pipeline.spark.progress import stages
from omnigraph.pipeline.spark.session import spark_session
from omnigraph.pipeline.spark.settings import SparkSettings
from omnigraph.pipeline.spark.tasks import TaskRunner
from omnigraph.write.change.results import LoadResult
from omnigraph.write.load.operation import Accepted, LoadOptions, load_result
from omnigraph.write.publish.driver import Once, Target, find_first_run, run
from omnigraph.write.publish.run_ids import RunId

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
        if not any(base.__module__.startswith("pyspark.") for base in type(spark).__mro__):
            raise BadRequest(
                f"a {type(spark).__name__} is no Spark: pass a session, SparkSettings, or the URL "
                "of a master"
            )
        return cls(session=spark, progress=progress)


def load_on_spark(
    data: object,
    options: LoadOptions,
    target: Target,
    actor: str | None,
    spark: SparkTarget,
    *,
    run_id: RunId | None = None,
    notes: Mapping[str, Any] | None = None,
    once: Once | None = None,
) -> LoadResult:
    """Load input of any size as one commit; under a run id, once in the graph.

    ``notes`` are written down in the commit. ``once`` tells the load apart from others: what the
    branch has is not done again.
    """
    done = find_done(options, target, run_id, actor)
    if done is not None:
        return done
    found = given(data, catalog_for(target))
    session = spark.session or found.session
    if session is None and spark.settings.remote is None:
        # Told before anything starts: to reach a cluster takes time.
        require_shared_storage(spark.settings.master, str(target.root))
    with spark_session(spark.settings, existing=session) as engine:
        return load_given(
            found,
            options,
            target,
            engine,
            actor=actor,
            progress=spark.progress,
            run_id=run_id,
            notes=notes,
            once=once,
        )


def find_done(
    options: LoadOptions, target: Target, run_id: RunId | None, actor: str | None
) -> LoadResult | None:
    """What a load with this run id did, if there was one: told before Spark is started."""
    written = None if run_id is None else find_first_run(target, run_id)
    return None if written is None else load_result(options, written, actor, Accepted())


def load_given(
    found: LoadInput,
    options: LoadOptions,
    target: Target,
    engine: SparkEngine,
    *,
    actor: str | None = None,
    progress: bool = False,
    run_id: RunId | None = None,
    notes: Mapping[str, Any] | None = None,
    once: Once | None = None,
) -> LoadResult:
    """The same for input that has been told apart, on an engine that runs."""
    require_shared_storage(engine, str(target.root))
    with (
        stages(engine, show=progress) as shown,
        SparkLoad(
            found,
            options,
            TaskRunner(engine, shown),
            EmbedderConfig.of_environment(),
            actor,
            run_id,
            once=() if once is None else (once,),
            notes={"operation": "load", **(notes or {})},
        ) as load,
    ):
        return run(load, target, dry_run=options.dry_run)


def catalog_for(target: Target) -> Catalog:
    """The schema of the branch, or of the one it will be forked from."""
    branch = target.branch
    if target.fork_from is not None and is_missing(target.manifest, branch):
        branch = target.fork_from
    return catalog_of(target.manifest.view(branch).state.schema)
