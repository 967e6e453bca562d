"""Running a declared pipeline: its document, a graph and Spark brought together.

Owns the order: everything that can be wrong with a document is told before a row is read, steps
come one after the other on one session, and all rows of all sources of a step are one load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.pipeline.declared.checks import require_sound
from omnigraph.pipeline.declared.document import Document, read_document
from omnigraph.pipeline.declared.plans import plans
from omnigraph.pipeline.declared.sources import open_sources
from omnigraph.pipeline.declared.types import Typed, typed_rows
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.pipeline.load.entry import (
    SparkTarget,
    catalog_for,
    find_done,
    load_given,
    on_spark,
)
from omnigraph.pipeline.load.stage.frames import Frame, LoadInput
from omnigraph.pipeline.spark.session import SparkEngine, spark_session
from omnigraph.write.change.results import LoadResult, PipelineResult, StepResult
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
    ) -> PipelineResult:
        """Load all that the document maps, each step as one commit; ``graph`` is any branch.

        What fails ends it: the steps before are published, and under a run id not done again.
        """
        target = self._target(graph)
        done: list[StepResult] = []
        with ExitStack() as held:
            engine: SparkEngine | None = None
            for part in self.document.parts:
                run = _PartRun(part, target, self.problems, actor, dry_run=dry_run)
                loaded = run.find_done()
                if loaded is None:
                    if engine is None:
                        self._look(target)
                        started = spark_session(spark.settings, existing=spark.session)
                        engine = held.enter_context(started)
                    try:
                        loaded = run.load(engine, progress=spark.progress)
                    except OmniGraphError as error:
                        raise _in_step(error, part, done) from error.__cause__
                done.append(StepResult(part.name, loaded, tuple(part.checks)))
        return _result_of(done)

    def validate(self, graph: Target, spark: SparkTarget) -> None:
        """Tell everything that is wrong without reading more than columns."""
        target = self._target(graph)
        self._look(target)
        with spark_session(spark.settings, existing=spark.session) as engine:
            for part in self.document.parts:
                run = _PartRun(part, target, self.problems)
                with run.planned(engine, columns_only=True, raises=False):
                    continue
        self.problems.raise_if_any()

    def _target(self, graph: Target) -> Target:
        document = self.document
        return replace(graph, branch=document.branch, fork_from=document.from_branch)

    def _look(self, target: Target) -> None:
        """What can be told without Spark, which takes seconds to start."""
        for part in self.document.parts:
            _PartRun(part, target, self.problems).typed()
        self.problems.raise_if_any()


@dataclass(frozen=True, slots=True)
class _PartRun:
    """One load of a document."""

    part: Document
    target: Target
    problems: DocumentErrors
    actor: str | None = None
    dry_run: bool = False

    def find_done(self) -> LoadResult | None:
        """What an earlier run of it did, if it has a name and there was one."""
        options = self.part.options
        run_id = options.run(self.target, lambda: self.part.said)
        return find_done(options, self.target, run_id, self.actor)

    def load(self, engine: SparkEngine, *, progress: bool) -> LoadResult:
        """All its rows as one commit."""
        options = replace(self.part.options, dry_run=self.dry_run)
        notes = {"pipeline": Path(self.part.file).name}
        if self.part.name is not None:
            notes["step"] = self.part.name
        with (
            self.planned(engine) as frames,
            on_spark(engine, self.target, progress=progress) as runner,
        ):
            return load_given(
                LoadInput(unwritten=tuple(frames)),
                options,
                self.target,
                runner,
                actor=self.actor,
                run_id=options.run(self.target, lambda: self.part.said),
                notes=notes,
                checks=[declared.check for declared in self.part.checks.values()],
            )

    def typed(self) -> list[Typed]:
        """What it maps, as far as it fits the schema that the branch has now."""
        catalog = catalog_for(self.target)
        require_sound(self.part.checks.values(), catalog, self.problems)
        return typed_rows(self.part, catalog, self.problems)

    @contextmanager
    def planned(
        self, engine: SparkEngine, *, columns_only: bool = False, raises: bool = True
    ) -> Iterator[list[Frame]]:
        """Its rows as DataFrames; what is wrong is told at once, or left to who asks."""
        sources = open_sources(self.part, engine, self.problems, columns_only=columns_only)
        with sources as found:
            frames = plans(self.typed(), found, self.problems)
            if raises:
                self.problems.raise_if_any()
            yield frames


def _in_step(error: OmniGraphError, part: Document, done: Sequence[StepResult]) -> OmniGraphError:
    """The error of a step, which says what is published all the same."""
    if part.name is None:
        return error
    published = [one for one in done if one.load.published is not None]
    said = [f"step '{part.name}': {error.message}"]
    if published:
        said.append(f"published before: {', '.join(str(one.name) for one in published)}")
    error.message = "\n".join(said)
    error.details |= {
        "step": part.name,
        "published": [{"step": one.name, "commit": one.load.commit.id} for one in published],
    }
    return error


def _result_of(done: Sequence[StepResult]) -> PipelineResult:
    """What all steps did; without names, what the one did."""
    last = done[-1].load
    told = {one.name: getattr(last, one.name) for one in fields(LoadResult)}
    for kind in ("nodes", "edges", "rejects"):
        counts: dict[str, int] = {}
        for step in done:
            for name, count in getattr(step.load, kind).items():
                counts[name] = counts.get(name, 0) + count
        told[kind] = counts
    told["branch_created"] = any(step.load.branch_created for step in done)
    told["repeats_run"] = all(step.load.repeats_run for step in done)
    return PipelineResult(**told, steps=tuple(done))
