"""A proxy that carries the calls of a session onto a bounded pool of threads.

Owns the threads and what becomes of a call whose caller is cancelled. Knows no method by its
name: what a session offers, and needs, it is asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property, partial, wraps
from inspect import getattr_static, isgeneratorfunction, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from omnigraph.errors import BadRequest
from omnigraph.storage.cancellation import Cancellation

if TYPE_CHECKING:
    from omnigraph import graph
    from omnigraph.graph import Policy

THREADS = 8
MOST_THREADS = 1_000
PULL_SECONDS = 0.005
"""How long a thread collects items of a stream before it hands them over."""

_T = TypeVar("_T")


class Threads:
    """The threads of one graph; a call that finds none free waits for one."""

    def __init__(self, count: int) -> None:
        if type(count) is not int or not 1 <= count <= MOST_THREADS:
            raise BadRequest(
                f"a graph needs at least one thread, and {MOST_THREADS:,} at the most: "
                f"not {count!r:.60}"
            )
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="omnigraph")
        self._is_closed = False

    async def run(self, work: Callable[[], _T]) -> _T:
        """Do something on a thread; what has not begun when the caller is cancelled never does."""
        if self._is_closed:
            raise BadRequest("the graph is closed: open it again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, copy_context().run, work)

    def close(self) -> None:
        """Take no more work; what runs ends by itself."""
        self._is_closed = True
        self._pool.shutdown(wait=False)


class LinkedCancellation(Cancellation):
    """A switch that is turned by itself or with the one its caller brought along."""

    def __init__(self, other: Cancellation | None) -> None:
        super().__init__()
        if not isinstance(other, Cancellation | None):
            raise BadRequest(f"a cancellation is a Cancellation, not a {type(other).__name__}")
        self._other = other

    @property
    def is_cancelled(self) -> bool:
        """Whether either was turned."""
        return super().is_cancelled or (self._other is not None and self._other.is_cancelled)


class Proxy:
    """A session or one of its namespaces: what reads or changes the graph is awaited."""

    def __init__(self, target: Any, threads: Threads) -> None:
        self._target = target
        self._threads = threads

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = getattr_static(type(self._target), name, None)
        if isinstance(found, property) and hasattr(found.fget, "needs"):
            return self._run(partial(getattr, self._target, name))
        value = getattr(self._target, name)
        if hasattr(found, "needs"):
            return self._awaited(value)
        from omnigraph.graph.access import Surface

        return Proxy(value, self._threads) if isinstance(value, Surface) else value

    def _awaited(self, method: Callable[..., Any]) -> Callable[..., Any]:
        can_be_stopped = "cancellation" in signature(method).parameters

        @wraps(method)
        async def call(*args: Any, **named: Any) -> Any:
            if not can_be_stopped:
                return await self._run(partial(method, *args, **named))
            switch = LinkedCancellation(named.pop("cancellation", None))
            try:
                return await self._run(partial(method, *args, cancellation=switch, **named))
            except asyncio.CancelledError:
                switch.cancel()
                raise

        return call

    async def _run(self, work: Callable[[], Any]) -> Any:
        from omnigraph.history.diff import Diff
        from omnigraph.read.output.blobs import Blob

        found = await self._threads.run(work)
        return Stream(found, self._threads) if isinstance(found, (Iterator, Diff, Blob)) else found

    def __dir__(self) -> list[str]:
        public = (name for name in dir(self._target) if not name.startswith("_"))
        return sorted({*super().__dir__(), *public})

    def __repr__(self) -> str:
        return f"<async {self._target!r}>"


class Stream(AsyncIterator[_T]):
    """A result that goes on reading while it is looked at: lines, changes, bytes."""

    def __init__(self, target: Any, threads: Threads) -> None:
        self._target = target
        self._threads = threads
        self._ready: deque[_T] = deque()

    def __aiter__(self) -> Stream[_T]:
        """Itself; what can be gone through several times begins again."""
        if isinstance(self._target, Iterator):
            return self
        return Stream(iter(self._target), self._threads)

    async def __anext__(self) -> _T:
        if not self._ready:
            self._ready.extend(await self._threads.run(self._pull))
        if not self._ready:
            raise StopAsyncIteration
        return self._ready.popleft()

    def _pull(self) -> list[_T]:
        """What is there within a moment; only at the end nothing."""
        until = time.monotonic() + PULL_SECONDS
        found: list[_T] = []
        for item in self._target:
            found.append(item)
            if time.monotonic() > until:
                break
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        found = getattr_static(type(self._target), name, None)
        if isinstance(found, (property, cached_property)):
            return self._threads.run(partial(getattr, self._target, name))
        value = getattr(self._target, name)
        if isgeneratorfunction(found):
            return lambda *args, **named: Stream(value(*args, **named), self._threads)
        if callable(value):
            return lambda *args, **named: self._threads.run(partial(value, *args, **named))
        return value


class Session(Proxy):
    """A graph as one actor uses it."""

    async def close(self) -> None:
        """Let go of what is held; safe to forget."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Graph(Session):
    """An opened graph, and the threads that all its sessions share."""

    def as_actor(self, actor: str, policy: Policy | None = None) -> Session:
        """The graph as somebody uses it, who may do what a policy allows, or everything."""
        return Session(self._target.as_actor(actor, policy), self._threads)

    async def close(self) -> None:
        """Let go of what is held, the threads included; what still runs on them ends by itself."""
        self._threads.close()
        self._target.close()


class Opening:
    """A graph that is being opened: to be awaited, or entered."""

    def __init__(self, work: Callable[[], graph.Graph], threads: int) -> None:
        self._work = work
        self._threads = Threads(threads)
        self._graph: Graph | None = None

    def __await__(self) -> Generator[Any, None, Graph]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Graph:
        self._graph = Graph(await self._threads.run(self._work), self._threads)
        return self._graph

    async def __aexit__(self, *_: object) -> None:
        if self._graph is not None:
            await self._graph.close()


def init(
    location: str | Path,
    schema: str | Path,
    *,
    force: bool = False,
    actor: str | None = None,
    threads: int = THREADS,
) -> Opening:
    """Make a graph and open it; ``schema`` is the path of a `.pg` file, or its text.

    >>> import asyncio
    >>> from omnigraph import aio
    >>> async def names():
    ...     async with aio.init("club.omni", "node Member { name: String @key }") as graph:
    ...         return await graph.branches.list()
    >>> asyncio.run(names())
    ['main']
    """

    def work() -> graph.Graph:
        from omnigraph import graph

        return graph.init(location, schema, force=force, actor=actor)

    return Opening(work, threads)


def open(  # noqa: A001 - the word everybody expects: `aio.open`
    location: str | Path,
    *,
    read_only: bool = False,
    actor: str | None = None,
    threads: int = THREADS,
) -> Opening:
    """Open a graph; its calls run on so many ``threads`` at the most.

    >>> import asyncio
    >>> from omnigraph import aio
    >>> async def names():
    ...     async with aio.open("film.omni") as graph:
    ...         return await graph.branches.list()
    >>> asyncio.run(names())
    ['draft', 'main']
    """

    def work() -> graph.Graph:
        from omnigraph import graph

        return graph.open(location, read_only=read_only, actor=actor)

    return Opening(work, threads)
