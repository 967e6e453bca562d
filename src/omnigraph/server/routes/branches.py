"""Branches: listing, making, deleting and merging them."""

from __future__ import annotations

from starlette.responses import Response

from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Link, Route
from omnigraph.server.routes.writes import ONCE, note_commit
from omnigraph.wire.graphs import BranchCreatedBody, BranchDeletedBody, BranchesBody, MergeBody
from omnigraph.wire.requests import BranchCreateRequest, BranchMergeRequest

_SIZE = 256
"""What a call about branches counts for."""
_FAILS = (409, 429)


async def listed(call: Call) -> Response:
    """The names of all branches."""
    return answer(BranchesBody(await call.read(lambda session: session.branches.list())))


async def create(call: Call) -> Response:
    """Make a branch."""
    asked = await call.json(BranchCreateRequest)
    call.refuse_run_id()
    name, base = call.branch_of(asked.name), call.branch_of(asked.from_)
    made = await call.write(
        lambda session: session.branches.create(name, base), _SIZE, ("branch_create", base, name)
    )
    return answer(BranchCreatedBody(call.graph.location, base, made, call.actor))


async def delete(call: Call) -> Response:
    """Delete a branch."""
    call.refuse_run_id()
    name = call.branch_of(call.path["branch"])
    gone = await call.write(
        lambda session: session.branches.delete(name), _SIZE, ("branch_delete", None, name)
    )
    return answer(BranchDeletedBody(call.graph.location, gone, call.actor))


async def merge(call: Call) -> Response:
    """Merge a branch into another."""
    asked = await call.json(BranchMergeRequest)
    source, target, run_id = call.branch_of(asked.source), call.branch_of(asked.target), call.run_id
    done = await call.write(
        lambda session: MergeBody.of(
            session.branches.merge(source, target, delete_source=asked.delete_branch, run_id=run_id)
        ),
        _SIZE,
        ("branch_merge", source, target),
    )
    note_commit(call, None if done.commit is None else done.commit.graph_commit_id)
    return answer(done)


ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/branches",
        operation="listBranches",
        tag="branches",
        summary="The names of all branches, sorted.",
        handle=listed,
        answers=(BranchesBody,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/branches",
        operation="createBranch",
        tag="branches",
        summary="Make a branch from the head of another.",
        handle=create,
        body=BranchCreateRequest,
        answers=(BranchCreatedBody,),
        fails=_FAILS,
        links=(Link("deleteIt", "deleteBranch", (("branch", "$response.body#/name"),)),),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/branches/merge",
        operation="mergeBranches",
        tag="branches",
        summary="Merge a branch into another, as one commit.",
        handle=merge,
        body=BranchMergeRequest,
        answers=(MergeBody,),
        fails=_FAILS,
        headers=(ONCE,),
    ),
    Route(
        method="DELETE",
        path=f"{GRAPH}/branches/{{branch}}",
        operation="deleteBranch",
        tag="branches",
        summary="Delete a branch; a slash in its name is written %2F.",
        handle=delete,
        answers=(BranchDeletedBody,),
        fails=_FAILS,
    ),
)
