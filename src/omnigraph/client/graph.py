"""A graph on a server, with the methods of one that is opened here.

Owns those that change it as requests: what is sent, and as what the answer comes back. Opens no
storage.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn, Self

from omnigraph.client import results
from omnigraph.client.connection import Ask, Connection
from omnigraph.client.load_body import load_body
from omnigraph.client.namespaces import (
    ServedBranches,
    ServedChanges,
    ServedCommits,
    ServedTags,
    run_headers,
)
from omnigraph.client.reading import ServedReading, params_of
from omnigraph.client.unserved import refuse
from omnigraph.display.graphs import graph_html, unread_html
from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.evolve.apply import SchemaResult
from omnigraph.graph.guard import guarded
from omnigraph.graph.schema_sources import desired_source, named_query, query_source
from omnigraph.lang.source import Source
from omnigraph.maintain.steps import MaintenanceReport
from omnigraph.manifest.entries import MAIN
from omnigraph.wire.body import encode
from omnigraph.wire.health import MaintenanceBody
from omnigraph.wire.requests import (
    EmbedRequest,
    InvokeRequest,
    MaintainRequest,
    MutateRequest,
    SchemaApplyRequest,
)
from omnigraph.wire.results import EmbedBody, LoadBody, MutationBody
from omnigraph.wire.schemas import SchemaAppliedBody
from omnigraph.write.backfill import EmbedResult
from omnigraph.write.change.results import LoadResult, MutationResult
from omnigraph.write.load.operation import LoadOptions

IF_COMMIT = "omnigraph-if-graph-commit"


class ServedGraph(ServedReading):
    """A graph on a server, as whoever has the token may use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.branches = ServedBranches(connection)
        self.tags = ServedTags()
        self.commits = ServedCommits(connection)
        self.changes = ServedChanges(connection)
        self.notices: list[str] = []
        """What opening found and mended: nothing, that is the server's to do."""

    # -- changing --------------------------------------------------------------------

    @guarded
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
        """Run a mutation query as one commit."""
        refuse(actor=actor, max_bytes=max_bytes, message=message)
        name, params = named_query(name, params)
        asked = MutateRequest(query_source(source).text, name, params_of(params), branch)
        return self._change(("mutate",), encode(asked), if_commit, run_id)

    def _change(
        self, parts: tuple[str, ...], body: bytes, if_commit: str | None, run_id: str | None
    ) -> MutationResult:
        headers = run_headers(run_id)
        if if_commit is not None:
            if not if_commit.isalnum() or not if_commit.isascii():
                raise BadRequest("if_commit is the id of a commit as it is")
            parts, headers[IF_COMMIT] = (*parts, "if-graph-commit"), if_commit
        ask = Ask(
            method="POST",
            parts=parts,
            body=body,
            headers=headers,
            repeatable=run_id is not None,
        )
        done = results.mutation(self._connection.json(ask, MutationBody))
        self._note(done.branch, done.commit)
        return done

    @guarded
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
        csv: object = None,
        report: object = None,
        order_by: object = None,
        spark: object = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> LoadResult:
        """Load rows as one commit, or none of them: lines, records, or files of lines."""
        del progress
        refuse(
            actor=actor,
            message=message,
            rejects=rejects,
            max_rejects=max_rejects,
            dry_run=dry_run,
            csv=csv,
            report=report,
            order_by=order_by,
            spark=spark,
            engine="spark" if engine == "spark" else None,
            on_error=None if on_error == "fail" else on_error,
        )
        LoadOptions.of(mode)
        query = [("branch", branch), ("mode", mode)]
        if from_branch is not None:
            query.append(("from", from_branch))
        ask = Ask(
            method="POST",
            parts=("load", "ndjson"),
            query=tuple(query),
            body=load_body(data, lambda: self.catalog),
            content="application/x-ndjson",
            headers=run_headers(run_id),
            repeatable=run_id is not None,
        )
        done = results.load(self._connection.json(ask, LoadBody))
        self._note(done.branch, done.published)
        return done

    @guarded
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
        spark: object = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> SchemaResult:
        """Give a branch another schema, as one commit; stored queries are checked by the server."""
        del progress
        refuse(
            message=message,
            actor=actor,
            queries=queries,
            force_queries=force_queries,
            if_commit=if_commit,
            spark=spark,
            engine="spark" if engine == "spark" else None,
        )
        asked = SchemaApplyRequest(desired_source(source).text, allow_data_loss, branch)
        ask = Ask(
            method="POST",
            parts=("schema", "apply"),
            body=encode(asked),
            headers=run_headers(run_id),
            repeatable=run_id is not None,
        )
        done = results.schema_change(self._connection.json(ask, SchemaAppliedBody))
        self._note(done.branch, done.commit)
        return done

    @guarded
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
        spark: object | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> EmbedResult:
        """Make the `@embed` vectors of stored nodes that have none, as one commit or several."""
        del progress
        refuse(
            actor=actor, message=message, spark=spark, engine="spark" if engine == "spark" else None
        )
        body = encode(EmbedRequest(type, property, branch, where, only_missing, commit_rows))
        ask = Ask(method="POST", parts=("embed",), body=body, repeatable=only_missing)
        done = results.embedding(self._connection.json(ask, EmbedBody))
        self._note(done.branch, done.commit)
        return done

    @guarded
    def maintain(
        self,
        branch: str | None = None,
        *,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta | None = None,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MaintenanceReport:
        """Do what is worth doing to keep the graph small and fast, on one branch or on all."""
        refuse(actor=actor, grace=grace)
        seconds = None if older_than is None else int(older_than.total_seconds())
        asked = MaintainRequest(branch, max_seconds, max_bytes, keep, seconds, dry_run)
        ask = Ask(method="POST", parts=("maintain",), body=encode(asked))
        return results.maintenance(self._connection.json(ask, MaintenanceBody))

    def _note(self, branch: str, commit: Any) -> None:
        self._connection.note(branch, None if commit is None else commit.id)

    @guarded
    def invoke_mutation(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        if_commit: str | None = None,
        run_id: str | None = None,
    ) -> MutationResult:
        """Run a stored mutation as one commit.

        >>> served = og.open(url, graph="film")
        >>> served.invoke_mutation("add_film", {"title": "Speed", "year": 1994}).affected_nodes
        1
        """
        body = encode(InvokeRequest(params_of(params), branch, expect_mutation=True))
        return self._change(("queries", name), body, if_commit, run_id)

    # -- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """Let go of what is held; safe to forget."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise BadRequest(
            "an opened graph cannot be copied or sent to another process: open it there"
        )

    def __repr__(self) -> str:
        return f"<Graph {self.location}>"

    def _repr_html_(self) -> str:
        """Its page in a notebook; a server that does not answer has one that says so."""
        try:
            shown, catalog = self.snapshot(), self.catalog
            counts = {f"{o.entity_kind}:{o.type_name}": o.entity_count for o in shown.datasets}
            return graph_html(self.location, None, self.branches.list(), counts, catalog)
        except OmniGraphError as error:
            return unread_html(repr(self), error.message)
