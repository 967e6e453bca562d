"""Positions: where in the changes of a commit a page ended, and the tokens clients keep of it.

Owns what a token belongs to and its text. Never decides what is on a page.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ChangeCursorRejected
from omnigraph.history.changes import KINDS, Change
from omnigraph.history.compared_types import ComparedType
from omnigraph.manifest.entries import EntityKind

LONG_ID = 256
_PREFIX = 64

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


@dataclass(frozen=True, slots=True)
class LongId:
    """The beginning of an id and its SHA-256."""

    prefix: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChangePosition:
    """Behind the change of this id."""

    kind: EntityKind
    type_id: str
    id: str | LongId

    @classmethod
    def of(cls, change: Change) -> ChangePosition:
        """Behind a change."""
        return cls(change.kind, change.type.id, _mark(change.id))

    @property
    def type_place(self) -> tuple[bool, str]:
        """Where its type stands among the types of a commit."""
        return _place(self.kind, self.type_id)

    def skipped(self, ids: pa.Array) -> tuple[int, bool]:
        """How many of these ascending ids are not behind it, and whether all later ones are."""
        if isinstance(self.id, str):
            return int(pc.sum(pc.less_equal(ids, self.id)).as_py() or 0), False
        return _skipped(ids.cast(pa.binary()), self.id)

    def to_json(self) -> dict[str, Any]:
        """As a token carries it."""
        body: dict[str, Any] = {"kind": self.kind, "type": self.type_id}
        if isinstance(self.id, str):
            return body | {"id": self.id}
        return body | {"prefix": _text(self.id.prefix), "sha256": _text(self.id.digest)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> ChangePosition:
        """The position that a token carries."""
        try:
            kind, type_id = body["kind"], body["type"]
            id_ = (
                body["id"]
                if "id" in body
                else LongId(urlsafe_b64decode(body["prefix"]), urlsafe_b64decode(body["sha256"]))
            )
        except (KeyError, TypeError, ValueError):
            raise rejected("it says no position") from None
        if kind not in KINDS or not isinstance(type_id, str) or not isinstance(id_, str | LongId):
            raise rejected("it says no position")
        return cls(kind, type_id, id_)


def type_place(type_: ComparedType) -> tuple[bool, str]:
    """The order of types within a commit: nodes before edges, then by the id of the type."""
    return _place(type_.kind, type_.ref.id)


def _place(kind: EntityKind, type_id: str) -> tuple[bool, str]:
    return kind == "edge", type_id


def _mark(id_: str) -> str | LongId:
    data = id_.encode()
    if len(data) <= LONG_ID:
        return id_
    return LongId(data[:_PREFIX], sha256(data).digest())


def _skipped(ids: pa.Array, mark: LongId) -> tuple[int, bool]:
    beginnings = pc.binary_slice(ids, 0, _PREFIX)
    alike = pc.equal(beginnings, mark.prefix).to_numpy(zero_copy_only=False)
    for place in np.flatnonzero(alike).tolist():
        if sha256(ids[place].as_py()).digest() == mark.digest:
            return int(place) + 1, True
    if pc.any(pc.greater(beginnings, mark.prefix)).as_py():
        raise rejected("the change it stands behind is not there")
    return len(ids), False


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode()


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
    except (UnicodeEncodeError, binascii.Error):
        raise rejected("it is malformed") from None
    data, digest = sealed[:-_HASH_BYTES], sealed[-_HASH_BYTES:]
    if sha256(data).digest() != digest:
        raise rejected("it was altered or cut")
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise rejected("it is malformed") from None
    if not isinstance(content, dict):
        raise rejected("it is malformed")
    return content
