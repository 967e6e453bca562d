"""Reading: queries, snapshots, exports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.graph import Session
from omnigraph.lang.query import syntax as ast
from omnigraph.lang.query.compile import parse_source, select_query
from omnigraph.lang.query.unnamed import is_unnamed
from omnigraph.lang.source import Source
from omnigraph.server.answers import ARROW, JSON, NDJSON, answer
from omnigraph.server.call import MIN_COMMIT, Call
from omnigraph.server.router import GRAPH, Header, Route
from omnigraph.server.streams import Pieces, StreamAnswer
from omnigraph.wire.body import encode
from omnigraph.wire.graphs import SnapshotBody
from omnigraph.wire.requests import ExportRequest, QueryRequest, ReadRequest
from omnigraph.wire.results import QueryBody, TargetBody

if TYPE_CHECKING:
    from omnigraph.read.output.result import Result

FRESH = Header(MIN_COMMIT, "A commit that has to be in what is read.")


class BranchQuery(msgspec.Struct, frozen=True):
    """The branch that is looked at; main if none is named."""

    branch: str | None = None


async def query(call: Call) -> Response:
    """Run a read query that comes with the request."""
    asked = await call.json(QueryRequest)
    wanted = Read(asked.query, asked.name, asked.params, asked.branch, asked.snapshot)
    return await run_query(call, wanted, only_reads=True)


async def read(call: Call) -> Response:
    """The same under its older names, without the commit."""
    asked = await call.json(ReadRequest)
    wanted = Read(asked.query_source, asked.query_name, asked.params, asked.branch, asked.snapshot)
    return await run_query(call, wanted, with_commit=False)


def require_read(source: str | Source, name: str | None) -> None:
    """Refuse a mutation in words that lead to its route; what does not parse is told later."""
    text = source if isinstance(source, Source) else Source(source, "<query>")
    if is_unnamed(text.text):
        return
    chosen = select_query(parse_source(text), name)
    if not isinstance(chosen.body, ast.Read):
        raise BadRequest(
            f"query '{chosen.name.text}' is a mutation: send it to POST /mutate, not to POST /query"
        )


@dataclass(frozen=True, slots=True)
class Read:
    """A query, and the branch or the commit that it is asked of."""

    source: str | Source
    name: str | None
    params: dict[str, Any] | None
    branch: str | None
    snapshot: str | None


async def run_query(
    call: Call, wanted: Read, *, with_commit: bool = True, only_reads: bool = False
) -> Response:
    """Run a query of a branch or of a commit, and answer in the form that was asked for."""
    if wanted.branch is not None and wanted.snapshot is not None:
        raise BadRequest("give a branch or a snapshot, not both")
    shown = call.branch_of(wanted.branch)
    is_arrow = _wants_arrow(call)

    def work(session: Session) -> tuple[Result, bytes]:
        if only_reads:
            require_read(wanted.source, wanted.name)
        with call.server.metrics.open_query():
            found = session.query(
                wanted.source,
                wanted.name,
                wanted.params,
                branch=shown,
                snapshot=wanted.snapshot,
                timeout=call.server.limits.request_seconds,
                cancellation=call.cancellation,
            )
        return found, b"" if is_arrow else query_json(found, with_commit=with_commit)

    found, text = await call.read(work)
    call.commit = found.commit_id
    headers = {"Omnigraph-Snapshot-Id": found.commit_id}
    if not is_arrow:
        return Response(text, headers=headers, media_type=JSON)
    pieces = Pieces(call.server.workers, arrow_pieces(found))
    await pieces.begin()
    return StreamAnswer(pieces, ARROW, headers)


def query_json(found: Result, *, with_commit: bool = True) -> bytes:
    """What a query returned, its rows written as columns of text and not one by one."""
    rows = cast("list[Any]", msgspec.Raw(found.json_rows().encode()))
    return encode(
        QueryBody(
            query_name=found.query_name,
            target=TargetBody(found.branch, found.snapshot),
            row_count=len(found),
            columns=tuple(found.columns),
            rows=rows,
            graph_commit_id=found.commit_id if with_commit else None,
        )
    )


def _wants_arrow(call: Call) -> bool:
    """Whether the client names an Arrow stream, and JSON no more than that."""
    weights: dict[str, float] = {}
    for part in ",".join(call.headers.getlist("accept")).split(","):
        name, _, parameters = part.partition(";")
        weights[name.strip().lower()] = _weight(parameters)
    return weights.get(ARROW, 0.0) > 0 and weights[ARROW] >= weights.get(JSON, 0.0)


def _weight(parameters: str) -> float:
    """How much a client wants something; what cannot be read counts as fully."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "q":
            try:
                return float(value)
            except ValueError:
                return 1.0
    return 1.0


def arrow_pieces(found: Result) -> Iterator[bytes]:
    """The rows as an Arrow stream, a batch at a time; its schema says where they are from."""
    import pyarrow as pa

    target = {
        "query_name": found.query_name,
        "branch": found.branch,
        "snapshot": found.snapshot,
        "graph_commit_id": found.commit_id,
    }
    noted = {f"omnigraph.{name}": text for name, text in target.items() if text is not None}
    table = found.to_arrow()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), **noted})
    written = bytearray()
    with pa.ipc.new_stream(pa.PythonFile(_Sink(written), mode="w"), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=65_536):
            writer.write_batch(batch)
            yield bytes(written)
            written.clear()
    yield bytes(written)


class _Sink:
    """A file that only keeps what was just written."""

    def __init__(self, written: bytearray) -> None:
        self._written = written
        self.closed = False

    def write(self, data: bytes) -> int:
        self._written += data
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


async def snapshot(call: Call) -> Response:
    """What a branch holds."""
    branch = call.branch_of(call.query(BranchQuery).branch)
    found = await call.read(lambda session: session.snapshot(branch))
    call.commit = found.commit_id
    return answer(SnapshotBody.of(found))


async def export(call: Call) -> Response:
    """The entities of a branch, a line each, while they are read."""
    asked = await call.json(ExportRequest)
    branch = call.branch_of(asked.branch)
    call.require("export", branch)
    give_back = await call.server.slots.reserve(call.graph.id)
    try:
        found = await call.read(
            lambda session: session.export(branch=branch, types=asked.type_names or None)
        )
        pieces = Pieces(call.server.workers, (chunk.data for chunk in found.chunks()))
        await pieces.begin()
    except BaseException:
        give_back()
        raise
    return StreamAnswer(pieces, NDJSON, ended=give_back)


ROUTES = (
    Route(
        method="POST",
        path=f"{GRAPH}/query",
        operation="query",
        tag="queries",
        summary="Run a read query.",
        handle=query,
        body=QueryRequest,
        answers=(QueryBody,),
        content=("json", "arrow"),
        fails=(410,),
        headers=(FRESH,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/read",
        operation="read",
        tag="queries",
        summary="Run a read query, under its older names.",
        handle=read,
        body=ReadRequest,
        answers=(QueryBody,),
        content=("json", "arrow"),
        fails=(410,),
        headers=(FRESH,),
        successor="query",
    ),
    Route(
        method="GET",
        path=f"{GRAPH}/snapshot",
        operation="getSnapshot",
        tag="queries",
        summary="What a branch holds: every type, its version and its size.",
        handle=snapshot,
        query=BranchQuery,
        answers=(SnapshotBody,),
        headers=(FRESH,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/export",
        operation="export",
        tag="queries",
        summary="The entities of a branch as NDJSON, streamed.",
        handle=export,
        body=ExportRequest,
        content=("ndjson",),
        fails=(409, 410),
    ),
)
