"""The access log: one JSON object for each request.

Owns its fields and where it goes. Headers, bodies and query strings are never in it: there may be
secrets in them.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from omnigraph.wire.body import encode

if TYPE_CHECKING:
    from omnigraph.server.call import Call

_log = logging.getLogger("omnigraph.access")


def log_request(
    scope: Scope, call: Call | None, request_id: str, status: int, seconds: float
) -> Mapping[str, Any]:
    """Tell of a request that is over; 499 is one whose client was gone before."""
    client = scope.get("client")
    told = {
        "time": round(time.time(), 3),
        "request_id": request_id,
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "ms": round(seconds * 1000, 2),
        "actor": None if call is None else call.actor,
        "graph": None if call is None else call.graph_id,
        "operation": None if call is None else call.route.operation,
        "commit": None if call is None else call.commit,
        "client": None if client is None else client[0],
    }
    if _log.isEnabledFor(logging.INFO):
        _log.info("%s", encode(told).decode())
    return told


class _JsonLines(logging.Formatter):
    """Everything else that the server says, as JSON on one line."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return encode(said).decode()


_OF_SERVER = ("omnigraph.server", "uvicorn.error")
_OF_ACCESS = "omnigraph.access"


@contextmanager
def logs_as_before() -> Iterator[None]:
    """Give the logs back as they were: a process may do something else when it has served."""
    loggers = [logging.getLogger(name) for name in (*_OF_SERVER, _OF_ACCESS)]
    before = [(one, [*one.handlers], one.level, one.propagate) for one in loggers]
    try:
        yield
    finally:
        for logger, handlers, level, propagate in before:
            logger.handlers[:] = handlers
            logger.setLevel(level)
            logger.propagate = propagate


def log_to_stderr(*, with_access: bool = True) -> None:
    """Write the log of requests and that of the server to stderr, a line of JSON each."""
    lines, plain = logging.StreamHandler(sys.stderr), logging.StreamHandler(sys.stderr)
    lines.setFormatter(_JsonLines())
    for name in _OF_SERVER:
        _send(name, lines, logging.INFO)
    _send(_OF_ACCESS, plain, logging.INFO if with_access else logging.CRITICAL)


def _send(name: str, handler: logging.Handler, level: int) -> None:
    logger = logging.getLogger(name)
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
