"""Connections: what a client may do before it has asked for anything.

Owns how large the headers of a request may be and how long they may take. A request that is
complete is none of its business.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph.server.settings import HEADER_BYTES, HEADER_SECONDS
from omnigraph.wire.body import encode
from omnigraph.wire.errors import ErrorBody

LINGER_SECONDS = 1.0
"""How long a client that is refused may go on sending before nobody listens."""


class GuardedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, with bounds on what comes before a request."""

    _reading: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _is_in_headers = True
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count what belongs to headers; a client that sends too much of them is told and left."""
        if self._is_refused:
            return
        if self._is_in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES and not self._ends_headers(data):
                self._refuse(431, f"the headers of a request have at most {HEADER_BYTES} bytes")
                return
        super().data_received(data)

    def _ends_headers(self, data: bytes) -> bool:
        """Whether the headers end within the bound: what follows them is a body."""
        end = data.find(b"\r\n\r\n")
        before = self._header_bytes - len(data)
        return end >= 0 and before + end <= HEADER_BYTES

    def on_headers_complete(self) -> None:
        """The request has come; what follows is its body."""
        self._stop_waiting()
        self._is_in_headers = False
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request; between two of them uvicorn looks at the clock."""
        self._is_in_headers = True
        self._header_bytes = 0
        super().on_response_complete()

    def on_message_begin(self) -> None:
        """The first bytes of a request: the rest has to come in time."""
        super().on_message_begin()
        if self._reading is None:
            self._wait_for_headers()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP is answered as everything is."""
        self._refuse(400, msg)

    def _wait_for_headers(self) -> None:
        self._reading = self.loop.call_later(HEADER_SECONDS, self._too_slow)

    def _stop_waiting(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _too_slow(self) -> None:
        self._reading = None
        if not self.transport.is_closing():
            self._refuse(408, f"the headers of a request have to come within {HEADER_SECONDS:g} s")

    def _refuse(self, status: int, text: str) -> None:
        body = encode(ErrorBody(text, "bad_request"))
        lines: list[Any] = [
            b"HTTP/1.1 %d %s" % (status, _PHRASES[status]),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            b"",
            body,
        ]
        self._is_refused = True
        self.transport.write(b"\r\n".join(lines))
        # Closed at once, it would be reset, and the client might never read why.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


_PHRASES = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
}
