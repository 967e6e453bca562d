"""Loading entities."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from omnigraph.errors import BadRequest, BranchNotFound
from omnigraph.graph import Session
from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Route
from omnigraph.server.routes.writes import MADE, ONCE, WRITE_FAILS, note_commit
from omnigraph.server.settings import LOAD_LIMIT
from omnigraph.wire.requests import LoadRequest, Mode
from omnigraph.wire.results import LoadBody


class LoadQuery(msgspec.Struct, frozen=True):
    """Where lines are loaded to, and how."""

    branch: str | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    mode: Mode = "merge"


async def load(call: Call) -> Response:
    """Load NDJSON that is a member of the request."""
    asked = await call.json(LoadRequest, LOAD_LIMIT)
    goes_to = LoadQuery(asked.branch, asked.from_, asked.mode)
    return await _load(call, asked.data, goes_to, with_uri=True)


async def load_ndjson(call: Call) -> Response:
    """Load NDJSON that is the body; who may not is told before it is read."""
    goes_to = call.query(LoadQuery)
    if call.graph.policy is not None:
        branch = call.branch_of(goes_to.branch)
        forks = goes_to.from_ is not None and await call.ask(
            lambda: branch not in call.graph.graph.branches.list()
        )
        if forks:
            call.require("branch_create", call.branch_of(goes_to.from_), branch)
        call.require("change", branch)
    call.require_content("application/x-ndjson")
    data = await call.data(LOAD_LIMIT, "graph_batch_request_bytes")
    return await _load(call, data, goes_to, with_uri=False)


async def _load(call: Call, data: str | bytes, goes_to: LoadQuery, *, with_uri: bool) -> Response:
    branch, run_id = call.branch_of(goes_to.branch), call.run_id
    base = None if goes_to.from_ is None else call.branch_of(goes_to.from_)
    uri = call.graph.location if with_uri else None

    def work(session: Session) -> LoadBody:
        text = data.encode() if isinstance(data, str) else _utf_8(data)
        try:
            done = session.load(
                text, mode=goes_to.mode, branch=branch, from_branch=base, run_id=run_id
            )
        except BranchNotFound as error:
            if base is not None:
                raise
            raise BranchNotFound(
                f"branch '{branch}' not found; pass `from` to create it"
            ) from error
        return LoadBody.of(done, uri=uri)

    done = await call.write(work, len(data), ("change", branch, None))
    note_commit(call, None if done.commit is None else done.commit.graph_commit_id)
    return answer(done)


def _utf_8(data: bytes) -> bytes:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 text (byte {error.start})") from None
    return data


ROUTES = (
    Route(
        method="POST",
        path=f"{GRAPH}/load",
        operation="load",
        tag="mutations",
        summary="Load entities as one commit; they are NDJSON text in a member.",
        handle=load,
        body=LoadRequest,
        answers=(LoadBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
        links=MADE,
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/load/ndjson",
        operation="loadNdjson",
        tag="mutations",
        summary="Load entities as one commit; they are the body, a line each.",
        handle=load_ndjson,
        query=LoadQuery,
        body=str,
        body_content="ndjson",
        answers=(LoadBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/ingest",
        operation="ingest",
        tag="mutations",
        summary="Load entities, under the older name.",
        handle=load,
        body=LoadRequest,
        answers=(LoadBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
        successor="load",
    ),
)
