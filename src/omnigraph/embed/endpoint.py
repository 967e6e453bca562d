"""An endpoint of a remote provider: asked with patience, and its refusals told to a person.

Owns the retries, and which failure is which, wrong settings
included. Must never let the key out, neither in a message nor in the cause of an error: nothing
of the client's library leaves this module, for its errors hold the request.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import msgspec

from omnigraph.embed.configuration import EmbedderConfig, Patience
from omnigraph.embed.protocol import Role
from omnigraph.embed.request_formats import RequestFormat
from omnigraph.errors import EmbeddingError, EmbeddingKind
from omnigraph.http_client import BAD_PROXY, BadProxyError, http_client, retry_after

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx2

# A hundred vectors of a few thousand numbers, spelled out, are a tenth of this.
MAX_BYTES = 128 << 20

_SHOWN = 240
_KEY = re.compile(r"[\x21-\x7e]+")
_TOO_LONG = re.compile(
    r"context.length|batch size|too (long|large|many tokens)|token.limit"
    r"|maximum.{0,40}(token|length|size)"
    r"|(length|size|tokens?).{0,40}(exceed|limit|maximum)|exceed.{0,40}(token|length|size|limit)",
    re.IGNORECASE | re.DOTALL,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not found|not exist|not supported|unknown|invalid|not a valid)"
    r"|(unknown|invalid|no such|not a valid).{0,20}model|no endpoints found",
    re.IGNORECASE | re.DOTALL,
)


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
            after = retry_after(response.headers.get("retry-after"))
            return Reply(response.status_code, b"".join(parts), after)
    except httpx2.TimeoutException:
        return NoReply(_slow(timeout))
    except httpx2.RequestError as error:
        return NoReply(str(error) or type(error).__name__)


def _slow(timeout: float) -> str:
    return f"no answer within {timeout:.3g} s"


def _client() -> httpx2.Client:
    try:
        return http_client()
    except BadProxyError:
        # Not told as it is: the address of a proxy may hold a password.
        raise EmbeddingError(f"the embedding provider {BAD_PROXY}", kind="configuration") from None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is asked for vectors; the ``secret`` is never shown."""

    format: RequestFormat
    model: str
    base_url: str
    patience: Patience
    secret: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, format_: RequestFormat, config: EmbedderConfig) -> Self:
        """The endpoint of a configuration; refuses settings that cannot work."""
        key, written = config.api_key, config.base_url
        found = cls(
            format_,
            config.model or format_.model,
            (written or format_.base_url).rstrip("/"),
            config.patience,
            key,
        )
        if key is None and not (written and format_.takes_other_servers):
            raise found.error(f"needs an API key: set {found.key_variables}", "configuration")
        if key is not None and not _KEY.fullmatch(key):
            raise found.error(
                "cannot be sent the API key, which has blanks or other odd characters in it: "
                f"check {found.key_variables}",
                "configuration",
            )
        if written is not None:
            found._check_address(written)
        return found

    @property
    def url(self) -> str:
        """The address that vectors are asked at."""
        return self.format.url(self.base_url, self.model)

    @property
    def key_variables(self) -> str:
        """Where a person has the key from."""
        return " or ".join(self.format.key_variables)

    def _check_address(self, written: str) -> None:
        try:
            parts = urlsplit(written)
            is_plain = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            is_plain = False
        if not is_plain or parts.scheme not in ("http", "https"):
            raise self.error(
                "has no such address: set OMNIGRAPH_EMBED_BASE_URL to an http(s) URL",
                "configuration",
            )
        if parts.username is not None or parts.query or parts.fragment:
            # Not shown: what stands there is a password or a key, most likely.
            raise self.error(
                "takes its key from a variable of its own: leave everything but the host and the "
                "path out of OMNIGRAPH_EMBED_BASE_URL",
                "configuration",
            )

    def ask(self, texts: Sequence[str], dimension: int, role: Role) -> bytes:
        """The answer with the vectors of some texts.

        Anything else is an error, after some attempts if they help. No failure is its cause: it
        would carry the request.
        """
        body = self.format.body(self.model, texts, dimension, role)
        headers = {} if self.secret is None else self.format.headers(self.secret)
        limits, most = self.patience, max(1, self.patience.attempts)
        ends = monotonic() + limits.deadline_ms / 1000 if limits.deadline_ms else math.inf
        for made in range(1, most + 1):
            timeout = max(min(limits.timeout_ms / 1000, ends - monotonic()), 0.001)
            found = post(self.url, headers, body, timeout)
            if isinstance(found, Reply) and found.status == 200:
                return found.body
            pause = limits.backoff_ms / 1000 * 2 ** (made - 1)
            if isinstance(found, Reply):
                if found.status != 429 and found.status < 500:
                    break
                # The other side may want to be left alone for longer.
                pause = max(pause, found.retry_after or 0.0)
            # A pause that would end after the deadline is not begun.
            if made == most or monotonic() + pause >= ends:
                break
            sleep(pause)
        times = "tried once" if made == 1 else f"tried {made} times"
        if isinstance(found, NoReply):
            raise self.error(
                f"cannot be reached at {self.url} ({self.hide(found.reason)}; {times}): check "
                "OMNIGRAPH_EMBED_BASE_URL and the network, or try again later",
                "unavailable",
                attempts=made,
            )
        what, kind = self._refusal(found, times)
        attempts = {"attempts": made} if kind == "unavailable" else {}
        raise self.error(what, kind, status=found.status, **attempts)

    def _refusal(self, reply: Reply, times: str) -> tuple[str, EmbeddingKind]:
        """What a bad answer means, and its kind."""
        message = _message(reply.body)
        said = f": {self.hide(message)}" if message else ""
        status = f"status {reply.status}{said}"
        is_complaint = reply.status in (400, 422)
        if reply.status == 429:
            waits = "" if reply.retry_after is None else f", for {reply.retry_after:.0f} s"
            return (
                f"takes no more requests{waits} ({status}; {times}): try again later, and set "
                "OMNIGRAPH_EMBED_CACHE to keep what is done"
            ), "unavailable"
        if reply.status >= 500:
            return f"fails ({status}; {times}): try again later", "unavailable"
        if reply.status in (401, 403):
            # What was said is not repeated: some say the key.
            problem = f"does not accept the API key (status {reply.status})"
            return f"{problem}: check {self.key_variables}", "refused"
        if reply.status == 413 or (is_complaint and _is_too_long(said)):
            problem = f"finds a text too long for its model '{self.model}' ({status})"
            return f"{problem}: shorten the text, or give the vector", "text_too_long"
        if reply.status == 404 or (is_complaint and _NO_MODEL.search(said)):
            return (
                f"has no model '{self.model}' at {self.url} ({status}): check "
                "OMNIGRAPH_EMBED_MODEL and OMNIGRAPH_EMBED_BASE_URL"
            ), "model"
        if reply.status < 400:
            return (
                f"answers at {self.url} with status {reply.status}, not with vectors: set "
                "OMNIGRAPH_EMBED_BASE_URL to the address of its API"
            ), "bad_answer"
        return f"refuses the request ({status})", "refused"

    def error(
        self, what: str, kind: EmbeddingKind, position: int | None = None, **details: Any
    ) -> EmbeddingError:
        """An error that begins with the provider."""
        return EmbeddingError(
            f"the embedding provider '{self.format.provider}' {what}",
            kind=kind,
            details={"provider": self.format.provider, "model": self.model, **details},
            position=position,
        )

    def hide(self, text: str) -> str:
        """Text of others on one line, not too long, and without the key."""
        if self.secret:
            text = text.replace(self.secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _message(body: bytes) -> str:
    """The message in the body of an error, wherever providers put it."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        text = body[: 8 * _SHOWN].decode(errors="replace")
        return "a web page" if re.match(r"\s*<", text) else text
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and name in found:
            found = found[name]
    return found if isinstance(found, str) else msgspec.json.encode(found).decode()


def _is_too_long(said: str) -> bool:
    # A number of dimensions can be too large as well, and that is no matter of the text.
    return _TOO_LONG.search(said) is not None and "dimension" not in said.lower()
