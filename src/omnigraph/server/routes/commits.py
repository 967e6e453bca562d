"""Commits, and what each has changed."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.errors import NotFound, PolicyDenied
from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Link, Route
from omnigraph.server.routes.changes import FEED_FAILS, CommitChangesQuery, told_plainly
from omnigraph.server.routes.reads import FRESH, BranchQuery
from omnigraph.wire.changes import BlockBody
from omnigraph.wire.graphs import CommitBody, CommitsBody


async def listed(call: Call) -> Response:
    """The commits of a branch."""
    branch = call.branch_of(call.query(BranchQuery).branch)
    return answer(await call.read(lambda session: CommitsBody.of(session.commits.list(branch))))


async def one(call: Call) -> Response:
    """One commit."""
    commit_id = call.path["commit_id"]
    return answer(await call.read(lambda session: CommitBody.of(session.commits.get(commit_id))))


async def changes(call: Call) -> Response:
    """What a commit has changed, a page of it; a commit that is hidden is not there."""
    asked, commit_id = call.query(CommitChangesQuery, strictly=True), call.path["commit_id"]
    with told_plainly():
        try:
            page = await call.read(
                lambda session: BlockBody.of(
                    session.commits.changes(
                        commit_id,
                        kinds=asked.kind or None,
                        types=asked.type or None,
                        ops=asked.op or None,
                        limit=asked.limit,
                        page_token=asked.page_token,
                    )
                )
            )
        except (PolicyDenied, NotFound):
            raise NotFound(f"commit '{commit_id}' not found") from None
    return answer(page)


_NEWEST = (("commit_id", "$response.body#/commits/0/graph_commit_id"),)

ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/commits",
        operation="listCommits",
        tag="commits",
        summary="The commits of a branch, newest first.",
        handle=listed,
        query=BranchQuery,
        answers=(CommitsBody,),
        links=(
            Link("theNewest", "getCommit", _NEWEST),
            Link("itsChanges", "listCommitChanges", _NEWEST),
        ),
        headers=(FRESH,),
    ),
    Route(
        method="GET",
        path=f"{GRAPH}/commits/{{commit_id}}",
        operation="getCommit",
        tag="commits",
        summary="One commit, on whatever branch it is.",
        handle=one,
        answers=(CommitBody,),
    ),
    Route(
        method="GET",
        path=f"{GRAPH}/commits/{{commit_id}}/changes",
        operation="listCommitChanges",
        tag="changes",
        summary="What a commit has changed, with both images, in pages.",
        handle=changes,
        query=CommitChangesQuery,
        answers=(BlockBody,),
        fails=FEED_FAILS,
    ),
)
