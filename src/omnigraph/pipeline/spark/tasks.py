"""Tasks: a function of ours run for each of many items, side by side, by Spark.

Owns the groups of jobs that a block of work has started, and their end when the block
ends early. Knows nothing of what the tasks do.
"""

from __future__ import annotations

import pickle
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from omnigraph.errors import EngineError, OmniGraphError, StorageError
from omnigraph.pipeline.spark.engine import SparkEngine

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = "number long, result binary"
# How Python ends a traceback.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")


@dataclass(frozen=True, slots=True)
class _Tasks(Generic[Item, Result]):
    """What a worker is sent: the function, and all items."""

    function: Callable[[Item], Result]
    items: Sequence[Item]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            results = [pickle.dumps(self._result(number)) for number in numbers]
            yield pa.record_batch({"number": numbers, "result": pa.array(results, pa.binary())})

    def _result(self, number: int) -> Result | OmniGraphError:
        try:
            return self.function(self.items[number])
        except StorageError as error:
            if error.kind == "transient":
                raise
            return error
        except OmniGraphError as error:
            return error


@contextmanager
def spark_errors(engine: SparkEngine) -> Iterator[None]:
    """Turn what Spark raises within the block into an EngineError."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise _failed(engine, error) from error


def _failed(engine: SparkEngine, error: Exception) -> EngineError:
    details: dict[str, Any] = {"master": engine.master}
    where = ""
    if engine.log_file is not None:
        details["log_file"] = str(engine.log_file)
        where = f"; Spark's log is {engine.log_file}"
    return EngineError(
        f"a job on Spark ({engine.master}) failed: {_reason(error)}{where}", details=details
    )


def _reason(error: Exception) -> str:
    """The last line of a task's own traceback, or the first line of anything else."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if _RAISED.match(line)]
    return own[-1] if own else (lines[0] if lines else type(error).__name__)


def run_tasks(
    engine: SparkEngine, function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """The results of a function for all items, in their order; one task for each item."""
    if not items:
        return []
    work = _Tasks(function, tuple(items))
    with spark_errors(engine):
        frame = engine.session.range(0, len(items), 1, len(items)).mapInArrow(work, _SCHEMA)
        rows = frame.collect()
    # Written by our own tasks a moment ago.
    results: dict[int, Any] = {
        row["number"]: pickle.loads(row["result"])  # noqa: S301 - see above
        for row in rows
    }
    for number in range(len(items)):
        if isinstance(results[number], OmniGraphError):
            raise results[number]
    return [results[number] for number in range(len(items))]


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
