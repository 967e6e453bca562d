"""The part of a session that loads: rows, streams of them, and tables that a pipeline maps.

Owns those public methods, each written once. Thin: the packages below know how. Spark is imported
by the calls that run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.graph.access import Access, Arguments, action, is_forking
from omnigraph.graph.upkeep import Upkeep
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.entries import MAIN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.pipeline.declared.document import Document
    from omnigraph.pipeline.declared.run import Pipeline
    from omnigraph.pipeline.spark.settings import SparkSettings
    from omnigraph.write.change.results import LoadResult, PipelineResult
    from omnigraph.write.load.csv_options import CsvOptions
    from omnigraph.write.load.row_order import OrderBy


def _document(given: Arguments) -> Document:
    from omnigraph.pipeline.declared.run import Pipeline

    pipeline = given["pipeline"] = Pipeline.of(given["pipeline"])
    return pipeline.document


def _document_branch(_: Access, given: Arguments) -> str:
    return _document(given).branch


def _document_base(_: Access, given: Arguments) -> str | None:
    return _document(given).from_branch


def _document_forks(access: Access, given: Arguments) -> bool:
    document = _document(given)
    return document.from_branch is not None and is_missing(access.handle.manifest, document.branch)


def _document_checks(_: Access, given: Arguments) -> bool:
    """Whether rows of the branch are looked at, which a refusal shows."""
    return any(part.checks for part in _document(given).parts)


class Loading(Upkeep):
    """What a session does to bring rows in."""

    @action("branch_create", branch="from_branch", target="branch", when=is_forking)
    @action("change", branch="branch")
    def load(
        self,
        data: object,
        *,
        mode: str,
        branch: str = MAIN,
        from_branch: str | None = None,
        engine: str = "auto",
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
        csv: CsvOptions | None = None,
        report: str | Path | None = None,
        order_by: OrderBy | None = None,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> LoadResult:
        """Load rows as one commit, or none of them.

        ``data`` is a path, glob or directory or a list of those, NDJSON text or a stream of it, an
        iterable of envelopes, or frames or paths by type name. A missing branch is forked from
        ``from_branch`` if that is given. The ``engine`` is chosen by size: up to 512 MiB of input
        are loaded in this process (``OMNIGRAPH_INLINE_BYTES``), more on Spark, on a session of
        yours, a master's URL or what ``spark`` says. ``csv`` says how CSV files are written. A
        page of what was done, or why it was not, is written to ``report``. With ``order_by`` rows
        are written in an order: True for that of their keys, or properties by type. Under
        a ``run_id`` it happens once in all branches of the graph: the same load again gives the
        first result. The ``message`` is for people who read the history.

        >>> rows = [{"type": "Film", "data": {"title": "Speed", "year": 1994}}]
        >>> graph.load(rows, mode="append").nodes
        {'Film': 1}
        >>> import pandas as pd
        >>> people = pd.DataFrame({"name": ["Dan"], "born": [1970]})
        >>> graph.load({"Person": people}, mode="merge", message="From a frame").total
        1
        """
        from omnigraph.write.load.input import is_request_sized, require_engine
        from omnigraph.write.load.load_digest import digest_of_input
        from omnigraph.write.load.operation import Load, LoadOptions
        from omnigraph.write.load.report import reported
        from omnigraph.write.publish.driver import run

        options = LoadOptions.of(
            mode,
            on_error=on_error,
            rejects=rejects,
            max_rejects=max_rejects,
            run_id=run_id,
            dry_run=dry_run,
            csv=csv,
            report=None if report is None else str(report),
            order_by=order_by,
        )
        target = self._access.target(branch, fork_from=from_branch, message=message)
        run_ = options.run(target, lambda: digest_of_input(data))
        is_small = is_request_sized(data, require_engine(engine))

        def loaded() -> LoadResult:
            if is_small:
                load = Load(data, options, actor or self.actor, run_, self._access.embedding)
                return run(load, target, dry_run=dry_run)
            from omnigraph.pipeline.load.entry import SparkTarget, load_in_bulk

            choice = SparkTarget.of(spark, progress=progress)
            return load_in_bulk(
                data,
                options,
                target,
                actor or self.actor,
                choice,
                engine=engine,
                run_id=run_,
                embedding=self._access.embedding,
            )

        if options.report is None:
            return loaded()
        return reported(loaded, options.report, target.branch)

    @action("branch_create", branch="from_branch", target="branch", when=is_forking)
    @action("change", branch="branch")
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

        >>> incoming, noted = Path("incoming").resolve(), Path("noted").resolve()
        >>> films = spark.readStream.schema("title string, year int").json(str(incoming))
        >>> once = {"availableNow": True}
        >>> stream = graph.stream_load(films, type="Film", checkpoint=noted, trigger=once)
        >>> stream.awaitTermination()
        >>> graph.query("match { $f: Film } return { count($f) as films }").scalar()
        3
        """
        from omnigraph.pipeline.streaming import StreamChoice, stream_load
        from omnigraph.write.load.operation import LoadOptions

        options = LoadOptions.of(mode, on_error=on_error, rejects=rejects, max_rejects=max_rejects)
        target = self._access.target(branch, fork_from=from_branch)
        stream = StreamChoice(str(checkpoint), query_name, output_mode, trigger or {})
        return stream_load(rows, type, options, target, stream, actor=actor or self.actor)

    @action("branch_create", branch=_document_base, target=_document_branch, when=_document_forks)
    @action("change", branch=_document_branch)
    @action("read", branch=_document_branch, when=_document_checks)
    def run_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        dry_run: bool = False,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> PipelineResult:
        """Load what a declared pipeline maps onto types, as one commit of this graph.

        ``pipeline`` is the path of its document, which says the branch and the mode, and may have
        steps, each of which is a commit. A load whose checks find rows is not published.

        >>> graph.run_pipeline("films.yaml").nodes
        {'Film': 1}
        """
        from omnigraph.pipeline.declared.run import Pipeline
        from omnigraph.pipeline.load.entry import SparkTarget

        choice = SparkTarget.of(spark, progress=progress)
        found = Pipeline.of(pipeline)
        target = self._access.target(MAIN)
        return found.run(target, choice, actor=actor or self.actor, dry_run=dry_run)

    @action("read", branch=_document_branch)
    def validate_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> None:
        """Raise one error for all that is wrong with a declared pipeline; reads no rows.

        >>> graph.validate_pipeline("films.yaml")
        """
        from omnigraph.pipeline.declared.run import Pipeline
        from omnigraph.pipeline.load.entry import SparkTarget

        Pipeline.of(pipeline).validate(self._access.target(MAIN), SparkTarget.of(spark))
