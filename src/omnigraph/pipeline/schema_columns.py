"""New columns on Spark: those of large tables are written by executors, a task per fragment.

Owns when a schema change uses Spark, and that it is started only then. What a column holds, and
the commit, are the business of those who change the schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from omnigraph.errors import BadRequest
from omnigraph.extras import has_extra
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.new_columns import NewColumn, write_columns
from omnigraph.storage.tables.table import Table
from omnigraph.write.reshape.column_effects import WriteColumns

if TYPE_CHECKING:
    from omnigraph.pipeline.load.entry import SparkTarget

ENGINES: Final = ("auto", "inline", "spark")

SPARK_ROWS = 10_000_000
"""Columns of tables with more rows are written on Spark where it is installed, unless the engine
is chosen."""


@dataclass(frozen=True, slots=True)
class ColumnJob:
    """What one task writes: the new columns of some fragments."""

    table: Table
    columns: tuple[NewColumn, ...]
    fragments: tuple[int, ...]


def write_job(job: ColumnJob) -> dict[str, str]:
    """Write them, wherever this runs."""
    return write_columns(job.table, job.columns, job.fragments)


@contextmanager
def column_writer(root: Location, engine: str, spark: SparkTarget) -> Iterator[WriteColumns]:
    """What writes the columns of a schema change, for as long as the block lasts."""
    if engine not in ENGINES:
        raise BadRequest(f"there is no engine {engine!r}: choose {' or '.join(ENGINES)}")
    with ExitStack() as held:
        # Tables are changed side by side, and share one session.
        lock = Lock()
        on_spark: list[WriteColumns] = []

        def write(
            table: Table, columns: Sequence[NewColumn], fragments: Sequence[int]
        ) -> dict[str, str]:
            is_written = any(column.is_written for column in columns)
            if not is_written or not fragments or not _is_for_spark(table, engine, spark):
                return write_columns(table, columns, fragments)
            with lock:
                if not on_spark:
                    on_spark.append(held.enter_context(_spark_writer(root, spark)))
                return dict(on_spark[0](table, columns, fragments))

        yield write


def _is_for_spark(table: Table, engine: str, spark: SparkTarget) -> bool:
    if engine == "auto":
        is_large = table.pin.row_count > SPARK_ROWS
        return is_large and (spark.is_chosen or has_extra("spark"))
    return engine == "spark"


@contextmanager
def _spark_writer(root: Location, spark: SparkTarget) -> Iterator[WriteColumns]:
    from omnigraph.pipeline.spark.progress import stages
    from omnigraph.pipeline.spark.session import require_shared_storage, spark_session
    from omnigraph.pipeline.spark.tasks import run_tasks

    with (
        spark_session(spark.settings, existing=spark.session) as engine,
        stages(engine, show=spark.progress) as bars,
    ):
        require_shared_storage(engine, root.uri)

        def write(
            table: Table, columns: Sequence[NewColumn], fragments: Sequence[int]
        ) -> dict[str, str]:
            jobs = [ColumnJob(table, tuple(columns), (number,)) for number in fragments]
            with bars.stage("columns", len(jobs)):
                written = run_tasks(engine, write_job, jobs)
            return {first: file for part in written for first, file in part.items()}

        yield write
