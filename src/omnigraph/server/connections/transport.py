"""The transport of a connection: how it is closed, and for whom nobody waits.

Owns two things that a plain transport leaves to its peer. A client that is answered before it
has sent everything is heard out for a while: closed at once, the connection would be reset, and
the client would never read why. And a client that takes too little of what it is sent is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from omnigraph.server.settings import (
    LINGER_BYTES,
    LINGER_SECONDS,
    LONGEST_LINGER,
    SEND_BYTES,
    SEND_SECONDS,
)


class PatientTransport:
    """What a protocol writes to and closes."""

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        is_heard: Callable[[], bool],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._is_heard = is_heard
        """Whether the client has sent all that it has begun."""
        self.is_leaving = False
        """Whether what comes now is for nobody."""
        self._until = 0.0
        self._dropped = 0
        self._leaving: asyncio.TimerHandle | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._unsent = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send something, unless it was said that there is no more."""
        if self.is_leaving:
            return
        self._transport.write(data)

    def is_closing(self) -> bool:
        """Whether nothing more will be answered."""
        return self.is_leaving or self._transport.is_closing()

    # -- closing ---------------------------------------------------------------------

    def close(self) -> None:
        """Close it; a client that is still sending is heard out first."""
        if self.is_leaving or self._transport.is_closing():
            return
        if self._is_heard():
            self._close()
        else:
            self.leave()

    def leave(self) -> None:
        """Say that there is no more, and listen a little longer."""
        self.is_leaving = True
        self._until = self._loop.time() + LONGEST_LINGER
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._transport.resume_reading()
        self._leaving = self._loop.call_later(LINGER_SECONDS, self._close)

    def drop(self, data: bytes) -> None:
        """What a client says that nobody listens to any more."""
        self._dropped += len(data)
        left = min(LINGER_SECONDS, self._until - self._loop.time())
        self._cancel_leaving()
        if left <= 0 or self._dropped > LINGER_BYTES:
            self._transport.abort()
        else:
            self._leaving = self._loop.call_later(left, self._close)

    def _close(self) -> None:
        self._leaving = None
        if not self._transport.is_closing():
            self._transport.close()
        self.watch()

    def lost(self) -> None:
        """It is gone: wait for nothing."""
        self._cancel_leaving()
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    def _cancel_leaving(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    # -- sending ---------------------------------------------------------------------

    def watch(self) -> None:
        """See that the client takes what waits to be sent."""
        if self._watching is None and self._transport.get_write_buffer_size():
            self._look_later()

    def moved(self) -> None:
        """The client has taken something."""
        self._unsent = 1 << 62

    def _look_later(self) -> None:
        self._unsent = self._transport.get_write_buffer_size()
        self._watching = self._loop.call_later(SEND_SECONDS, self._look)

    def _look(self) -> None:
        self._watching = None
        unsent = self._transport.get_write_buffer_size()
        if not unsent:
            return
        if self._unsent - unsent < SEND_BYTES:
            self._transport.abort()
        else:
            self._look_later()
