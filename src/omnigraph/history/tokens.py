"""Tokens: what a client keeps between two pages, and what each of them belongs to.

Owns their text, `base64url(json ‖ sha256(json))` without padding, and every reason to
refuse one. A token is no secret: it protects against mistakes, not against its holder.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

import msgspec

from omnigraph.errors import ChangeCursorRejected

TokenKind = Literal["commit-page", "feed-cursor", "feed-page"]

MAX_LENGTH = 4096
VERSION = 1
_HASH_BYTES = 32

_MISMATCHES: Mapping[str, str] = {
    "domain": "it belongs to another graph",
    "genesis": "it belongs to another graph",
    "purpose": "it is for reading in another direction",
    "branch": "it belongs to another branch",
    "incarnation": "its branch was deleted and created anew",
    "commit": "it belongs to another commit",
    "filter": "it was handed out for other kinds, types or operations",
}


def seal(kind: TokenKind, binding: Mapping[str, str | None], place: Mapping[str, Any]) -> str:
    """A token for a place, which counts only together with what it is bound to."""
    content = {"v": VERSION, "kind": kind, "for": dict(binding), "at": dict(place)}
    data = msgspec.json.encode(content, order="sorted")
    return urlsafe_b64encode(data + sha256(data).digest()).rstrip(b"=").decode()


def unseal(text: str, kind: TokenKind, binding: Mapping[str, str | None]) -> dict[str, Any]:
    """The place that a token of this kind and binding stands for; anything else is refused."""
    content = _content(text)
    if content.get("v") != VERSION:
        raise rejected("it is of a version that is not understood here")
    if content.get("kind") != kind:
        raise rejected(f"it is not a {kind} token")
    bound, place = content.get("for"), content.get("at")
    if not isinstance(bound, dict) or not isinstance(place, dict):
        raise rejected("it is malformed")
    for name, value in binding.items():
        if bound.get(name) != value:
            raise rejected(_MISMATCHES[name])
    if seal(kind, binding, place) != text:
        raise rejected("it is malformed")
    return place


def rejected(reason: str) -> ChangeCursorRejected:
    """The error for a token that cannot be used."""
    return ChangeCursorRejected(f"change cursor rejected: {reason}", details={"reason": reason})


def _content(text: str) -> dict[str, Any]:
    if len(text) > MAX_LENGTH:
        raise rejected(f"it is longer than {MAX_LENGTH} bytes")
    try:
        sealed = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    except (UnicodeEncodeError, binascii.Error) as error:
        raise rejected("it is malformed") from error
    data, digest = sealed[:-_HASH_BYTES], sealed[-_HASH_BYTES:]
    if sha256(data).digest() != digest:
        raise rejected("it was altered or cut")
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise rejected("it is malformed") from error
    if not isinstance(content, dict):
        raise rejected("it is malformed")
    return content
