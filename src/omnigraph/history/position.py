"""Positions: where in the changes of a commit a page ended.

Owns the order of types and ids within a commit, and finding the place again. A long id is
carried as its beginning and its hash, so that no token grows without bound.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.changes import KINDS, Change
from omnigraph.history.compared import ComparedType
from omnigraph.history.tokens import rejected
from omnigraph.manifest.entries import EntityKind

LONG_ID = 256
_PREFIX = 64


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
                else LongId(_bytes(body["prefix"]), _bytes(body["sha256"]))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise rejected("it says no position") from error
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


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text)
