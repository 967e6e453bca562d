"""The connection to remote providers: one request and what came back, as plain data.

Owns the HTTP client of this process, the only one that imports its library. Nothing of
the library leaves this module: its errors hold the request, and that holds the key.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from omnigraph.errors import EmbeddingError
from omnigraph.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

# A hundred vectors of a few thousand numbers, spelled out, are a tenth of this.
MAX_BYTES = 128 << 20
_connecting = Lock()


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, good or bad; ``retry_after`` is in seconds."""

    status: int
    body: bytes
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class NoReply:
    """Why there is no answer."""

    reason: str


def post(url: str, headers: Mapping[str, str], body: bytes, timeout: float) -> Reply | NoReply:
    """Send JSON and read the answer; redirects are not followed, they would take the key along."""
    import httpx2

    until = monotonic() + timeout
    headers = {**headers, "content-type": "application/json"}
    try:
        with _client().stream(
            "POST", url, content=body, headers=headers, timeout=timeout
        ) as response:
            parts = []
            size = 0
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > MAX_BYTES:
                    return NoReply(f"its answer is larger than {MAX_BYTES >> 20} MiB")
                # The library's own limit is for each part of an answer.
                if monotonic() > until:
                    return NoReply(_slow(timeout))
            after = _retry_after(response.headers.get("retry-after"))
            return Reply(response.status_code, b"".join(parts), after)
    except httpx2.TimeoutException:
        return NoReply(_slow(timeout))
    except httpx2.RequestError as error:
        return NoReply(str(error) or type(error).__name__)


def _slow(timeout: float) -> str:
    return f"no answer within {timeout:.3g} s"


def _retry_after(text: str | None) -> float | None:
    """Seconds, however they are spelled: as a number or as a moment."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _client() -> httpx2.Client:
    # The lock, because a cache alone would let two threads connect at once.
    with _connecting:
        return _client_of(os.getpid())


@cache
def _client_of(process: int) -> httpx2.Client:  # noqa: ARG001 - a fork must not share connections
    import httpx2

    try:
        return httpx2.Client(headers={"user-agent": f"omnigraph/{__version__}"})
    except (ValueError, ImportError, httpx2.InvalidURL):
        # Not told as it is: the address of a proxy may hold a password.
        raise EmbeddingError(
            "the embedding provider cannot be reached through the proxy that HTTPS_PROXY, "
            "HTTP_PROXY or ALL_PROXY names: it has to be an http:// or https:// address",
            kind="configuration",
        ) from None
