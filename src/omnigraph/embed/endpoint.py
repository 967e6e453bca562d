"""An endpoint of a remote provider: asked with patience, and its refusals told to a person.

Owns the retries, and which failure is which. Must never let the key out: neither in a
message nor in the cause of an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from omnigraph.embed.connection import NoReply, Reply, post
from omnigraph.embed.retry import RetryPolicy
from omnigraph.errors import EmbeddingError, EmbeddingKind

_SHOWN = 240
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
class Endpoint:
    """Where a model is asked for vectors.

    ``key_variable`` is where a person has the key from. ``secret`` is never shown, and neither
    are the headers, one of which is it.
    """

    provider: str
    model: str
    url: str
    key_variable: str
    patience: RetryPolicy
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str | None = field(default=None, repr=False)

    def ask(self, body: bytes) -> bytes:
        """The body of a good answer; anything else is an error, after some attempts if they help.

        No failure is the cause of the error: it would carry the request.
        """
        tries = self.patience.begin()
        while True:
            found = post(self.url, self.headers, body, tries.attempt())
            if isinstance(found, Reply) and found.status == 200:
                return found.body
            may_pass = isinstance(found, NoReply) or found.status == 429 or found.status >= 500
            asked = None if isinstance(found, NoReply) else found.retry_after
            if not (may_pass and tries.wait(asked)):
                break
        if isinstance(found, NoReply):
            reason = self.hide(found.reason)
            raise self.error(
                f"cannot be reached at {self.url} ({reason}; {_times(tries.made)}): check "
                "OMNIGRAPH_EMBED_BASE_URL and the network, or try again later",
                "unavailable",
                attempts=tries.made,
            )
        raise self._refusal(found, tries.made)

    def _refusal(self, reply: Reply, made: int) -> EmbeddingError:
        status = reply.status
        said = self._said(reply.body)
        if status == 429:
            waits = "" if reply.retry_after is None else f", for {reply.retry_after:.0f} s"
            return self.error(
                f"takes no more requests{waits} (status 429{said}; {_times(made)}): try again "
                "later, and set OMNIGRAPH_EMBED_CACHE to keep what is done",
                "unavailable",
                status=status,
                attempts=made,
            )
        if status >= 500:
            return self.error(
                f"fails (status {status}{said}; {_times(made)}): try again later",
                "unavailable",
                status=status,
                attempts=made,
            )
        if status in (401, 403):
            # What was said is not repeated: some say the key.
            return self.error(
                f"does not accept the API key (status {status}): check {self.key_variable}",
                "refused",
                status=status,
            )
        if status == 413 or (status in (400, 422) and _is_too_long(said)):
            return self.error(
                f"finds a text too long for its model '{self.model}' (status {status}{said}): "
                "shorten the text, or give the vector",
                "text_too_long",
                status=status,
            )
        if status == 404 or (status in (400, 422) and _NO_MODEL.search(said)):
            return self.error(
                f"has no model '{self.model}' at {self.url} (status {status}{said}): check "
                "OMNIGRAPH_EMBED_MODEL and OMNIGRAPH_EMBED_BASE_URL",
                "model",
                status=status,
            )
        if status < 400:
            return self.error(
                f"answers at {self.url} with status {status}, not with vectors: set "
                "OMNIGRAPH_EMBED_BASE_URL to the address of its API",
                "bad_answer",
                status=status,
            )
        return self.error(f"refuses the request (status {status}{said})", "refused", status=status)

    def error(
        self, what: str, kind: EmbeddingKind, position: int | None = None, **details: Any
    ) -> EmbeddingError:
        """An error that begins with the provider."""
        return EmbeddingError(
            f"the embedding provider '{self.provider}' {what}",
            kind=kind,
            details={"provider": self.provider, "model": self.model, **details},
            position=position,
        )

    def hide(self, text: str) -> str:
        """Text of others on one line, not too long, and without the key."""
        if self.secret:
            text = text.replace(self.secret, "***")
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

    def _said(self, body: bytes) -> str:
        """What the provider says about an error, to stand behind a status."""
        said = _message(body)
        return f": {self.hide(said)}" if said else ""


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


def _times(made: int) -> str:
    return "tried once" if made == 1 else f"tried {made} times"
