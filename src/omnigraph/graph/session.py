"""Sessions: everything an actor can do with a graph; and the graph itself, bound by no policy.

Owns the public methods that change something, each written once. Thin: the packages below
know how. Spark is imported by the calls that run on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest
from omnigraph.evolve.apply import SchemaChange, SchemaResult, apply_schema
from omnigraph.graph.access import Access, Arguments, Policy, action, is_forking
from omnigraph.graph.branches import Branches, Tags
from omnigraph.graph.guard import guarded
from omnigraph.graph.namespaces import Changes, Commits
from omnigraph.graph.schema_sources import desired_source, named_query, query_source
from omnigraph.graph.upkeep import Upkeep
from omnigraph.lang.source import Source
from omnigraph.manifest.branches import is_missing
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.store import GraphHandle
from omnigraph.write.backfill import Backfill, EmbedResult, backfill
from omnigraph.write.change.results import LoadResult, MutationResult, PipelineResult
from omnigraph.write.load.operation import Load, LoadOptions
from omnigraph.write.mutation.operation import Mutation
from omnigraph.write.publish.driver import run
from omnigraph.write.publish.run_ids import RunId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.pipeline.declared.document import Document
    from omnigraph.pipeline.declared.run import Pipeline
    from omnigraph.pipeline.spark.settings import SparkSettings
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


class Session(Upkeep):
    """A graph as one actor uses it: every call is authorised as that actor.

    Calls that take an ``actor`` record that one instead, where no policy forbids it.
    """

    def __init__(
        self,
        handle: GraphHandle,
        actor: str | None = None,
        policy: Policy | None = None,
        embedding: EmbedderConfig | None = None,
    ) -> None:
        super().__init__(Access(handle, actor, policy, embedding))
        self.branches = Branches(self._access)
        self.tags = Tags(self._access)
        self.commits = Commits(self._access)
        self.changes = Changes(self._access)

    @action("change", branch="branch", hides=True)
    def mutate(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        if_commit: str | None = None,
        run_id: str | None = None,
        max_bytes: int | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MutationResult:
        """Run a mutation query as one commit.

        ``name`` chooses one of several queries of the source. With ``if_commit`` it
        happens only if that commit is the head of the branch. Under a ``run_id`` it happens once
        in all branches of the graph: the same request again gives the first result.
        ``max_bytes`` bounds the rows that it reads and makes (a quarter of the memory unless
        `OMNIGRAPH_QUERY_BYTES` says otherwise). The ``message`` is for people who read the history.
        """
        query, (name, params) = query_source(source), named_query(name, params)
        text, path = query.text, query.name
        target = self._access.target(branch, if_commit=if_commit, message=message)
        run_, limits = None, self._access.limits(target.branch)
        if run_id is not None:
            asked = {"source": text, "name": name, "params": params or {}, "branch": target.branch}
            if limits is not None:
                asked["limits"] = limits.digest
            run_ = RunId.of(run_id, "mutate", asked)
        # A bound of choice would tell how much was read to find what is shown.
        most = max_bytes if limits is None else None
        mutation = Mutation(
            text,
            name,
            params,
            path,
            actor or self.actor,
            run_,
            most,
            limits,
            self._access.embedding,
        )
        return run(mutation, target)

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
        """
        from omnigraph.write.load.input import is_request_sized, require_engine
        from omnigraph.write.load.load_digest import digest_of_input
        from omnigraph.write.load.report import reported

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
        """
        from omnigraph.pipeline.streaming import StreamChoice, stream_load

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
        """Raise one error for all that is wrong with a declared pipeline; reads no rows."""
        from omnigraph.pipeline.declared.run import Pipeline
        from omnigraph.pipeline.load.entry import SparkTarget

        Pipeline.of(pipeline).validate(self._access.target(MAIN), SparkTarget.of(spark))

    @action("schema_apply", target="branch")
    def apply_schema(
        self,
        source: str | Path | Source,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        queries: Mapping[str, str] | None = None,
        force_queries: bool = False,
        if_commit: str | None = None,
        run_id: str | None = None,
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> SchemaResult:
        """Give a branch another schema, as one commit; ``source`` is a `.pg` file or its text.

        What rows do not obey is refused as a whole, and nothing is changed. A dropped type or
        property stays readable in older commits, unless ``allow_data_loss`` gives it up.
        ``queries`` are texts of stored queries by their names: those that would no longer
        compile refuse the change, unless ``force_queries`` breaks them. A call that is repeated
        with the same ``run_id`` changes nothing and tells what was done. Columns of tables with
        many millions of rows are written on Spark, or as the ``engine`` says.
        """
        from omnigraph.pipeline.load.entry import SparkTarget
        from omnigraph.pipeline.schema_columns import column_writer

        target = self._access.target(branch, if_commit=if_commit, message=message)
        text = desired_source(source)
        run_of = None
        if run_id is not None:
            request = {"source": text.text, "branch": target.branch, "hard": allow_data_loss}
            run_of = RunId.of(run_id, "apply_schema", request)
        choice = SparkTarget.of(spark, progress=progress)
        with column_writer(self.location, engine, choice) as write:
            change = SchemaChange(
                text,
                target.manifest.refs.reserve_identities,
                allow_data_loss=allow_data_loss,
                queries=queries,
                force_queries=force_queries,
                actor=actor or self.actor,
                run=run_of,
                write=write,
            )
            return apply_schema(change, target)

    @action("change", branch="branch")
    def embed(
        self,
        type: str,  # noqa: A002 - the word of the API
        property: str | None = None,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
        where: str | None = None,
        only_missing: bool = True,
        commit_rows: int | None = None,
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> EmbedResult:
        """Make the `@embed` vectors of stored nodes that have none, as one commit.

        Without a ``property`` all vectors of the type are made. ``where`` chooses nodes, as the
        condition of a mutation does. Unless ``only_missing``, vectors that are there are made
        again. With ``commit_rows`` there is a commit for each so many rows, in whole files: what
        was committed stays when it is stopped, and the next call goes on there. Types of many
        millions of rows are embedded on Spark, or as the ``engine`` says.
        """
        from omnigraph.pipeline.load.entry import SparkTarget
        from omnigraph.pipeline.maintenance import maintenance_workers

        choice = SparkTarget.of(spark, progress=progress)
        with maintenance_workers(self.location, engine, choice) as workers:
            first = Backfill(
                type,
                property,
                where,
                only_missing,
                actor or self.actor,
                self._access.embedding,
                workers=workers,
                commit_rows=commit_rows,
            )
            return backfill(first, self._access.target(branch, message=message))

    # -- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """Let go of what is held; safe to forget."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session of {self.actor} at {self.location}>"

    def _repr_html_(self) -> str:
        from omnigraph.graph.page import page_of

        return page_of(self)


class Graph(Session):
    """An opened graph: a session without a policy, which makes those that have one."""

    def __init__(
        self,
        handle: GraphHandle,
        actor: str | None = None,
        embedding: EmbedderConfig | None = None,
    ) -> None:
        super().__init__(handle, actor, None, embedding)
        self.manifest = handle.manifest
        """What is published; for the engine and its tests."""
        self.notices: list[str] = []
        """What opening found and mended."""

    @guarded
    def as_actor(self, actor: str, policy: Policy | None = None) -> Session:
        """The graph as somebody uses it, who may do what a policy allows, or everything."""
        if not actor.strip():
            raise BadRequest("an actor has a name: it cannot be empty")
        return Session(self._access.handle, actor, policy, self._access.embedding)

    def __repr__(self) -> str:
        return f"<Graph {self.location}>"
