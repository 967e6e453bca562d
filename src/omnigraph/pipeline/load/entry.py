"""Bulk loads as the graph asks for them: the inputs, what runs the tasks, one load.

Owns the way from what a person hands over to one load, and which runner takes it when the caller
leaves that open. Must never start Spark for what this process can do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest
from omnigraph.extras import require_extra
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.pipeline.load.operation import BulkLoad
from omnigraph.pipeline.load.stage.frames import LoadInput, given
from omnigraph.pipeline.load.staged_checks import StagedCheck
from omnigraph.pipeline.spark.engine import SparkEngine, require_shared_storage
from omnigraph.pipeline.spark.probe import require_sound_executors
from omnigraph.pipeline.spark.progress import stages
from omnigraph.pipeline.spark.session import spark_session
from omnigraph.pipeline.spark.settings import SparkSettings
from omnigraph.pipeline.spark.tasks import SparkRunner
from omnigraph.pipeline.stage_bars import stage_bars
from omnigraph.pipeline.task_runner import InProcessRunner, TaskRunner
from omnigraph.storage.memory import keep_little_memory, size_of_setting
from omnigraph.write.change.results import LoadResult
from omnigraph.write.load.operation import Accepted, LoadOptions, load_result
from omnigraph.write.publish.driver import Once, Target, find_first_run, run
from omnigraph.write.publish.run_ids import RunId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INLINE_BYTES = 512 << 20
INLINE_SETTING = "OMNIGRAPH_INLINE_BYTES"


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """The Spark to run on: a session of the caller's, or one of ours; and whether to show how."""

    settings: SparkSettings = field(default_factory=SparkSettings)
    session: SparkSession | None = None
    progress: bool = False
    is_chosen: bool = False
    """Whether the caller has named it: then it is wanted."""

    @classmethod
    def of(
        cls, spark: SparkSession | SparkSettings | str | None, *, progress: bool = False
    ) -> SparkTarget:
        """What a caller says: a session, settings, the URL of a master, or nothing."""
        if spark is None:
            return cls(progress=progress)
        if isinstance(spark, SparkSettings):
            return cls(spark, progress=progress, is_chosen=True)
        if isinstance(spark, str):
            return cls(SparkSettings(master=spark), progress=progress, is_chosen=True)
        if not any(base.__module__.startswith("pyspark.") for base in type(spark).__mro__):
            raise BadRequest(
                f"a {type(spark).__name__} is no Spark: pass a session, SparkSettings, or the URL "
                "of a master"
            )
        return cls(session=spark, progress=progress, is_chosen=True)


def load_in_bulk(
    data: object,
    options: LoadOptions,
    target: Target,
    actor: str | None,
    spark: SparkTarget,
    *,
    engine: str = "auto",
    run_id: RunId | None = None,
    embedding: EmbedderConfig | None = None,
) -> LoadResult:
    """Load input of any size as one commit; under a run id, once in the graph.

    Vectors are made by ``embedding``, or by what the environment says. With the engine "auto" this
    process takes what is not larger than `INLINE_BYTES`, unless the caller has named a Spark.
    """
    done = find_done(options, target, run_id, actor)
    if done is not None:
        return done
    found = given(data, catalog_for(target), options.csv)
    session = spark.session or found.session
    if engine == "inline" and found.session is not None:
        raise BadRequest(
            "the rows of a frame of Spark's are computed by Spark: take the engine spark, or auto"
        )
    if engine == "inline" or (
        engine == "auto" and session is None and not spark.is_chosen and _fits(found)
    ):
        keep_little_memory()
        with stage_bars(show=spark.progress) as bars:
            runner: TaskRunner = InProcessRunner(bars)
            return load_given(
                found,
                options,
                target,
                runner,
                actor=actor,
                run_id=run_id,
                embedding=embedding,
            )
    if session is None and not spark.is_chosen and engine == "auto":
        require_extra(
            "spark",
            f"a load of more than {_most_inline()} bytes of files ({INLINE_SETTING})",
            otherwise="choose the engine inline",
        )
    if session is None and spark.settings.remote is None:
        # Told before anything starts: to reach a cluster takes time.
        require_shared_storage(spark.settings.master, str(target.root))
    with (
        spark_session(spark.settings, existing=session) as started,
        on_spark(started, target, progress=spark.progress) as runner,
    ):
        return load_given(
            found, options, target, runner, actor=actor, run_id=run_id, embedding=embedding
        )


def _fits(found: LoadInput) -> bool:
    """Whether input may be loaded in this process; that of memory is there already."""
    return sum(file.size for file in found.files) <= _most_inline()


def _most_inline() -> int:
    return size_of_setting(INLINE_SETTING, os.environ.get(INLINE_SETTING, ""), INLINE_BYTES)


@contextmanager
def on_spark(
    engine: SparkEngine, target: Target, *, progress: bool = False
) -> Iterator[TaskRunner]:
    """What runs the tasks of a load to a graph on an engine that runs."""
    require_shared_storage(engine, str(target.root))
    require_sound_executors(engine, str(target.root))
    with stages(engine, show=progress) as shown:
        yield SparkRunner(engine, shown)


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
    runner: TaskRunner,
    *,
    actor: str | None = None,
    run_id: RunId | None = None,
    notes: Mapping[str, Any] | None = None,
    once: Once | None = None,
    checks: Sequence[StagedCheck] = (),
    embedding: EmbedderConfig | None = None,
) -> LoadResult:
    """The same for input that has been told apart.

    ``notes`` are written down in the commit. ``once`` tells the load apart from others: what the
    branch has is not done again. Where one of the ``checks`` finds rows, nothing is published.
    """
    with BulkLoad(
        found,
        options,
        runner,
        embedding or EmbedderConfig.of_environment(),
        actor,
        run_id,
        once=() if once is None else (once,),
        notes={"operation": "load", **(notes or {})},
        checks=tuple(checks),
    ) as load:
        return run(load, target, dry_run=options.dry_run)


def catalog_for(target: Target) -> Catalog:
    """The schema of the branch, or of the one it will be forked from."""
    branch = target.branch
    if target.fork_from is not None and is_missing(target.manifest, branch):
        branch = target.fork_from
    return catalog_of(target.manifest.view(branch).state.schema)
