"""Streaming loads: every micro-batch of a Structured Streaming query is one commit.

Owns that a batch is loaded exactly once. Spark plays a batch again when it died before it
had noted its end; the commit itself says which batch it is, so that the two cannot come apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.snapshot import BranchState, commits_of
from omnigraph.pipeline.load.entry import catalog_for, load_given, on_spark
from omnigraph.pipeline.load.stage.frames import Frame, LoadInput
from omnigraph.pipeline.load.stage.spark_frames import is_spark_frame, misfits
from omnigraph.pipeline.spark.session import spark_session
from omnigraph.write.change.change_set import EntityType
from omnigraph.write.load.columns.frames import find_frame_type
from omnigraph.write.load.operation import LoadOptions
from omnigraph.write.publish.driver import Target
from omnigraph.write.rules.violations import Violations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

STREAM = "stream"
"""The member of a commit's metadata that says which batch of which query it is."""
_START_SECONDS = 600.0

RowsOf = Callable[["DataFrame"], "DataFrame"]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One batch; the id of a query stays the same for as long as its checkpoint does."""

    query_id: str
    batch_id: int

    @property
    def note(self) -> dict[str, Any]:
        """What its commit says."""
        return {"query_id": self.query_id, "batch_id": self.batch_id}

    def find(self, view: BranchState) -> Commit | None:
        """The commit that shows that this batch was loaded, if the branch has one."""
        # Those in memory first: of a query that runs, the newest batch is nearly always there.
        newest = _newest(view.state.commits, self.query_id)
        newest = newest or _newest(commits_of(view), self.query_id)
        # Batches are loaded in their order, so a later one came after this one.
        if newest is None or newest.metadata[STREAM]["batch_id"] < self.batch_id:
            return None
        return newest


def _newest(commits: Iterable[Commit], query_id: str) -> Commit | None:
    of_query = [commit for commit in commits if _query_of(commit) == query_id]
    return max(of_query, key=lambda commit: int(commit.metadata[STREAM]["batch_id"]), default=None)


def _query_of(commit: Commit) -> str | None:
    noted = commit.metadata.get(STREAM)
    return noted.get("query_id") if isinstance(noted, Mapping) else None


@dataclass(frozen=True, slots=True)
class StreamChoice:
    """How Spark runs the query; ``trigger`` is what its `trigger` takes, such as availableNow."""

    checkpoint: str
    query_name: str | None = None
    output_mode: str = "append"
    trigger: Mapping[str, Any] = field(default_factory=dict)


def stream_load(
    rows: DataFrame,
    types: str | Mapping[str, RowsOf],
    options: LoadOptions,
    target: Target,
    stream: StreamChoice,
    *,
    actor: str | None = None,
) -> StreamingQuery:
    """Start a query whose every micro-batch is one load; the caller waits for it, or stops it.

    ``types`` is the type of all rows, or for every type a function that takes a batch to the
    rows of that type.
    """
    _require_stream(rows)
    if not stream.checkpoint.strip():
        raise BadRequest("a streaming load needs a checkpoint: the directory where Spark notes it")
    catalog = catalog_for(target)
    if not types:
        raise BadRequest("which type are the rows of? say type=…, or a function for every type")
    for name in [types] if isinstance(types, str) else types:
        type_ = find_frame_type(name, catalog)
        if isinstance(types, str):
            _require_fitting(rows, type_, name)
    loads = _BatchLoads(types, options, target, actor)
    query = rows.writeStream.foreachBatch(loads).outputMode(stream.output_mode)
    query = query.option("checkpointLocation", stream.checkpoint)
    if stream.query_name is not None:
        query = query.queryName(stream.query_name)
    if stream.trigger:
        query = query.trigger(**stream.trigger)
    started = query.start()
    loads.begin(started.id)
    return started


def _require_stream(rows: object) -> None:
    if not is_spark_frame(rows):
        raise BadRequest(f"a stream is a DataFrame of Spark's, found {type(rows).__name__}")
    if any("pyspark.sql.connect" in kind.__module__ for kind in type(rows).__mro__):
        raise BadRequest(
            "a streaming load publishes from the driver, which on Spark Connect is the server: run"
            " it with a session that has its driver here"
        )
    if not getattr(rows, "isStreaming", False):
        raise BadRequest("this DataFrame is no stream: load it with graph.load, or use readStream")


def _require_fitting(rows: DataFrame, type_: EntityType, label: str) -> None:
    problems = Violations()
    for problem in misfits(rows, type_, label, {}):
        problems.add(problem)
    problems.raise_if_any()


class _BatchLoads:
    """What Spark calls with every batch, one after the other, in a thread of its own."""

    def __init__(
        self,
        types: str | Mapping[str, RowsOf],
        options: LoadOptions,
        target: Target,
        actor: str | None,
    ) -> None:
        self._types = types
        self._options = options
        self._target = target
        self._actor = actor
        self._query_id: str | None = None
        self._begun = threading.Event()

    def begin(self, query_id: str) -> None:
        """Say which query it is; the first batch may be waiting for that."""
        self._query_id = query_id
        self._begun.set()

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Load one batch, unless the graph has it."""
        self._begun.wait(_START_SECONDS)
        if self._query_id is None:
            raise AssertionError("a query has started that nobody has begun")
        batch = MicroBatch(self._query_id, batch_id)
        is_shared = not isinstance(self._types, str) and len(self._types) > 1
        if is_shared:
            rows.persist()
        try:
            with (
                spark_session(existing=rows.sparkSession) as engine,
                on_spark(engine, self._target) as runner,
            ):
                load_given(
                    LoadInput(unwritten=self.frames(rows, catalog_for(self._target))),
                    self._options,
                    self._target,
                    runner,
                    actor=self._actor,
                    notes={STREAM: batch.note},
                    once=batch,
                )
        finally:
            if is_shared:
                rows.unpersist()

    def frames(self, rows: DataFrame, catalog: Catalog) -> tuple[Frame, ...]:
        """The frames of a batch; unknown types are refused."""
        if isinstance(self._types, str):
            return (Frame(find_frame_type(self._types, catalog), self._types, rows),)
        return tuple(
            Frame(find_frame_type(name, catalog), name, rows_of(rows))
            for name, rows_of in self._types.items()
        )
