"""Tasks: a function of ours run for each of many items, side by side, by Spark.

Owns what travels to executors and back, and the stages that people are shown. Knows nothing of
what the tasks do.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from omnigraph.errors import EngineError, OmniGraphError, StorageError
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.progress import Stages

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


@dataclass(frozen=True, slots=True)
class TaskRunner:
    """Runs the stages of some work, shown and timed; ``seconds`` are those of each so far."""

    engine: SparkEngine
    stages: Stages
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """A stage of one task for each item."""
        if not items:
            return []
        with self.stage(title, len(items)):
            return run_tasks(self.engine, function, items)

    @contextmanager
    def stage(self, title: str, tasks: int | None = None) -> Iterator[None]:
        """A stage of whatever the block does."""
        begun = monotonic()
        try:
            with self.stages.stage(title, tasks):
                yield
        finally:
            self.seconds[title] = self.seconds.get(title, 0.0) + monotonic() - begun
