"""The application: every request from its path to its answer.

Owns the order of the checks (route, token, graph), what a failure becomes, and what is told of a
request in the log and the metrics. What a route does is its own.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Iterable

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from omnigraph.errors import OmniGraphError
from omnigraph.graph.guard import failure_of
from omnigraph.server.access_log import log_request
from omnigraph.server.admission import Admission
from omnigraph.server.answers import ClientGone, Refusal, error_answer
from omnigraph.server.call import Call
from omnigraph.server.heads import Heads
from omnigraph.server.maintenance import BackgroundMaintenance
from omnigraph.server.metrics import Metrics
from omnigraph.server.router import Route, Router
from omnigraph.server.routes import all_routes
from omnigraph.server.served import ServedGraphs, State, is_graph_id
from omnigraph.server.settings import Limits
from omnigraph.server.streams import StreamSlots
from omnigraph.server.tokens import Tokens
from omnigraph.server.tracing import request_span
from omnigraph.server.workers import Workers
from omnigraph.storage.objects.clock import new_id

_log = logging.getLogger("omnigraph.server")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_BEARER = "Bearer "


class Application:
    """What a server answers with: an ASGI application over the graphs that it serves."""

    def __init__(
        self,
        served: ServedGraphs,
        state: State,
        tokens: Tokens | None = None,
        limits: Limits | None = None,
        routes: Iterable[Route] | None = None,
    ) -> None:
        self.served = served if state == "open" else served.guarded()
        self.state = state
        self.tokens = Tokens() if tokens is None else tokens
        self.limits = Limits() if limits is None else limits
        self.router = Router(all_routes() if routes is None else routes)
        self.workers = Workers(self.limits)
        self.heads = Heads(self.workers)
        self.slots = StreamSlots()
        self.admission = Admission(self.limits.requests_per_actor, self.limits.bytes_per_actor)
        self.metrics = Metrics()
        self.maintenance = BackgroundMaintenance(
            self.served.graphs, self.limits.maintain_seconds, self.metrics
        )
        self.is_draining = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or live through the beginning and the end of the server."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if self.limits.maintain_seconds:
                    self.maintenance.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                self.is_draining = True
                await asyncio.to_thread(self.workers.close)
                await asyncio.to_thread(self.maintenance.stop, self.limits.drain_seconds)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.perf_counter()
        request_id, call, status = _request_id(scope), None, 499
        method: str = scope["method"]

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self.metrics.open_request(), request_span(scope) as finish_span:
            try:
                try:
                    route, names = self.router.find(method, scope["raw_path"])
                    call = Call(self, route, scope, receive, request_id)
                    call.path = names
                    response = await self._handle(call)
                except ClientGone:
                    return
                except Refusal as refusal:
                    response = refusal.response
                except OmniGraphError as error:
                    response = self._failed(error, request_id)
                except Exception as error:
                    found = failure_of(error, f"{method} {scope['path']}")
                    if found is None:
                        raise
                    _log.exception("request %s failed", request_id)
                    response = error_answer(found)
                self._finish(response, scope, call, request_id)
                await response(scope, receive, counted)
            finally:
                if call is not None:
                    call.end()
                seconds = time.perf_counter() - started
                self.metrics.request(None if call is None else call.route, method, status, seconds)
                told = log_request(scope, call, request_id, status, seconds)
                finish_span(method if call is None else call.route.operation, told)

    async def _handle(self, call: Call) -> Response:
        """Token, graph, and then what the route does."""
        if self.state == "open":
            _refuse_other_sites(call)
        elif not call.route.is_public:
            call.actor = self._actor(call)
        if call.route.is_of_graph:
            graph_id = call.path["graph_id"]
            if not is_graph_id(graph_id):
                raise Refusal(400, f"a graph cannot be called {graph_id!r:.80}")
            graph = self.served.graphs.get(graph_id)
            if graph is None:
                raise Refusal(404, f"graph '{graph_id}' not found")
            call.graph = graph
        return await call.route.handle(call)

    def _actor(self, call: Call) -> str:
        given = call.headers.getlist("authorization")
        if len(given) != 1 or not given[0].startswith(_BEARER):
            raise _unauthorized("missing bearer token")
        actor = self.tokens.actor_of(given[0].removeprefix(_BEARER).strip())
        if actor is None:
            raise _unauthorized("invalid bearer token")
        return actor

    def _failed(self, error: OmniGraphError, request_id: str) -> Response:
        response = error_answer(error)
        if response.status_code == 500:
            _log.error("request %s failed: %s", request_id, error, exc_info=error)
        return response

    def _finish(self, response: Response, scope: Scope, call: Call | None, request_id: str) -> None:
        response.headers["X-Request-Id"] = request_id
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        if (call is None or not call.is_read) and _has_body(scope):
            # Whoever may still be sending is told that nobody listens.
            response.headers["Connection"] = "close"
        if call is not None and call.route.successor is not None:
            response.headers["Deprecation"] = "true"
            response.headers["Link"] = f'<{call.route.successor}>; rel="successor-version"'


def _refuse_other_sites(call: Call) -> None:
    """Where nobody needs a token, a page of another site must not write through a browser here."""
    origin = call.headers.get("origin")
    if origin is None or call.route.method in ("GET", "HEAD"):
        return
    if origin.partition("://")[2].lower() != call.headers.get("host", "").lower():
        raise Refusal(400, "a page of another site cannot ask for this where nobody needs a token")


def _unauthorized(text: str) -> Refusal:
    return Refusal(401, text, headers={"WWW-Authenticate": "Bearer"})


def _has_body(scope: Scope) -> bool:
    """Whether something follows the headers of a request."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )


def _request_id(scope: Scope) -> str:
    """The id that a proxy gave the request, if it can be written anywhere; else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(text):
                return text
    return new_id()
