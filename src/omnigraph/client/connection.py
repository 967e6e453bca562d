"""A connection to one served graph: requests, and when they are made again.

Owns patience and timeouts, the commit that later reads have to show, and what a failure on the
way is called. Must never let the token out, neither in a message nor in the cause of an error.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import sleep
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from omnigraph.client.address import ServerAddress
from omnigraph.client.failures import failure, stranger
from omnigraph.errors import BadRequest, NotFound, ServerError, ServerKind
from omnigraph.http_client import BAD_PROXY, BadProxyError, http_client, retry_after

if TYPE_CHECKING:
    import httpx2

_T = TypeVar("_T")
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
ATTEMPTS = 3
PAUSE = 0.2
LONGEST_PAUSE = 5.0
TIMEOUT = 90.0
"""In seconds: for an answer, and between two pieces of one. A server gives up after 60."""
MIN_COMMIT = "omnigraph-min-commit"
_TOKEN = re.compile(r"[\x21-\x7e]+")
_BROKEN = frozenset({502, 503})


@dataclass(frozen=True, slots=True)
class Reply:
    """A good answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def decode(self, type_: type[_T]) -> _T:
        """The body as what it is."""
        return msgspec.json.decode(self.body, type=type_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request; ``repeatable`` if a second one does no harm."""

    method: str
    parts: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    repeatable: bool = True
    branch: str | None = None
    """The branch that is read, if it has to show what was written through this connection."""
    wait: float = 0.0
    """For how many seconds the server was asked to wait."""
    good: frozenset[int] = frozenset({200})


class _NotSentError(Exception):
    """A failure on the way that may be tried again, and what it is in the end."""

    def __init__(self, error: ServerError, pause: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.pause = pause


class Connection:
    """A served graph as one token may use it; threads may share it."""

    def __init__(
        self, address: ServerAddress, token: str | None = None, timeout: float | None = None
    ) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise BadRequest("a token is a word: this one is empty, or has blanks in it")
        if timeout is not None and not timeout > 0:
            raise BadRequest("timeout is a number of seconds above 0")
        self.address = address
        self.timeout = TIMEOUT if timeout is None else timeout
        self._token = token
        self._newest: dict[str, str] = {}
        self._lock = threading.Lock()

    # -- what has been written -------------------------------------------------------

    def note(self, branch: str, commit_id: str | None) -> None:
        """Remember a commit: what is read of its branch from now on has to show it."""
        if commit_id is not None:
            with self._lock:
                self._newest[branch] = commit_id

    def forget(self, branch: str) -> None:
        """The branch is gone, and another one may get its name."""
        with self._lock:
            self._newest.pop(branch, None)

    # -- asking ----------------------------------------------------------------------

    def call(self, ask: Ask, timeout: float | None = None) -> Reply:
        """The whole answer; an error of the engine is that error."""

        def whole() -> Reply:
            with self._answer(ask, timeout) as response:
                return Reply(response.status_code, response.headers, self._read(ask, response))

        return self._patiently(ask, whole)

    def json(self, ask: Ask, type_: type[_T], timeout: float | None = None) -> _T:
        """The answer as a body."""
        reply = self.call(ask, timeout)
        content = reply.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if content != JSON:
                raise stranger(self._name, reply.status, content)
            return reply.decode(type_)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise ServerError(
                f"{self._name} gave an answer that this version does not understand ({error}): "
                "use versions of the same release on both sides",
                kind="bad_answer",
            ) from None

    @contextmanager
    def stream(self, ask: Ask) -> Iterator[tuple[Mapping[str, str], Iterator[bytes]]]:
        """The headers of an answer, and its pieces while they come."""
        with ExitStack() as stack:
            response = self._patiently(ask, lambda: stack.enter_context(self._answer(ask, None)))
            yield response.headers, self._pieces(ask, response)

    def _pieces(self, ask: Ask, response: httpx2.Response) -> Iterator[bytes]:
        try:
            with self._failures(ask):
                yield from response.iter_bytes()
        except _NotSentError as failed:
            # Who has some of it cannot be given it again.
            raise failed.error from None

    def _patiently(self, ask: Ask, once: Callable[[], _T]) -> _T:
        """Try some times, if a second time does no harm."""
        for made in range(1, ATTEMPTS + 1):
            try:
                return self._freshly(ask, once)
            except _NotSentError as failed:
                pause = PAUSE * 2 ** (made - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - a pause
                pause = max(pause, failed.pause or 0.0)
                if made == ATTEMPTS or pause > LONGEST_PAUSE:
                    raise failed.error from None
            sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _freshly(self, ask: Ask, once: Callable[[], _T]) -> _T:
        try:
            return once()
        except NotFound as error:
            # Somebody has deleted the branch, and what was written to it is gone with it.
            wanted = None if ask.branch is None else self._newest.get(ask.branch)
            if wanted is None or wanted not in error.message:
                raise
            self.forget(ask.branch or "")
        return once()

    @contextmanager
    def _answer(self, ask: Ask, timeout: float | None) -> Iterator[httpx2.Response]:
        headers = {"accept": f"{ask.accept}, {JSON}", **ask.headers}
        if ask.body is not None:
            headers["content-type"] = ask.content
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        if ask.branch is not None and (newest := self._newest.get(ask.branch)) is not None:
            headers[MIN_COMMIT] = newest
        with (
            self._failures(ask),
            self._client().stream(
                ask.method,
                self.address.url(*ask.parts),
                params=ask.query or None,
                content=ask.body,
                headers=headers,
                timeout=(self.timeout if timeout is None else timeout) + ask.wait,
                follow_redirects=False,
            ) as response,
        ):
            if response.status_code not in ask.good:
                self._refuse(ask, response)
            yield response

    def _read(self, ask: Ask, response: httpx2.Response) -> bytes:
        with self._failures(ask):
            return response.read()

    def _refuse(self, ask: Ask, response: httpx2.Response) -> NoReturn:
        status, headers = response.status_code, response.headers
        error = failure(self._name, status, headers, response.read())
        if isinstance(error, ServerError):
            # Whoever is busy has not begun; behind a gateway nobody knows.
            may_repeat = status == 429 or (status in _BROKEN and ask.repeatable)
            if may_repeat:
                raise _NotSentError(error, retry_after(headers.get("retry-after")))
        raise error

    # -- failures on the way ---------------------------------------------------------

    @contextmanager
    def _failures(self, ask: Ask) -> Iterator[None]:
        """Nothing of the client's library leaves this: its errors hold the request."""
        import httpx2

        try:
            yield
            return
        except httpx2.ConnectTimeout:
            lost, kind, reason = False, "timeout", "does not answer"
        except httpx2.ConnectError as error:
            text = self._hide(str(error))
            is_tls = "CERTIFICATE" in text.upper() or "SSL" in text.upper() or "TLS" in text.upper()
            lost, kind = False, "tls" if is_tls else "refused"
            reason = (
                f"cannot be trusted or does not speak TLS ({text}): check https:// and its "
                "certificate; SSL_CERT_FILE names those of your own authority"
                if is_tls
                else f"cannot be reached ({text}): is it running, and is the address right"
            )
        except httpx2.TimeoutException:
            lost, kind = True, "timeout"
            reason = f"gave no answer for {self.timeout + ask.wait:g} s"
        except httpx2.ProxyError as error:
            lost, kind = False, "refused"
            reason = f"cannot be reached through the proxy ({self._hide(str(error))})"
        except httpx2.RequestError as error:
            lost, kind = True, "lost"
            text = self._hide(str(error)) or type(error).__name__
            reason = f"broke off ({text})"
        except (httpx2.StreamError, httpx2.InvalidURL) as error:
            lost, kind, reason = False, "configuration", self._hide(str(error))
        self._fail(ask, kind, reason, lost=lost)  # type: ignore[arg-type]

    def _fail(self, ask: Ask, kind: ServerKind, reason: str, *, lost: bool) -> NoReturn:
        details: dict[str, Any] = {"server": self._name}
        if lost and not ask.repeatable:
            details["outcome"] = "unknown"
            reason += (
                ": whether it was done is not known; look at the newest commit, and give a run_id "
                "to what you want to repeat safely"
            )
        error = ServerError(f"{self._name} {reason}", kind=kind, details=details)
        if kind in ("refused", "lost", "timeout") and (not lost or ask.repeatable):
            raise _NotSentError(error) from None
        raise error from None

    @property
    def _name(self) -> str:
        return f"the server at {self.address.base}"

    def _client(self) -> httpx2.Client:
        try:
            return http_client()
        except BadProxyError:
            raise ServerError(f"{self._name} {BAD_PROXY}", kind="configuration") from None

    def _hide(self, text: str) -> str:
        if self._token:
            text = text.replace(self._token, "***")
        return " ".join(text.split())[:200]

    def __repr__(self) -> str:
        return f"<Connection {self.address}>"
