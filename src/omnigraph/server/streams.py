"""Streams: answers of any length in constant memory.

Owns the room for streams of a process and how pieces go from a thread to a client: one at a time,
no faster than the client takes them, and none when it is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from omnigraph.server.answers import ClientGone, Refusal
from omnigraph.server.settings import STREAM_BYTES, STREAM_WAIT, STREAMS
from omnigraph.server.workers import Workers
from omnigraph.wire.errors import ResourceLimitBody

_log = logging.getLogger("omnigraph.server")


class StreamSlots:
    """How many streams a process sends at once, and which graphs are being exported."""

    def __init__(self) -> None:
        self._room = asyncio.Semaphore(STREAMS)
        self._exported: set[str] = set()

    async def reserve(self, graph_id: str) -> Callable[[], None]:
        """Room for the export of a graph; returns what gives it back."""
        try:
            async with asyncio.timeout(STREAM_WAIT):
                await self._room.acquire()
        except TimeoutError:
            limit = STREAMS * STREAM_BYTES
            raise _refusal("stream_export_transport_bytes", limit, limit + STREAM_BYTES) from None
        if graph_id in self._exported:
            self._room.release()
            raise _refusal("stream_export_slots", 1, 2)
        self._exported.add(graph_id)

        def give_back() -> None:
            if graph_id in self._exported:
                self._exported.remove(graph_id)
                self._room.release()

        return give_back

    def is_exported(self, graph_id: str) -> bool:
        """Whether an export of a graph is under way."""
        return graph_id in self._exported


def _refusal(resource: str, limit: int, actual: int) -> Refusal:
    return Refusal(
        413,
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        limit=ResourceLimitBody(resource, limit, actual),
    )


class Pieces:
    """Pieces that a thread makes; the first is made before anything is answered."""

    def __init__(self, workers: Workers, pieces: Iterator[bytes]) -> None:
        self._workers = workers
        self._pieces = pieces
        self._first: bytes | None = None

    async def begin(self) -> None:
        """Make the first piece: what fails now still has a status."""
        self._first = await self._workers.step(self._next)

    def _next(self) -> bytes | None:
        return next(self._pieces, None)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        piece = self._first
        self._first = None
        while piece is not None:
            yield piece
            piece = await self._workers.step(self._next)

    async def close(self) -> None:
        """Make no more of them."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            await asyncio.shield(self._workers.step(close))


class StreamAnswer(Response):
    """An answer that is sent while it is made."""

    def __init__(
        self,
        pieces: Pieces,
        media_type: str,
        headers: Mapping[str, str] | None = None,
        ended: Callable[[], None] = lambda: None,
        status: int = 200,
    ) -> None:
        self.media_type = media_type
        self.status_code = status
        self.background = None
        self.init_headers(headers)
        self._pieces = pieces
        self._ended = ended

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send it; a client that is gone, or takes nothing, ends it."""
        try:
            async with _while_connected(receive):
                await send(
                    {
                        "type": "http.response.start",
                        "status": self.status_code,
                        "headers": self.raw_headers,
                    }
                )
                async for piece in self._pieces:
                    for start in range(0, len(piece), STREAM_BYTES):
                        part = piece[start : start + STREAM_BYTES]
                        await send({"type": "http.response.body", "body": part, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ClientGone:
            pass
        finally:
            try:
                await self._pieces.close()
            finally:
                self._ended()


@asynccontextmanager
async def _while_connected(receive: Receive) -> AsyncIterator[None]:
    """Go on only while the client is there."""
    task = asyncio.current_task()
    is_gone = False

    async def watch() -> None:
        nonlocal is_gone
        while (await receive())["type"] != "http.disconnect":
            pass
        is_gone = True
        if task is not None:
            task.cancel()

    watching = asyncio.create_task(watch())
    try:
        yield
    except asyncio.CancelledError:
        if not is_gone or task is None:
            raise
        task.uncancel()
        raise ClientGone from None
    finally:
        watching.cancel()
