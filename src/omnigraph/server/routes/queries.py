"""Stored queries: which there are, and calling one by its name."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from omnigraph.errors import BadRequest, NotFound, PolicyDenied
from omnigraph.graph import Session
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.server.answers import answer
from omnigraph.server.call import IF_COMMIT, MIN_COMMIT, RUN_ID, Call
from omnigraph.server.router import GRAPH, Header, Route
from omnigraph.server.routes.reads import Read, run_query
from omnigraph.server.routes.writes import (
    WRITE_FAILS,
    expected_commit,
    refuse_condition,
    run_mutation,
)
from omnigraph.server.stored_queries import StoredQuery
from omnigraph.wire.requests import InvokeRequest
from omnigraph.wire.results import MutationBody, QueryBody
from omnigraph.wire.serving import StoredQueriesBody, StoredQueryBody

_NONE = frozenset({b"", b"null"})


async def listed(call: Call) -> Response:
    """All stored queries of the graph."""
    call.require("read", call.branch_of(None))
    known = list(call.graph.queries.by_name.values())
    if call.graph.is_limited(call.actor):
        known = await call.read(lambda session: [one for one in known if _is_shown(one, session)])
    found = [
        StoredQueryBody.of(
            query.name,
            query.params,
            description=query.syntax.description,
            instruction=query.syntax.instruction,
            mutation=query.is_mutation,
        )
        for query in known
    ]
    return answer(StoredQueriesBody(found))


async def invoke(call: Call) -> Response:
    """Call a stored query, of either kind."""
    refuse_condition(call)
    query, asked = await _asked(call)
    if query.is_mutation:
        return await _mutate(call, query, asked, None)
    call.refuse_run_id()
    wanted = Read(query.source, query.name, asked.params, asked.branch, asked.snapshot)
    return await run_query(call, wanted)


async def invoke_conditionally(call: Call) -> Response:
    """Call a stored mutation if the branch is where the caller thinks."""
    commit = expected_commit(call)
    query, asked = await _asked(call)
    if not query.is_mutation:
        raise BadRequest(f"'{query.name}' is a read: it takes no condition, call it without")
    return await _mutate(call, query, asked, commit)


async def _asked(call: Call) -> tuple[StoredQuery, InvokeRequest]:
    """The query and what it is called with; who may not call it learns nothing of it."""
    data = await call.data()
    if data.strip() in _NONE:
        asked = InvokeRequest()
    else:
        call.require_content("application/json")
        try:
            asked = msgspec.json.decode(data, type=InvokeRequest)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadRequest(f"invalid stored-query invocation body: {error}") from None
    query = call.graph.queries.by_name.get(call.path["name"])
    try:
        call.graph.require_query(call.actor, call.path["name"])
    except PolicyDenied:
        query = None
    if query is None or not await _is_found(call, query, asked):
        raise NotFound("stored query not found")
    if asked.expect_mutation not in (None, query.is_mutation):
        kind, verb = ("mutation", "mutate") if query.is_mutation else ("read", "query")
        raise BadRequest(f"'{query.name}' is a {kind} — use omnigraph {verb} {query.name}")
    if query.is_mutation and asked.snapshot is not None:
        raise BadRequest(f"'{query.name}' is a mutation: it takes a branch, not a snapshot")
    return query, asked


async def _is_found(call: Call, query: StoredQuery, asked: InvokeRequest) -> bool:
    if not call.graph.is_limited(call.actor):
        return True
    branch = call.branch_of(asked.branch)
    return await call.ask(lambda: _is_shown(query, call.session, branch, asked.snapshot))


def _is_shown(
    query: StoredQuery, session: Session, branch: str = MAIN, snapshot: str | None = None
) -> bool:
    """Whether a query names nothing that is hidden from an actor; its text would tell of it."""
    try:
        shown = session.snapshot(branch, commit=snapshot)
    except PolicyDenied:
        if query.is_mutation:
            return False  # nothing of the branch is shown
        raise
    except NotFound:
        shown = session.snapshot()
    return query.fits(catalog_of(shown.schema))


async def _mutate(
    call: Call, query: StoredQuery, asked: InvokeRequest, if_commit: str | None
) -> Response:
    return await run_mutation(
        call, query.source, query.name, asked.params, asked.branch, if_commit=if_commit
    )


ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/queries",
        operation="listQueries",
        tag="queries",
        summary="The stored queries of a graph, by name.",
        handle=listed,
        answers=(StoredQueriesBody,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/queries/{{name}}",
        operation="invokeQuery",
        tag="queries",
        summary="Call a stored query: a read or a mutation, as it was written.",
        handle=invoke,
        body=InvokeRequest,
        body_required=False,
        answers=(QueryBody, MutationBody),
        content=("json", "arrow"),
        fails=(410, *WRITE_FAILS),
        headers=(
            Header(MIN_COMMIT, "A commit that has to be in what is read."),
            Header(RUN_ID, "The name under which a mutation happens once."),
        ),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/queries/{{name}}/if-graph-commit",
        operation="invokeQueryIfGraphCommit",
        tag="queries",
        summary="Call a stored mutation if a commit is the head of its branch.",
        handle=invoke_conditionally,
        body=InvokeRequest,
        body_required=False,
        answers=(MutationBody,),
        fails=(412, *WRITE_FAILS),
        headers=(
            Header(IF_COMMIT, "The commit that has to be the head.", required=True),
            Header(RUN_ID, "The name under which it happens once."),
        ),
    ),
)
