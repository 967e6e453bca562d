"""Sessions: everything an actor can do with a graph; and the graph itself, bound by no policy.

Owns the public methods that change something, each written once; loads are beside it. Thin: the
packages below know how. Spark is imported by the calls that run on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.errors import BadRequest
from omnigraph.graph.access import Access, Policy, action
from omnigraph.graph.branches import Branches, Tags
from omnigraph.graph.guard import guarded
from omnigraph.graph.loading import Loading
from omnigraph.graph.matching import SessionMatching
from omnigraph.graph.namespaces import Changes, Commits
from omnigraph.graph.schema_sources import desired_source, named_query, query_source
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.store import GraphHandle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.evolve.apply import SchemaResult
    from omnigraph.pipeline.spark.settings import SparkSettings
    from omnigraph.write.backfill import EmbedResult
    from omnigraph.write.change.results import MutationResult


class Session(Loading):
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

        >>> done = graph.mutate('create Person { name: "Dan", born: 1970 }', message="One more")
        >>> done.affected_nodes, done.commit.message
        (1, 'One more')
        """
        from omnigraph.write.mutation.operation import Mutation
        from omnigraph.write.publish.driver import run
        from omnigraph.write.publish.run_ids import RunId

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
            SessionMatching(self._access, target.branch),
        )
        return run(mutation, target)

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

        >>> wanted = graph.schema.replace("born: I32?", "born: I32?  died: I32?")
        >>> done = graph.apply_schema(wanted, branch="draft", message="When they died")
        >>> done.applied, done.step_count, done.commit.message
        (True, 1, 'When they died')
        """
        from omnigraph.evolve.apply import SchemaChange, apply_schema
        from omnigraph.pipeline.load.entry import SparkTarget
        from omnigraph.pipeline.schema_columns import column_writer
        from omnigraph.write.publish.run_ids import RunId

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

        >>> before = "node Book { title: String @key  plot: String? }"
        >>> shelf = og.init("shelf.omni", before)
        >>> done = shelf.mutate('create Book { title: "Rain", plot: "a singer in bad weather" }')
        >>> after = before.replace("}", "meaning: Vector(64)? @embed(plot) }")
        >>> done = shelf.apply_schema(after)
        >>> shelf.embed("Book").vectors
        {'meaning': 1}
        """
        from omnigraph.pipeline.load.entry import SparkTarget
        from omnigraph.pipeline.maintenance import maintenance_workers
        from omnigraph.write.backfill import Backfill, backfill

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
        """Let go of what is held; safe to forget.

        >>> graph.close()
        """

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
        """The graph as somebody uses it, who may do what a policy allows, or everything.

        >>> ann = graph.as_actor("ann")
        >>> ann.mutate('create Person { name: "Dan" }').commit.actor
        'ann'
        """
        if not actor.strip():
            raise BadRequest("an actor has a name: it cannot be empty")
        return Session(self._access.handle, actor, policy, self._access.embedding)

    def __repr__(self) -> str:
        return f"<Graph {self.location}>"
