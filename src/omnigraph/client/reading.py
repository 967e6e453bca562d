"""The half of a served graph that looks: schema, queries, blobs, exports, health.

Owns those methods as requests. Opens no storage and changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from omnigraph.client import results
from omnigraph.client.blobs import ServedBlob
from omnigraph.client.connection import ARROW, JSON, Ask, Connection
from omnigraph.client.streams import ServedExport, write_lines
from omnigraph.client.unserved import Unserved, refuse
from omnigraph.graph.guard import guarded
from omnigraph.graph.schema_sources import named_query, query_source
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
from omnigraph.maintain.health import GraphStatus
from omnigraph.maintain.reports import IndexStatus
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.read.output.blobs import BlobSelector
from omnigraph.read.output.export import ExportReport
from omnigraph.read.output.result import Result
from omnigraph.wire.body import encode
from omnigraph.wire.graphs import SnapshotBody
from omnigraph.wire.requests import (
    ExportRequest,
    InvokeRequest,
    QueryRequest,
)
from omnigraph.wire.results import QueryBody
from omnigraph.wire.schemas import SchemaBody
from omnigraph.wire.serving import ServedStatusBody, StoredQueriesBody


class ServedReading(Unserved):
    """What a server shows of a graph to whoever has the token."""

    _connection: Connection

    @property
    def location(self) -> str:
        """Where the graph is."""
        return str(self._connection.address)

    @property
    def read_only(self) -> bool:
        """Whether it was opened to be looked at; what is allowed, the server knows."""
        return False

    @property
    def actor(self) -> str | None:
        """Who acts: known to the server alone, by the token."""
        return None

    # -- the graph -------------------------------------------------------------------

    @property
    @guarded
    def schema(self) -> str:
        """The source of the schema that main has."""
        ask = Ask(method="GET", parts=("schema",), branch=MAIN)
        return self._connection.json(ask, SchemaBody).schema_source

    @property
    def catalog(self) -> Catalog:
        """The schema that main has, typed; its ids are those of a new graph."""
        return compile_schema(Source(self.schema, "<schema>")).catalog

    @guarded
    def snapshot(self, branch: str = MAIN, *, commit: str | None = None) -> SnapshotBody:
        """What a branch shows now: every type, its version and its size."""
        refuse(commit=commit)
        ask = Ask(
            method="GET",
            parts=("snapshot",),
            query=(("branch", branch),),
            branch=normalise_branch(branch),
        )
        return self._connection.json(ask, SnapshotBody)

    @guarded
    def lint(
        self, source: str | Source, *, branch: str = MAIN, snapshot: str | None = None
    ) -> LintReport:
        """Everything that can be said of queries against the schema of main."""
        refuse(snapshot=snapshot, branch=None if normalise_branch(branch) == MAIN else branch)
        return lint_queries(query_source(source), self.catalog)

    @guarded
    def status(self, branch: str = MAIN, *, wait: float | None = None) -> GraphStatus:
        """The health of the graph; with ``wait`` once its indexes are ready, or that time is up.

        >>> og.open(url, graph="film").status().rows
        7
        """
        return results.status(self._status(branch, wait))

    @guarded
    def index_status(self, branch: str = MAIN) -> IndexStatus:
        """Which indexes a branch has, how much they cover, and which are missing and why."""
        return results.indexes(self._status(branch, None))

    def _status(self, branch: str, wait: float | None) -> ServedStatusBody:
        query = [("branch", branch)]
        if wait is not None:
            query.append(("wait", str(wait)))
        ask = Ask(method="GET", parts=("status",), query=tuple(query), wait=max(wait or 0.0, 0.0))
        return self._connection.json(ask, ServedStatusBody)

    # -- asking ----------------------------------------------------------------------

    @guarded
    def query(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        cancellation: object = None,
        expansion: str = "auto",
    ) -> Result:
        """Run a read query on a branch as it is now, or on what a commit showed.

        ``timeout`` is how many seconds to wait for the answer; the server has a bound of its own.
        """
        refuse(
            max_bytes=max_bytes,
            cancellation=cancellation,
            expansion=None if expansion == "auto" else expansion,
        )
        name, params = named_query(name, params)
        asked = QueryRequest(
            query_source(source).text, name, params_of(params), *_at(branch, snapshot)
        )
        return self._rows(("query",), encode(asked), branch, snapshot, timeout)

    def _rows(
        self,
        parts: tuple[str, ...],
        body: bytes,
        branch: str,
        snapshot: str | None,
        timeout: float | None,
    ) -> Result:
        ask = Ask(
            method="POST",
            parts=parts,
            body=body,
            accept=ARROW,
            branch=normalise_branch(branch) if snapshot is None else None,
        )
        reply = self._connection.call(ask, timeout)
        if reply.headers.get("content-type", "").startswith(JSON):
            return results.json_result(reply.decode(QueryBody))
        return results.arrow_result(reply.body)

    @guarded
    def stored_queries(self) -> StoredQueriesBody:
        """The stored queries of the graph, by name.

        >>> served = og.open(url, graph="film")
        >>> [query.name for query in served.stored_queries().queries]
        ['add_film', 'films']
        """
        return self._connection.json(Ask(method="GET", parts=("queries",)), StoredQueriesBody)

    @guarded
    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Run a stored read query.

        >>> served = og.open(url, graph="film")
        >>> served.invoke("films", {"until": 2000}).rows
        [{'film': 'The Matrix'}]
        """
        shown, at = _at(branch, snapshot)
        body = encode(InvokeRequest(params_of(params), shown, at, expect_mutation=False))
        return self._rows(("queries", name), body, branch, snapshot, timeout)

    @guarded
    def blob(
        self,
        entity: Literal["node", "edge"],
        type: str,  # noqa: A002 - the word of the API
        id: str,  # noqa: A002 - the word of the API
        property: str,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
    ) -> ServedBlob:
        """A Blob property of one entity, to be read piece by piece."""
        selector = BlobSelector(entity, type, id, property)
        return ServedBlob.find(self._connection, selector, normalise_branch(branch), snapshot)

    @guarded
    def export(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",  # noqa: A002 - the word of the API
        engine: str = "auto",
        spark: object = None,
        progress: bool = False,
    ) -> ServedExport | ExportReport:
        """The entities of a branch as NDJSON lines, or written to a file when one is named."""
        del progress
        refuse(snapshot=snapshot, spark=spark, engine="spark" if engine == "spark" else None)
        if format != "jsonl" or (path is not None and str(path).endswith("/")):
            refuse(format=format)
        names = [types] if isinstance(types, str) else list(types or ())
        ask = Ask(
            method="POST",
            parts=("export",),
            body=encode(ExportRequest(branch, names)),
            accept="application/x-ndjson",
        )
        lines = ServedExport(self._connection, ask)
        return lines if path is None else write_lines(lines, path)


def _at(branch: str, snapshot: str | None) -> tuple[str | None, str | None]:
    """Either the one or the other; a commit counts if there is one."""
    return (branch, None) if snapshot is None else (None, snapshot)


def params_of(params: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Parameters as JSON has them."""
    return None if params is None else {name: _param(value) for name, value in params.items()}


def _param(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        from base64 import b64encode

        return f"base64:{b64encode(value).decode()}"
    if isinstance(value, list | tuple):
        return [_param(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value
