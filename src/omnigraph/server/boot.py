"""Booting: from a source of graphs to a server that answers, and to its end.

Owns the socket, the processes and the signals. On the first the server ends what it is doing and
takes no more; after the time for that, what is left is cancelled.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.supervisors.multiprocess import Multiprocess, Process

from omnigraph.errors import BadRequest
from omnigraph.server.access_log import log_to_stderr, logs_as_before
from omnigraph.server.connections.protocol import GuardedProtocol
from omnigraph.server.served import GraphSource, State, state_of
from omnigraph.server.settings import Limits
from omnigraph.server.tokens import Tokens

if TYPE_CHECKING:
    from omnigraph.server.app import Application

DEFAULT_BIND = "127.0.0.1:8080"
BACKLOG = 2048
_log = logging.getLogger("omnigraph.server")
SWITCH_SECONDS = 0.0005
"""How long a thread that computes keeps the event loop waiting for its turn; by itself Python
lets it wait ten times as long, and with that every small answer waits for a large one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """What a server is started with; each of its processes makes an application of it."""

    source: GraphSource
    tokens: Tokens
    limits: Limits
    unauthenticated: bool = False
    with_access_log: bool = True

    def __call__(self) -> Application:
        """The application, with its graphs opened."""
        from omnigraph.server.app import Application

        log_to_stderr(with_access=self.with_access_log)
        sys.setswitchinterval(SWITCH_SECONDS)
        served = self.source.open()
        if not served.graphs:
            raise BadRequest("there is no graph that could be served")
        for id_, reason in served.quarantined.items():
            _log.warning("graph %s is not served: %s", id_, reason)
        return Application(served, self.state(served.has_policies), self.tokens, self.limits)

    def state(self, has_policies: bool) -> State:  # noqa: FBT001 - the one thing it depends on
        """The state it boots into."""
        return state_of(
            has_tokens=bool(self.tokens),
            has_policies=has_policies,
            unauthenticated=self.unauthenticated,
        )


class _Server(uvicorn.Server):
    """A server that is ended by a signal and not killed by it."""

    def handle_exit(self, _: int, __: FrameType | None) -> None:
        """The first signal ends it in order; another one at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        app = getattr(self.config, "loaded_app", None)
        if app is not None:
            app.is_draining = True


def serve(boot: Boot, bind: str, *, workers: int = 1) -> int:
    """Serve until a signal comes; returns the exit code."""
    with ExitStack() as stack:
        stack.enter_context(logs_as_before())
        if workers > 1:
            # Read by the prometheus client when it is imported, in every process.
            shared = stack.enter_context(tempfile.TemporaryDirectory(prefix="omnigraph-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = shared
        # Also where others answer: what cannot be served is told before anything listens.
        app = boot()
        listening = stack.enter_context(_listen(bind))
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        sys.stdout.write(f"OMNIGRAPH_LISTEN_ADDR={shown}:{port}\n")
        sys.stdout.flush()
        if workers == 1:
            _Server(config_of(boot, app)).run([listening])
            return 0
        del app
        _Processes(config_of(boot, boot, workers=workers, factory=True), [listening]).run()
    return 0


class _Process(Process):
    """One of several processes; it ends with the one that started it."""

    @property
    def server(self) -> uvicorn.Server:
        """The server that it runs."""
        if self._server is None:
            self._server = _Server(self.config)
        return self._server

    def always_pong(self) -> None:
        """Say that it lives, for as long as somebody asks."""
        try:
            super().always_pong()
        except (EOFError, OSError):
            os.kill(os.getpid(), signal.SIGTERM)


class _Processes(Multiprocess):
    """Several processes that answer on one socket; one that dies is replaced."""

    def init_processes(self) -> None:
        """Start all of them."""
        self.processes = [self._started() for _ in range(self.processes_num)]

    def keep_subprocess_alive(self) -> None:
        """Replace those that have died."""
        from omnigraph.server.metrics import forget_process

        for place, process in enumerate(self.processes):
            if not self.should_exit.is_set() and not process.process.is_alive():
                process.join()
                forget_process(process.pid or 0)
                self.processes[place] = self._started()

    def _started(self) -> Process:
        process = _Process(self.config, self.sockets)
        process.start()
        return process


def config_of(boot: Boot, app: Any, **more: Any) -> uvicorn.Config:
    """How uvicorn is to run an application."""
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(boot.limits.keep_alive_seconds),
        timeout_graceful_shutdown=int(boot.limits.drain_seconds),
        **more,
    )


def _listen(bind: str) -> socket.socket:
    host, _, port = bind.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535:
        raise BadRequest(f"cannot listen on {bind!r:.80}: write it as host:port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, int(port)))
        found.listen(BACKLOG)
        found.set_inheritable(True)
    except OSError as error:
        found.close()
        raise BadRequest(f"cannot listen on {bind}: {error.strerror or error}") from error
    return found


def boot_from(
    source: GraphSource, environment: Mapping[str, str], *, unauthenticated: bool
) -> Boot:
    """A boot with the tokens and the limits of an environment."""
    return Boot(
        source=source,
        tokens=Tokens.from_environment(environment),
        limits=Limits.of(environment),
        unauthenticated=unauthenticated,
    )


__all__ = ["DEFAULT_BIND", "Boot", "boot_from", "config_of", "serve"]
