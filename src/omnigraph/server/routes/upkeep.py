"""Looking after a served graph: its status, a round of maintenance, missing vectors."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
from starlette.responses import Response

from omnigraph.errors import BadRequest
from omnigraph.graph import Session
from omnigraph.server.answers import answer
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Route
from omnigraph.server.routes.changes import Seconds
from omnigraph.server.routes.writes import WRITE_FAILS, note_commit
from omnigraph.wire.health import MaintenanceBody
from omnigraph.wire.requests import EmbedRequest, MaintainRequest
from omnigraph.wire.results import EmbedBody
from omnigraph.wire.serving import ServedStatusBody, are_ready

_PAUSE = 0.5


class StatusQuery(msgspec.Struct, frozen=True):
    """A branch, and how long to wait until its indexes are ready."""

    branch: str | None = None
    wait: Seconds | None = None


async def status(call: Call) -> Response:
    """The health of the graph, and what its indexes cover."""
    asked = call.query(StatusQuery)
    branch = call.branch_of(asked.branch)
    wait = min(asked.wait or 0.0, call.server.limits.wait_seconds)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    call.until += wait
    while wait and loop.time() < until and not call.server.is_draining:
        indexes = await call.read(lambda session: session.index_status(branch))
        if are_ready(indexes):
            break
        await asyncio.wait({call.gone}, timeout=min(_PAUSE, max(until - loop.time(), 0.0)))

    def work(session: Session) -> ServedStatusBody:
        return ServedStatusBody.of_served(
            session.status(branch), session.index_status(branch), call.graph.location
        )

    return answer(await call.read(work))


async def maintain(call: Call) -> Response:
    """Do what is worth doing to keep the graph small and fast."""
    asked = await call.json(MaintainRequest)
    call.refuse_run_id()
    branch = None if asked.branch is None else call.branch_of(asked.branch)
    older = None if asked.older_than_secs is None else _span(asked.older_than_secs)
    done = await call.write(
        lambda session: MaintenanceBody.of(
            session.maintain(
                branch,
                max_seconds=asked.max_seconds,
                max_bytes=asked.max_bytes,
                keep=asked.keep,
                older_than=older,
                dry_run=asked.dry_run,
            ),
            call.graph.location,
        ),
        0,
        ("admin", branch, None),
    )
    return answer(done)


def _span(seconds: int) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise BadRequest("older_than_secs is too long") from None


async def embed(call: Call) -> Response:
    """Make the vectors of stored nodes that have none."""
    asked = await call.json(EmbedRequest)
    call.refuse_run_id()
    branch = call.branch_of(asked.branch)
    done = await call.write(
        lambda session: EmbedBody.of(
            session.embed(
                asked.type,
                asked.property,
                branch=branch,
                where=asked.where,
                only_missing=asked.only_missing,
                commit_rows=asked.commit_rows,
                engine="inline",
            )
        ),
        len(asked.where or ""),
        ("admin", branch, None),
        ("change", branch, None),
    )
    note_commit(call, None if done.commit is None else done.commit.graph_commit_id)
    return answer(done)


ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/status",
        operation="getStatus",
        tag="upkeep",
        summary="The health of the graph; with `wait` once its indexes are ready.",
        handle=status,
        query=StatusQuery,
        answers=(ServedStatusBody,),
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/maintain",
        operation="maintain",
        tag="upkeep",
        summary="Do what is worth doing to keep the graph small and fast.",
        handle=maintain,
        body=MaintainRequest,
        answers=(MaintenanceBody,),
        fails=WRITE_FAILS,
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/embed",
        operation="embed",
        tag="upkeep",
        summary="Make the vectors of stored nodes that have none, as one commit or several.",
        handle=embed,
        body=EmbedRequest,
        answers=(EmbedBody,),
        fails=WRITE_FAILS,
    ),
)
