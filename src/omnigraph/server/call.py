"""A call: one request on its way through the server.

Owns reading what was asked and running the engine for it, in the order of checks that the
contract has. Knows no route.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers

from omnigraph.errors import BadRequest, NotFound, PolicyDenied
from omnigraph.graph import Action, Session
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.server.answers import ClientGone, Refusal
from omnigraph.server.router import Route
from omnigraph.server.settings import BODY_LIMIT, BODY_RATE, BODY_SECONDS
from omnigraph.storage.cancellation import Cancellation
from omnigraph.wire.errors import ResourceLimitBody

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

    from omnigraph.server.app import Application
    from omnigraph.server.served import ServedGraph

_T = TypeVar("_T")
_Q = TypeVar("_Q", bound=msgspec.Struct)
Need = tuple[Action, str | None, str | None]
IF_COMMIT = "omnigraph-if-graph-commit"
MIN_COMMIT = "omnigraph-min-commit"
RUN_ID = "idempotency-key"
LARGE = 1 << 18
"""A body of more bytes is not decoded where everybody waits for it."""


class Call:
    """One request: who asks, for which graph, and until when."""

    def __init__(
        self, server: Application, route: Route, scope: Scope, receive: Receive, request_id: str
    ) -> None:
        self.server = server
        self.route = route
        self.scope = scope
        self.request_id = request_id
        self.path: Mapping[str, str] = {}
        self.actor: str | None = None
        self.commit: str | None = None
        """The commit that was read or made, for the log."""
        self.cancellation = Cancellation()
        self.until = asyncio.get_running_loop().time() + server.limits.request_seconds
        self._receive = receive
        self._graph: ServedGraph | None = None
        self._gone: asyncio.Future[None] | None = None
        self.is_read = False
        """Whether all of its body was read."""

    @cached_property
    def headers(self) -> Headers:
        """What the client said beside its body."""
        return Headers(scope=self.scope)

    @property
    def graph(self) -> ServedGraph:
        """The graph that the path names."""
        if self._graph is None:
            raise LookupError(f"{self.route.path} is about no graph")
        return self._graph

    @graph.setter
    def graph(self, found: ServedGraph) -> None:
        self._graph = found

    @property
    def graph_id(self) -> str | None:
        """Its id, for the log."""
        return None if self._graph is None else self._graph.id

    # -- what was asked --------------------------------------------------------------

    async def data(self, limit: int = BODY_LIMIT, resource: str = "request_bytes") -> bytes:
        """The whole body, if it is no larger than the limit."""
        stated = self.headers.get("content-length", "")
        if stated.isdecimal() and int(stated) > limit:
            raise _too_large(resource, limit, int(stated))
        pieces, size = [], 0
        clock = asyncio.get_running_loop().time
        begun = clock()
        while True:
            late = begun + BODY_SECONDS + size / BODY_RATE
            message = await self._message(min(BODY_SECONDS, late - clock()))
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _too_large(resource, limit, size)
            pieces.append(piece)
            if not message.get("more_body", False):
                self.is_read = True
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _message(self, seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(
                408,
                f"the body comes too slowly: within {BODY_SECONDS:g} s there has to be a piece of "
                f"it, and in the end {BODY_RATE:,} bytes a second",
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        return message

    async def json(self, asked: type[_T], limit: int = BODY_LIMIT) -> _T:
        """The body as a request."""
        data = await self.data(limit)
        self.require_content("application/json")
        if len(data) < LARGE:
            return decoded(data, asked)
        return await self.ask(lambda: decoded(data, asked))

    def require_content(self, wanted: str) -> None:
        """Refuse a body of another type; parameters may follow it."""
        found = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if found != wanted:
            raise Refusal(415, f"the body has to be {wanted}: say so in Content-Type")

    def query(self, asked: type[_Q], *, strictly: bool = False) -> _Q:
        """The parameters of the query string; one that has a single value is given once."""
        known = {field.encode_name: field for field in msgspec.structs.fields(asked)}
        found: dict[str, Any] = {}
        text = self.scope["query_string"].decode("latin-1")
        try:
            pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
        except (ValueError, UnicodeDecodeError):
            raise BadRequest(
                "the query string cannot be read: it is UTF-8 text, with at most 1,000 parameters"
            ) from None
        for name, value in pairs:
            if name not in known:
                if strictly:
                    raise BadRequest(f"there is no parameter {name!r:.60} here")
            elif "list" in str(known[name].type):
                found.setdefault(name, []).append(value)
            elif name in found:
                raise BadRequest(f"the parameter {name!r} is given twice")
            else:
                found[name] = value
        try:
            return msgspec.convert(found, asked, strict=False)
        except (msgspec.ValidationError, ValueError) as error:
            raise BadRequest(f"query string: {error}") from None

    def branch_of(self, name: str | None) -> str:
        """The normal name of a branch, main if there is none: normalised once, before anything."""
        return MAIN if name is None else normalise_branch(name)

    @property
    def run_id(self) -> str | None:
        """The name under which a write happens once."""
        found = self.headers.getlist(RUN_ID)
        if len(found) > 1:
            raise BadRequest("Idempotency-Key is given twice")
        return found[0] if found else None

    def refuse_run_id(self) -> None:
        """For a write that cannot be repeated safely: say so, and do not do it."""
        if RUN_ID in self.headers:
            raise BadRequest(f"{self.route.path} takes no Idempotency-Key")

    # -- doing it --------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The graph as the actor uses it."""
        return self.graph.session(self.actor)

    def require(self, action: Action, branch: str | None = None, target: str | None = None) -> None:
        """Refuse what the policy of the graph does not allow."""
        self.graph.require(self.actor, action, branch, target)

    def require_all(self, needs: Iterable[Need]) -> None:
        """Refuse what any of several needs is not allowed."""
        for need in needs:
            self.require(*need)

    async def read(self, work: Callable[[Session], _T]) -> _T:
        """Run something that looks at the graph."""
        session, wanted = self.session, self.headers.get(MIN_COMMIT)
        if wanted is None:
            return await self._look(lambda: work(session))

        def freshly() -> _T:
            # Every read asks storage what is newest: a commit that is there is shown. Whoever
            # may not read is told that first.
            is_there = self._shows(wanted)
            found = work(session)
            if not is_there:
                raise NotFound(f"there is no commit {wanted}")
            return found

        return await self._look(freshly)

    def _shows(self, commit_id: str) -> bool:
        """Whether there is a commit, as far as the actor may know."""
        try:
            branch = self.graph.graph.commits.get(commit_id).branch or MAIN
            self.require("read", branch)
        except (NotFound, PolicyDenied):
            return False
        return True

    async def _look(self, work: Callable[[], _T]) -> _T:
        return await self.server.workers.read(work, self.cancellation, self.gone, self.until)

    async def ask(self, work: Callable[[], _T]) -> _T:
        """Run something short that decides whether the call goes on."""
        return await self._look(work)

    async def write(
        self,
        work: Callable[[Session], _T],
        size: int,
        *needs: Need,
    ) -> _T:
        """Run something that changes the graph, once its policy and the limits allow it."""
        session = self.session
        if self.graph.policy is not None:
            await self.ask(lambda: self.require_all(needs))
        ended = self.server.admission.admit(self.actor, size)
        return await self.server.workers.write(lambda: work(session), ended, self.until)

    @property
    def gone(self) -> asyncio.Future[None]:
        """Done when the client is gone; while its body is still to be read, nobody listens."""
        if self.route.body is not None and not self.is_read:
            return asyncio.get_running_loop().create_future()
        if self._gone is None:
            self._gone = asyncio.ensure_future(self._disconnected())
        return self._gone

    async def _disconnected(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def end(self) -> None:
        """Wait for the client no more."""
        if self._gone is not None:
            self._gone.cancel()


Handler = Callable[[Call], Awaitable[Any]]


def decoded(data: bytes, asked: type[_T]) -> _T:
    """A body as what it has to be."""
    try:
        return msgspec.json.decode(data, type=asked)
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"body: {error}") from None


def _too_large(resource: str, limit: int, actual: int) -> Refusal:
    return Refusal(
        413,
        f"resource limit exceeded for {resource}: actual {actual}, limit {limit}",
        limit=ResourceLimitBody(resource, limit, actual),
    )
