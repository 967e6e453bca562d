"""Tokens: who a bearer is.

Owns the sources of tokens and their comparison: digests, all of them, in constant time. Never
keeps, logs or prints a token.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from omnigraph.errors import BadRequest

_ONE = "OMNIGRAPH_SERVER_BEARER_TOKEN"
_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
_AWS = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"
DEFAULT_ACTOR = "default"


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The actors of a server, each with the digest of its token."""

    digests: tuple[tuple[str, bytes], ...] = ()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Tokens:
        """The tokens that the environment names; a mistake in any of them is an error."""
        return cls.of(list(_configured(environment)))

    @classmethod
    def of(cls, pairs: list[tuple[str, str]]) -> Tokens:
        """Tokens by actor, neither of which may be blank or there twice."""
        digests: dict[str, bytes] = {}
        for actor, token in ((actor.strip(), token.strip()) for actor, token in pairs):
            if not actor:
                raise BadRequest("a bearer token is configured for an actor without a name")
            if not token:
                raise BadRequest(f"the bearer token of actor '{actor}' is blank")
            digest = sha256(token.encode()).digest()
            if actor in digests:
                raise BadRequest(f"actor '{actor}' has more than one bearer token")
            if digest in digests.values():
                raise BadRequest(f"actor '{actor}' has the bearer token of another actor")
            digests[actor] = digest
        return cls(tuple(digests.items()))

    def actor_of(self, token: str) -> str | None:
        """Whose token it is; every digest is compared, whichever fits."""
        wanted, found = sha256(token.encode(errors="surrogateescape")).digest(), None
        for actor, digest in self.digests:
            if hmac.compare_digest(wanted, digest):
                found = actor
        return found

    def __bool__(self) -> bool:
        return bool(self.digests)


def _configured(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if environment.get(_AWS, "").strip():
        raise BadRequest(
            f"{_AWS} needs a build with AWS support, which this is not: put the tokens into a "
            f"file and name it with {_FILE}"
        )
    if _ONE in environment:
        yield DEFAULT_ACTOR, environment[_ONE]
    file = environment.get(_FILE, "").strip()
    if file:
        try:
            text = Path(file).read_bytes()
        except OSError as error:
            raise BadRequest(f"cannot read {file} ({_FILE}): {error.strerror}") from error
        yield from _pairs(text, _FILE)
    elif environment.get(_JSON, "").strip():
        yield from _pairs(environment[_JSON].encode(), _JSON)


def _pairs(text: bytes, source: str) -> Iterator[tuple[str, str]]:
    try:
        _require_unique(text)
        found = msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.MsgspecError, ValueError, RecursionError):
        # What the text holds is secret: nothing of it is repeated.
        raise BadRequest(
            f'{source} is not a JSON object of actors and tokens: write {{"actor": "token"}}'
        ) from None
    yield from found.items()


def _require_unique(text: bytes) -> None:
    """A name that is there twice would silently lose its first token."""
    import json

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name.strip() for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise BadRequest(f"actor '{name}' has more than one bearer token")
        return dict(pairs)

    json.loads(text, object_pairs_hook=once)
