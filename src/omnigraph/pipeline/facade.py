"""What a graph does on Spark: frames of it, streams into it, declared pipelines.

Owns the names of that part of the API. Starts nothing before one of them is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.graph_handle import GraphHandle
from omnigraph.write.change.results import LoadResult
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.publish.driver import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.pipeline.declared.run import Pipeline
    from omnigraph.pipeline.spark.settings import SparkSettings


class OnSpark(GraphHandle):
    """The part of a graph that runs on Spark."""

    def to_spark(
        self,
        type_name: str,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        columns: Sequence[str] | None = None,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> DataFrame:
        """The entities of a type as a DataFrame, which shows one commit for as long as it lives.

        All columns but blobs, or those named. Without a session of yours, this process has one.
        """
        from omnigraph.pipeline.source.frame import read_frame

        shown = self.snapshot(branch, commit=snapshot)
        return read_frame(self.location, shown, type_name, columns, spark)

    def stream_load(
        self,
        rows: DataFrame,
        *,
        type: str | Mapping[str, Callable[[DataFrame], DataFrame]],  # noqa: A002 - the word of the API
        mode: str = "append",
        checkpoint: str | Path,
        branch: str = MAIN,
        from_branch: str | None = None,
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        query_name: str | None = None,
        output_mode: str = "append",
        trigger: Mapping[str, Any] | None = None,
        actor: str | None = None,
    ) -> StreamingQuery:
        """Load a stream, every micro-batch as one commit and exactly once; returns the query.

        ``type`` is the type of all rows, or for each type a function that takes a micro-batch to
        its rows. ``checkpoint`` is where Spark notes how far it is; ``trigger`` is what its own
        `trigger` takes.
        """
        self.require_writable()
        from omnigraph.pipeline.streaming import StreamChoice, stream_load

        options = LoadOptions.of(mode, on_error=on_error, rejects=rejects, max_rejects=max_rejects)
        base = None if from_branch is None else normalise_branch(from_branch)
        target = Target(self.location, self.manifest, normalise_branch(branch), fork_from=base)
        stream = StreamChoice(str(checkpoint), query_name, output_mode, trigger or {})
        return stream_load(rows, type, options, target, stream, actor=actor or self.actor)

    def run_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        dry_run: bool = False,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> LoadResult:
        """Load what a declared pipeline maps onto types, as one commit of this graph.

        ``pipeline`` is the path of its document, which says the branch and the mode.
        """
        self.require_writable()
        from omnigraph.pipeline.declared.run import Pipeline
        from omnigraph.pipeline.load.entry import SparkTarget

        choice = SparkTarget.of(spark, progress=progress)
        target = Target(self.location, self.manifest, MAIN)
        found = Pipeline.of(pipeline)
        return found.run(target, choice, actor=actor or self.actor, dry_run=dry_run)

    def validate_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> None:
        """Raise one error for all that is wrong with a declared pipeline; reads no rows."""
        from omnigraph.pipeline.declared.run import Pipeline
        from omnigraph.pipeline.load.entry import SparkTarget

        target = Target(self.location, self.manifest, MAIN)
        Pipeline.of(pipeline).validate(target, SparkTarget.of(spark))
