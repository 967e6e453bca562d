"""Work on what is stored, on Spark: whatever is done job by job, a task for each on the executors.

Owns when Spark is used for it, and that it is started only then. What the jobs are, and the
commits that come of them, are the business of those who maintain or embed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from omnigraph.errors import BadRequest
from omnigraph.extras import has_extra
from omnigraph.storage.objects.location import Location

if TYPE_CHECKING:
    from omnigraph.pipeline.load.entry import SparkTarget
    from omnigraph.pipeline.spark.tasks import SparkRunner

ENGINES: Final = ("auto", "inline", "spark")
SPARK_ROWS = 10_000_000
"""Jobs that read more rows run on Spark where it is installed, unless the engine is chosen."""

_Job = TypeVar("_Job")
_Made = TypeVar("_Made")


@contextmanager
def maintenance_workers(
    root: Location, engine: str, spark: SparkTarget
) -> Iterator[MaintenanceWorkers]:
    """Who does the jobs, for as long as the block lasts."""
    if engine not in ENGINES:
        raise BadRequest(f"there is no engine {engine!r}: choose {' or '.join(ENGINES)}")
    with ExitStack() as held:
        yield MaintenanceWorkers(root, engine, spark, held)


@dataclass(slots=True)
class MaintenanceWorkers:
    """Executors where it is worth it or wanted, this process otherwise."""

    root: Location
    wanted: str
    spark: SparkTarget
    held: ExitStack
    _runner: SparkRunner | None = None

    @property
    def engine(self) -> str:
        """The engine that did any of it, or the one that was chosen."""
        return "spark" if self.wanted == "spark" or self._runner is not None else "inline"

    def takes(self, rows: int) -> bool:
        """Whether executors do the work on so many rows."""
        if self.wanted == "auto":
            return rows > SPARK_ROWS and (self.spark.is_chosen or has_extra("spark"))
        return self.wanted == "spark"

    def run(
        self, title: str, function: Callable[[_Job], _Made], jobs: Sequence[_Job], rows: int
    ) -> Iterable[_Made]:
        """What a function makes of every job, in their order."""
        if not jobs or not self.takes(rows):
            return map(function, jobs)
        return self._tasks().run(title, function, jobs)

    def _tasks(self) -> SparkRunner:
        if self._runner is None:
            from omnigraph.pipeline.spark.engine import require_shared_storage
            from omnigraph.pipeline.spark.probe import require_sound_executors
            from omnigraph.pipeline.spark.progress import stages
            from omnigraph.pipeline.spark.session import spark_session
            from omnigraph.pipeline.spark.tasks import SparkRunner

            spark = self.spark
            engine = self.held.enter_context(spark_session(spark.settings, existing=spark.session))
            require_shared_storage(engine, self.root.uri)
            require_sound_executors(engine, self.root.uri)
            bars = self.held.enter_context(stages(engine, show=spark.progress))
            self._runner = SparkRunner(engine, bars)
        return self._runner
