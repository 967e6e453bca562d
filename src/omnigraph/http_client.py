"""The HTTP client of this process: one for everybody who asks another machine for something.

Owns making it, once for each process, and what the library says of an answer that did not come.
Knows no address. What its errors hold, keys among it, never leaves here but as a reason in words.
"""

from __future__ import annotations

import atexit
import os
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from omnigraph.version import __version__

if TYPE_CHECKING:
    import httpx2

_connecting = Lock()

BAD_PROXY = (
    "cannot be reached through the proxy that HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names: it has "
    "to be an http:// or https:// address"
)


class BadProxyError(Exception):
    """The environment names a proxy that cannot be one; its address may hold a password."""


def http_client() -> httpx2.Client:
    """The client of this process."""
    # The lock, because a cache alone would let two threads connect at once.
    with _connecting:
        return _client_of(os.getpid())


@cache
def _client_of(process: int) -> httpx2.Client:  # noqa: ARG001 - a fork must not share connections
    import httpx2

    try:
        made = httpx2.Client(headers={"user-agent": f"omnigraph/{__version__}"})
    except (ValueError, ImportError, httpx2.InvalidURL):
        raise BadProxyError from None
    atexit.register(made.close)
    return made


def retry_after(text: str | None) -> float | None:
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
