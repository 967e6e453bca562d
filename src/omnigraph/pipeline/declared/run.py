"""Running a declared pipeline: its document, a graph and Spark brought together.

Owns the order: everything that can be wrong with a document is told before a row is read, and
all rows of all sources are one load.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.pipeline.declared.document import Document, read_document
from omnigraph.pipeline.declared.plans import plans
from omnigraph.pipeline.declared.sources import open_sources
from omnigraph.pipeline.declared.types import typed_rows
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.pipeline.load.entry import SparkTarget, catalog_for, find_done, load_given
from omnigraph.pipeline.load.stage.frames import Frame, LoadInput
from omnigraph.pipeline.spark.session import SparkEngine, spark_session
from omnigraph.write.change.results import LoadResult
from omnigraph.write.publish.driver import Target


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A document that was read, and what is wrong with it so far."""

    document: Document
    problems: DocumentErrors

    @classmethod
    def of(cls, pipeline: str | Path | Pipeline) -> Pipeline:
        """Read a document; what is no YAML at all is refused here, everything else later."""
        if isinstance(pipeline, cls):
            return pipeline
        if not isinstance(pipeline, str | Path):
            found = type(pipeline).__name__
            raise BadRequest(f"a pipeline is the path of its document, not a {found}")
        return cls(*read_document(str(pipeline)))

    def run(
        self,
        graph: Target,
        spark: SparkTarget,
        *,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> LoadResult:
        """Load all that the document maps, as one commit; ``graph`` is any of its branches."""
        target = self._target(graph)
        options = replace(self.document.options, dry_run=dry_run)
        run_id = options.run(target, lambda: self.document.said)
        done = find_done(options, target, run_id, actor)
        if done is not None:
            return done
        with self._planned(target, spark, columns_only=False) as (frames, engine):
            return load_given(
                LoadInput(unwritten=tuple(frames)),
                options,
                target,
                engine,
                actor=actor,
                progress=spark.progress,
                run_id=run_id,
                notes={"pipeline": Path(self.document.file).name},
            )

    def validate(self, graph: Target, spark: SparkTarget) -> None:
        """Tell everything that is wrong without reading more than columns."""
        with self._planned(self._target(graph), spark, columns_only=True):
            return

    def _target(self, graph: Target) -> Target:
        document = self.document
        return replace(graph, branch=document.branch, fork_from=document.from_branch)

    @contextmanager
    def _planned(
        self, target: Target, spark: SparkTarget, *, columns_only: bool
    ) -> Iterator[tuple[list[Frame], SparkEngine]]:
        typed = typed_rows(self.document, catalog_for(target), self.problems)
        # Spark takes seconds to start: what can be told without it is told at once.
        self.problems.raise_if_any()
        with (
            spark_session(spark.settings, existing=spark.session) as engine,
            open_sources(
                self.document, engine, self.problems, columns_only=columns_only
            ) as sources,
        ):
            frames = plans(typed, sources, self.problems)
            self.problems.raise_if_any()
            yield frames, engine
