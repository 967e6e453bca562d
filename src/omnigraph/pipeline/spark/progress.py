"""Stages of work on Spark: their jobs as one group, and how many of their tasks are done.

Owns naming jobs and cancelling them when their block ends early, since a job that nobody waits
for would go on holding the cores; and counting tasks. Must never change or slow the work it shows.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.stage_bars import Stage, StageBars, TaskCount, stage_bars

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql.connect.shell.progress import ProgressHandler

_CANCEL_SECONDS = 5.0
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"

_POLL_SECONDS = 0.15


@contextmanager
def job_group(engine: SparkEngine, description: str) -> Iterator[str]:
    """Name the jobs that this thread starts in the block, and cancel them when it fails."""
    group = f"omnigraph-{uuid.uuid4().hex}"
    with _tagged(engine, group) if engine.is_connect else _grouped(engine, group, description):
        yield group


@contextmanager
def _grouped(engine: SparkEngine, group: str, description: str) -> Iterator[None]:
    context = engine.session.sparkContext
    before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
    context.setJobGroup(group, description)
    try:
        yield
    except BaseException as error:
        _cancel(lambda: context.cancelJobGroup(group))
        # After an interrupt this thread's connection holds half an answer: it is left alone.
        if not isinstance(error, Exception):
            raise
        with suppress(Exception):  # the first error is the one to tell
            _restore(engine, before)
        raise
    _restore(engine, before)


def _restore(engine: SparkEngine, before: dict[str, str | None]) -> None:
    for name, value in before.items():
        engine.session.sparkContext.setLocalProperty(name, value)  # type: ignore[arg-type]


@contextmanager
def _tagged(engine: SparkEngine, tag: str) -> Iterator[None]:
    engine.session.addTag(tag)
    try:
        yield
    except BaseException:
        _cancel(lambda: engine.session.interruptTag(tag))
        raise
    finally:
        engine.session.removeTag(tag)


def _cancel(order: Callable[[], object]) -> None:
    """Give the order on a connection of its own, and not for long: the JVM may be gone."""

    def quietly() -> None:
        with suppress(Exception):
            order()

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(_CANCEL_SECONDS)


class Stages:
    """The stages of one piece of work."""

    def __init__(self, engine: SparkEngine, bars: StageBars) -> None:
        self._engine = engine
        self._bars = bars

    @contextmanager
    def stage(self, title: str, total_tasks: int | None = None) -> Iterator[Stage]:
        """Show the jobs of the block as one stage; they are cancelled when it fails."""
        with job_group(self._engine, title) as group, self._bars.stage(title, total_tasks) as shown:
            if not self._bars.are_shown:
                yield shown
                return
            watched = _watched_on_server if self._engine.is_connect else _watched_in_jvm
            with watched(self._engine, group, shown.count):
                yield shown


@contextmanager
def stages(engine: SparkEngine, *, show: bool) -> Iterator[Stages]:
    """Stages of the block, with bars if they are wanted and somebody can see them."""
    with stage_bars(show=show) as bars:
        yield Stages(engine, bars)


@contextmanager
def _watched_in_jvm(
    engine: SparkEngine, group: str, tell: Callable[[TaskCount], None]
) -> Iterator[None]:
    context = engine.session.sparkContext
    over = threading.Event()

    def poll() -> None:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:
            while not over.wait(_POLL_SECONDS):
                tell(_tasks_of(context, group))
            tell(_tasks_of(context, group))
        except Py4JError:
            return  # the JVM is gone: the work itself will say so

    thread = threading.Thread(target=poll, name="omnigraph-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tasks_of(context: SparkContext, group: str) -> TaskCount:
    tracker = context.statusTracker()
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        if job is None:
            continue
        known = [tracker.getStageInfo(stage_id) for stage_id in job.stageIds]
        finished = sum(stage.numCompletedTasks for stage in known if stage is not None)
        done += finished
        # A finished job may have skipped stages whose results were there already.
        over = job.status != "RUNNING"
        total += finished if over else sum(stage.numTasks for stage in known if stage is not None)
    return TaskCount(done, total)


@contextmanager
def _watched_on_server(
    engine: SparkEngine,
    group: str,  # noqa: ARG001 - a server reports the operations of this client only
    tell: Callable[[TaskCount], None],
) -> Iterator[None]:
    counts: dict[str | None, TaskCount] = {}

    def on_progress(
        stages: Iterable[Any] | None,
        inflight_tasks: int,  # noqa: ARG001 - part of the signature
        operation_id: str | None,
        done: bool,  # noqa: ARG001, FBT001 - part of the signature
    ) -> None:
        known = list(stages or ())
        if known:
            counts[operation_id] = TaskCount(
                sum(stage.num_completed_tasks for stage in known),
                sum(stage.num_tasks for stage in known),
            )
            tell(
                TaskCount(
                    sum(count.done for count in counts.values()),
                    sum(count.total for count in counts.values()),
                )
            )

    handler = cast("ProgressHandler", on_progress)
    engine.session.registerProgressHandler(handler)
    try:
        yield
    finally:
        engine.session.removeProgressHandler(handler)
