"""Mutations, with and without a condition."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.graph import Session
from omnigraph.lang.source import Source
from omnigraph.server.answers import answer
from omnigraph.server.call import IF_COMMIT, RUN_ID, Call, decoded
from omnigraph.server.router import GRAPH, Header, Link, Route
from omnigraph.wire.body import encode
from omnigraph.wire.requests import ChangeRequest, MutateRequest
from omnigraph.wire.results import MutationBody

WRITE_FAILS = (409, 424, 429)
ONCE = Header(
    RUN_ID, "The name under which it happens once: the same again gives the first answer."
)

_COMMIT = (("commit_id", "$response.body#/commit/graph_commit_id"),)
MADE = (
    Link("theCommit", "getCommit", _COMMIT),
    Link("whatItChanged", "listCommitChanges", _COMMIT),
)


async def mutate(call: Call) -> Response:
    """Run a query that changes a branch."""
    refuse_condition(call)
    return await _run(call, None)


async def mutate_conditionally(call: Call) -> Response:
    """The same if the branch is where the caller thinks."""
    return await _run(call, expected_commit(call))


async def _run(call: Call, if_commit: str | None) -> Response:
    data = await call.data()
    call.require_content("application/json")
    asked = _decoded(data)
    return await run_mutation(
        call, asked.query, asked.name, asked.params, asked.branch, if_commit=if_commit
    )


def _decoded(data: bytes) -> MutateRequest:
    """The request under today's names or the older ones."""
    try:
        return decoded(data, MutateRequest)
    except BadRequest:
        try:
            return msgspec.json.decode(data, type=ChangeRequest).renamed
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        raise


async def run_mutation(
    call: Call,
    source: str | Source,
    name: str | None,
    params: dict[str, Any] | None,
    branch: str | None,
    *,
    if_commit: str | None,
) -> Response:
    """Run a mutation of a branch."""
    changed, run_id = call.branch_of(branch), call.run_id

    def work(session: Session) -> MutationBody:
        return MutationBody.of(
            session.mutate(source, name, params, branch=changed, if_commit=if_commit, run_id=run_id)
        )

    text = source.text if isinstance(source, Source) else source
    size = len(text) + len(encode(params or {}))
    done = await call.write(work, size, ("change", changed, None))
    note_commit(call, None if done.commit is None else done.commit.graph_commit_id)
    return answer(done)


def note_commit(call: Call, commit_id: str | None) -> None:
    """Tell the log and the metrics what a call has made."""
    if commit_id is not None:
        call.commit = commit_id
        call.server.metrics.commit(call.graph.id)


def refuse_condition(call: Call) -> None:
    """A route without conditions must not ignore one."""
    if IF_COMMIT in call.headers:
        raise BadRequest(
            f"Omnigraph-If-Graph-Commit belongs to POST {call.scope['path']}/if-graph-commit"
        )


def expected_commit(call: Call) -> str:
    """The commit that has to be the head, given once and as it is."""
    found = call.headers.getlist(IF_COMMIT)
    if len(found) != 1:
        raise BadRequest("give the header Omnigraph-If-Graph-Commit once: the id of a commit")
    commit = found[0].strip()
    if not commit or not commit.isalnum() or not commit.isascii():
        raise BadRequest(
            "Omnigraph-If-Graph-Commit is the id of a commit as it is: no quotes, `*` or commas"
        )
    return commit


ROUTES = (
    Route(
        method="POST",
        path=f"{GRAPH}/mutate",
        operation="mutate",
        tag="mutations",
        summary="Run a query that changes a branch, as one commit.",
        handle=mutate,
        body=MutateRequest,
        answers=(MutationBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
        links=MADE,
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/mutate/if-graph-commit",
        operation="mutateIfGraphCommit",
        tag="mutations",
        summary="The same if a commit is the head of the branch.",
        handle=mutate_conditionally,
        body=MutateRequest,
        answers=(MutationBody,),
        fails=(412, *WRITE_FAILS),
        headers=(Header(IF_COMMIT, "The commit that has to be the head.", required=True), ONCE),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/change",
        operation="change",
        tag="mutations",
        summary="Run a query that changes a branch, under its older names.",
        handle=mutate,
        body=ChangeRequest,
        answers=(MutationBody,),
        fails=WRITE_FAILS,
        headers=(ONCE,),
        successor="mutate",
    ),
)
