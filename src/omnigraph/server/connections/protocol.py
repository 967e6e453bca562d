"""The protocol of a connection: what a client may do before it has asked for anything.

Owns how large the headers of a request may be and how long they may take, what is answered to what
is no request, and that nothing of a request is held that no route reads.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from omnigraph.server.connections.plain_parser import PlainParser
from omnigraph.server.connections.transport import PatientTransport
from omnigraph.server.settings import HEADER_BYTES, HEADER_SECONDS
from omnigraph.wire.body import encode
from omnigraph.wire.errors import ErrorBody

if TYPE_CHECKING:
    from httptools import HttpRequestParser
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class GuardedProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, with bounds on all that is not a request."""

    _patient: PatientTransport
    _reading: asyncio.TimerHandle | None = None
    _header_bytes = 0
    _idle_bytes = 0
    """What has come within a body that is none of it."""
    _is_in_headers = True
    _has_begun = False

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.parser = cast("HttpRequestParser", PlainParser(self))

    # -- the connection --------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._patient = PatientTransport(transport, self.loop, lambda: not self._has_begun)
        self.transport = cast("asyncio.Transport", self._patient)
        self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        self._patient.lost()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._patient.watch()

    def resume_writing(self) -> None:
        """It has taken most of it."""
        super().resume_writing()
        self._patient.moved()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, if it may; a client that sends too much is told and left."""
        if self._patient.is_leaving:
            self._patient.drop(data)
            return
        if self._is_in_headers:
            self._header_bytes += len(data)
            if self._header_bytes > HEADER_BYTES and not self._ends_headers(data):
                self._refuse(431, f"the headers of a request have at most {HEADER_BYTES} bytes")
                return
            super().data_received(data)
            return
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEADER_BYTES and not self._patient.is_leaving:
            self._refuse(431, f"there are more than {HEADER_BYTES} bytes behind the body")

    def _ends_headers(self, data: bytes) -> bool:
        """Whether the headers end within the bound: what follows them is a body."""
        end = data.find(b"\r\n\r\n")
        before = self._header_bytes - len(data)
        return end >= 0 and before + end <= HEADER_BYTES

    # -- a request -------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first bytes of a request: the rest has to come in time."""
        super().on_message_begin()
        self._has_begun = True
        if self._reading is None:
            self._wait_for_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; what is called so behind a body is dropped, since no route knows it."""
        if self._is_in_headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request has come; what follows is its body."""
        self._stop_waiting()
        self._is_in_headers = False
        self._idle_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Some of the body has come."""
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """All of it has come: what follows is another request."""
        self._has_begun = False
        self._is_in_headers = True
        self._header_bytes = 0
        super().on_message_complete()

    # -- what is no request ----------------------------------------------------------

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
        """Answer, unless an answer is under way, and leave."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and cycle.response_complete:
            cycle = None
        if cycle is None or not cycle.response_started:
            body = encode(ErrorBody(text, "bad_request"))
            lines: list[Any] = [
                b"HTTP/1.1 %d %s" % (status, _PHRASES[status]),
                b"content-type: application/json",
                b"content-length: %d" % len(body),
                b"connection: close",
                b"",
                body,
            ]
            self.transport.write(b"\r\n".join(lines))
        if cycle is not None:
            # Whoever was about to answer it need not any more.
            cycle.disconnected = True
            cycle.message_event.set()
        self._patient.leave()


_PHRASES = {
    400: b"Bad Request",
    408: b"Request Timeout",
    431: b"Request Header Fields Too Large",
}
