"""Groups of jobs: what a block of work has started on Spark, and its end when the block ends early.

Owns naming and cancelling. Must never outlive the block: a job that nobody waits
for would go on holding the cores.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from omnigraph.pipeline.spark.engine import SparkEngine

_CANCEL_SECONDS = 5.0
_GROUP = "spark.jobGroup.id"
_DESCRIPTION = "spark.job.description"


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
