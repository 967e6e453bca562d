"""A parser that takes requests for what they are, whatever else their clients would like to speak.

Owns requests with an `Upgrade`: HTTP lets a server decline by answering as if nothing was said.
The parser below would take the body of such a request for another protocol and drop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from httptools import HttpParserUpgrade, HttpRequestParser

if TYPE_CHECKING:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING = (b"content-length", b"transfer-encoding")


class PlainParser:
    """What a protocol feeds with bytes, and is called back by."""

    def __init__(self, protocol: HttpToolsProtocol) -> None:
        self._protocol = protocol
        self.is_going_on = False
        """Whether it is within a body whose headers another parser has seen."""
        self._parser = self._new()

    def feed_data(self, data: bytes) -> None:
        """Parse what has come."""
        while True:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as offered:
                head = self._head_of_body()
                data = head + bytes(data[offered.args[0] :])
                self.is_going_on = bool(head)
                self._parser = self._new()
            else:
                return

    def get_http_version(self) -> str:
        """That of the request."""
        return self._parser.get_http_version()

    def get_method(self) -> bytes:
        """That of the request."""
        return self._parser.get_method()

    def should_keep_alive(self) -> bool:
        """Whether the client will ask again."""
        return self._parser.should_keep_alive()

    def should_upgrade(self) -> bool:
        """Never: nothing else is spoken here."""
        return False

    def _new(self) -> HttpRequestParser:
        parser = HttpRequestParser(_Events(self, self._protocol))
        # As the protocol has it: what follows a last request is not looked at.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    def complete(self) -> None:
        """A request has ended; one with an offer has not, if it has a body."""
        if not self.is_going_on and self._parser.should_upgrade() and self._head_of_body():
            return
        self.is_going_on = False
        self._protocol.on_message_complete()

    def _head_of_body(self) -> bytes:
        """The headers that say how long the body is, as a request of their own."""
        lines = [
            b"%s: %s\r\n" % header for header in self._protocol.headers if header[0] in _FRAMING
        ]
        return b"".join((b"POST / HTTP/1.1\r\n", *lines, b"\r\n")) if lines else b""


class _Events:
    """What a parser calls: the protocol, but for headers that it knows already."""

    def __init__(self, parser: PlainParser, protocol: HttpToolsProtocol) -> None:
        self._parser = parser
        self._protocol = protocol
        self.on_body = protocol.on_body
        self.on_message_complete = parser.complete

    def on_message_begin(self) -> None:
        if not self._parser.is_going_on:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if not self._parser.is_going_on:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._parser.is_going_on:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if not self._parser.is_going_on:
            self._protocol.on_headers_complete()
