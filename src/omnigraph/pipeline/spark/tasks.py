"""Tasks: a function of ours run for each of many items, side by side, by Spark.

Owns what travels to executors and back. Knows nothing of what the tasks do.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from omnigraph.errors import EngineError, OmniGraphError, StorageError
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.progress import Stages
from omnigraph.pipeline.task_runner import TimedTask, timed, untimed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = "number long, result binary"
# So many bytes of items travel with the function; Spark would send more of them as a broadcast,
# which every task would read as a whole.
_CARRIED_BYTES = 1 << 20
# How Python ends a traceback.
_RAISED = re.compile(r"^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")


@dataclass(frozen=True, slots=True)
class _Tasks(Generic[Item, Result]):
    """What a worker is sent: the function, and all items where they are few and small.

    Where they are not, each comes as a row to the one task that needs it.
    """

    function: Callable[[Item], Result]
    items: Sequence[bytes] | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            numbers = batch.column(0).to_pylist()
            if self.items is None:
                sent = batch.column(1).to_pylist()
            else:
                sent = [self.items[number] for number in numbers]
            results = [pickle.dumps(self._result(one)) for one in sent]
            yield pa.record_batch({"number": numbers, "result": pa.array(results, pa.binary())})

    def _result(self, item: bytes) -> Result | OmniGraphError:
        try:
            # Sent by our own driver.
            return self.function(pickle.loads(item))  # noqa: S301 - see above
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
    sent = [pickle.dumps(item) for item in items]
    with spark_errors(engine):
        if sum(map(len, sent)) <= _CARRIED_BYTES:
            frame = engine.session.range(0, len(sent), 1, len(sent))
            work = _Tasks(function, sent)
        else:
            frame, work = _as_rows(engine, sent), _Tasks(function, None)
        rows = frame.mapInArrow(work, _SCHEMA).collect()
    # Written by our own tasks a moment ago.
    results: dict[int, Any] = {
        row["number"]: pickle.loads(row["result"])  # noqa: S301 - see above
        for row in rows
    }
    for number in range(len(items)):
        if isinstance(results[number], OmniGraphError):
            raise results[number]
    return [results[number] for number in range(len(items))]


def _as_rows(engine: SparkEngine, items: Sequence[bytes]) -> DataFrame:
    """The items as rows, each in a partition of its own."""
    import pyarrow as pa

    numbers = pa.array(range(len(items)), pa.int32())
    table = pa.table({"number": numbers, "item": pa.array(items, pa.binary())})
    frame = engine.session.createDataFrame(table)
    return frame.repartitionById(len(items), frame["number"])


@dataclass(frozen=True, slots=True)
class SparkRunner:
    """Runs tasks on executors: a `TaskRunner`."""

    engine: SparkEngine
    stages: Stages
    seconds: dict[str, float] = field(default_factory=dict)
    task_seconds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def name(self) -> Literal["inline", "spark"]:
        """Spark."""
        return "spark"

    @property
    def cores(self) -> int:
        """Those of the executors."""
        return self.engine.cores

    @property
    def share(self) -> int:
        """One: every task has a process of its own."""
        return 1

    @property
    def log_file(self) -> Path | None:
        """The log of a JVM of ours."""
        return self.engine.log_file

    def run(self, title: str, function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
        """A stage of one task for each item."""
        if not items:
            return []
        with timed(self.seconds, title), self.stages.stage(title, len(items)):
            results = run_tasks(self.engine, TimedTask(function), items)
            return untimed(self.task_seconds, title, results)

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """A stage of whatever the block does."""
        with timed(self.seconds, title), self.stages.stage(title), spark_errors(self.engine):
            yield
