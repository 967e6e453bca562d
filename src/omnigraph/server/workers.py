"""Workers: the threads on which the engine runs, and how long somebody waits for them.

Owns the pools and what ends a call: its time limit, a client that is gone, the end of the server.
A read stops then; a write that was admitted goes on to its end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from omnigraph.errors import QueryCancelled
from omnigraph.server.answers import ClientGone, Refusal
from omnigraph.server.settings import STREAMS, Limits
from omnigraph.storage.budget import Budget
from omnigraph.storage.cancellation import Cancellation

_T = TypeVar("_T")


class Workers:
    """The threads of one process, apart for reads, writes and streams."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = limits.request_seconds
        self.readers = ThreadPoolExecutor(limits.read_threads, thread_name_prefix="read")
        self.writers = ThreadPoolExecutor(limits.writers, thread_name_prefix="write")
        self.streams = ThreadPoolExecutor(STREAMS, thread_name_prefix="stream")

    async def read(
        self,
        work: Callable[[], _T],
        cancellation: Cancellation,
        gone: asyncio.Future[None],
        until: float,
    ) -> _T:
        """Do something that only looks; it is told to stop when nobody waits any more."""
        loop = asyncio.get_running_loop()
        budget = Budget(max(until - loop.time(), 0.001), None, cancellation)

        def bounded() -> _T:
            if cancellation.is_cancelled:
                raise QueryCancelled("the request was over before it began")
            return budget.run(0, work)

        done = loop.run_in_executor(self.readers, copy_context().run, bounded)
        try:
            await asyncio.wait(
                (asyncio.ensure_future(done), gone),
                timeout=until - loop.time(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            cancellation.cancel()
            raise
        if done.done():
            return done.result()
        cancellation.cancel()
        done.add_done_callback(_seen)
        if gone.done():
            raise ClientGone
        raise self._too_late("narrow it down, or ask for less at once")

    def glance(self, work: Callable[[], _T]) -> asyncio.Future[_T]:
        """Look at something small for several who wait for it: none of them can stop it."""
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self.readers, copy_context().run, work)
        done.add_done_callback(_seen)
        return done

    async def write(self, work: Callable[[], _T], ended: Callable[[], None], until: float) -> _T:
        """Do something that changes a graph; it ends by itself, whoever waits for it."""
        loop = asyncio.get_running_loop()

        def whole() -> _T:
            try:
                return work()
            finally:
                ended()

        try:
            done = loop.run_in_executor(self.writers, copy_context().run, whole)
        except BaseException:
            ended()
            raise
        done.add_done_callback(_seen)
        await asyncio.wait({done}, timeout=until - loop.time())
        if done.done():
            return done.result()
        raise self._too_late(
            "the write goes on: look at the commits of the branch, or repeat it under the same "
            "Idempotency-Key"
        )

    async def step(self, work: Callable[[], _T]) -> _T:
        """Do one step of a stream."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.streams, copy_context().run, work)

    def close(self) -> None:
        """Take no more work, and wait for the writes that were admitted."""
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.streams.shutdown(wait=False, cancel_futures=True)
        self.writers.shutdown(wait=True)

    def _too_late(self, advice: str) -> Refusal:
        return Refusal(504, f"the request took longer than {self._seconds:g} s: {advice}")


def _seen(done: asyncio.Future[_T]) -> None:
    """What a call raises that nobody waits for is no mistake of the server."""
    if not done.cancelled():
        done.exception()
