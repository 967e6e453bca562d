"""Tasks: a function of ours run for each of many items, side by side, by Spark.

Owns how items reach the tasks and results come back: as Python objects, never as rows of the
JVM. A typed error of the product comes back as itself; anything else fails the task, which
Spark then tries again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from omnigraph.errors import OmniGraphError, StorageError
from omnigraph.pipeline.engine import SparkEngine

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
Result = TypeVar("Result")

_SCHEMA = "number long, result binary"


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


def run_tasks(
    engine: SparkEngine, function: Callable[[Item], Result], items: Sequence[Item]
) -> list[Result]:
    """The results of a function for all items, in their order; one task for each item."""
    if not items:
        return []
    work = _Tasks(function, tuple(items))
    rows = engine.session.range(0, len(items), 1, len(items)).mapInArrow(work, _SCHEMA).collect()
    # Written by our own tasks a moment ago.
    results: dict[int, Any] = {
        row["number"]: pickle.loads(row["result"])  # noqa: S301 - see above
        for row in rows
    }
    for number in range(len(items)):
        if isinstance(results[number], OmniGraphError):
            raise results[number]
    return [results[number] for number in range(len(items))]
