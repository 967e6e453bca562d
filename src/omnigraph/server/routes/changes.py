"""The change feed: polling it, waiting for what comes, and baselines to begin from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

import msgspec
from starlette.responses import Response

from omnigraph import errors
from omnigraph.history.feed import FeedPage
from omnigraph.server.answers import NDJSON, ClientGone, answer, status_of
from omnigraph.server.call import Call
from omnigraph.server.router import GRAPH, Link, Route
from omnigraph.server.streams import Pieces, StreamAnswer
from omnigraph.wire.changes import FeedBody
from omnigraph.wire.requests import BaselineRequest

FEED_FAILS = (409, 410)
_PAUSE = 0.1
"""How often somebody looks whether a branch has moved, in seconds."""
Kind = Literal["node", "edge"]
Op = Literal["insert", "update", "delete"]
Limit = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class CommitChangesQuery(msgspec.Struct, frozen=True):
    """Which changes of a commit, and how many of them."""

    limit: Limit | None = None
    page_token: str | None = None
    kind: list[Kind] = []
    type: list[str] = []
    op: list[Op] = []


class ChangesQuery(msgspec.Struct, frozen=True):
    """Where a reader stands, which changes it wants, and how long it waits for them."""

    branch: str | None = None
    cursor: str | None = None
    start: str | None = None
    page_token: str | None = None
    limit: Limit | None = None
    kind: list[Kind] = []
    type: list[str] = []
    op: list[Op] = []
    wait: Seconds | None = None


async def poll(call: Call) -> Response:
    """A page of the feed; with `wait` one that has something in it, if that comes in time."""
    asked = call.query(ChangesQuery, strictly=True)
    branch = call.branch_of(asked.branch)
    wait = min(asked.wait or 0.0, call.server.limits.wait_seconds)
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    call.until += wait
    head: str | None = None
    with told_plainly():
        while True:
            page = await _page(call, asked, branch)
            if page.blocks or page.cursor is None or not page.caught_up or loop.time() >= until:
                return answer(FeedBody.of(page))
            asked = msgspec.structs.replace(asked, cursor=page.cursor, start=None, page_token=None)
            if head is not None:
                await _until_it_moves(call, branch, head, until)
            # Asked for before the next page: what comes after it is in the page, or moves it.
            head = await call.server.heads.now(call.graph, branch)


async def _page(call: Call, asked: ChangesQuery, branch: str) -> FeedPage:
    return await call.read(
        lambda session: session.changes.poll(
            branch=branch,
            cursor=asked.cursor,
            start=asked.start,
            page_token=asked.page_token,
            kinds=asked.kind or None,
            types=asked.type or None,
            ops=asked.op or None,
            limit=asked.limit,
        )
    )


async def _until_it_moves(call: Call, branch: str, head: str, until: float) -> None:
    """Wait until a branch has another head; no thread waits with it."""
    loop, pause = asyncio.get_running_loop(), _PAUSE
    while loop.time() < until and not call.server.is_draining:
        await asyncio.wait({call.gone}, timeout=min(pause, max(until - loop.time(), 0.0)))
        if call.gone.done():
            raise ClientGone
        if await call.server.heads.now(call.graph, branch) != head:
            return
        pause = min(pause * 1.5, 1.0)


async def baseline(call: Call) -> Response:
    """All entities of a branch, and in the last line the cursor behind them."""
    asked = await call.json(BaselineRequest)
    branch = call.branch_of(asked.branch)
    call.require("export", branch)
    give_back = await call.server.slots.reserve(call.graph.id)
    try:
        with told_plainly():
            found = await call.read(
                lambda session: session.changes.baseline(
                    branch=branch,
                    kinds=asked.kind or None,
                    types=asked.type or None,
                    ops=asked.op or None,
                )
            )
            call.commit = found.snapshot_commit_id
            pieces = Pieces(call.server.workers, found.chunks())
            await pieces.begin()
    except BaseException:
        give_back()
        raise
    return StreamAnswer(pieces, NDJSON, ended=give_back)


@contextmanager
def told_plainly() -> Iterator[None]:
    """What fails inside is told in one sentence: texts of storage name files."""
    try:
        yield
    except errors.OmniGraphError as error:
        if status_of(error) != 500:
            raise
        raise errors.InternalError("internal error while reading changes") from error


ROUTES = (
    Route(
        method="GET",
        path=f"{GRAPH}/changes",
        operation="pollChanges",
        tag="changes",
        summary="What was committed to a branch since a cursor; with `wait` as soon as it is.",
        handle=poll,
        query=ChangesQuery,
        answers=(FeedBody,),
        links=(Link("goOn", "pollChanges", (("cursor", "$response.body#/cursor"),)),),
        fails=FEED_FAILS,
    ),
    Route(
        method="POST",
        path=f"{GRAPH}/changes/baseline",
        operation="captureChangeBaseline",
        tag="changes",
        summary="Everything a branch holds as NDJSON; the last line is the cursor behind it.",
        handle=baseline,
        body=BaselineRequest,
        content=("ndjson",),
        fails=FEED_FAILS,
    ),
)
