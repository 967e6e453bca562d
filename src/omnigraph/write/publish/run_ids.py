"""Run ids: the name that a caller gives to a request, so that it can be repeated safely.

Owns the digest by which two requests are told apart, and the names and the content of the
objects in which claims to an id are kept (run_claims.py). Never looks at a graph.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from omnigraph.errors import BadRequest, StorageError, UnsupportedFormat
from omnigraph.storage.objects.clock import new_id

RUN_ID = "run_id"
"""The members of a commit's metadata that tell the run that made it, and what was asked for."""
RUN_DIGEST = "run_digest"

DIRECTORY = "__runs"
REVOKED = "revoked"
FORMAT = 1
LONGEST = 512

_ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
_NAME = re.compile(rf"{DIRECTORY}/[0-9a-f]{{64}}/({_ULID})\.({_ULID})\.(json|{REVOKED})")


@dataclass(frozen=True, slots=True)
class RunId:
    """What a change carries that is to happen once: the id, and a digest of the request.

    Two requests are the same if their digests are. What is in it does not depend on what the
    graph is today, and holds no condition such as `if_commit`: a repeat is answered before those
    are looked at.
    """

    name: str
    digest: str

    @classmethod
    def of(cls, name: str, operation: str, request: Mapping[str, Any]) -> RunId:
        """The id of a request to an operation, as the caller spells both."""
        require_run_id(name)
        return cls(name, digest_of({"operation": operation, **request}))

    @property
    def directory(self) -> str:
        """Where the claims to it are kept, relative to the graph root."""
        return f"{DIRECTORY}/{sha256(self.name.encode()).hexdigest()}"

    @property
    def notes(self) -> dict[str, str]:
        """What its commit says of it."""
        return {RUN_ID: self.name, RUN_DIGEST: self.digest}


def require_run_id(name: str) -> None:
    """Refuse what cannot be a run id."""
    if not name.strip():
        raise BadRequest("a run id is a name of your own for this request; it is empty")
    length = len(name.encode())
    if length > LONGEST:
        raise BadRequest(f"a run id has at most {LONGEST} bytes, this one has {length}")


def digest_of(request: Mapping[str, Any]) -> str:
    """A digest of values; equal for equal ones, in whatever order members are given."""
    try:
        text = json.dumps(request, default=_plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        # It cannot be written down, so that nothing takes it: it will be refused in its own words.
        text = "unreadable"
    return sha256(text.encode()).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": b64encode(value).decode()}
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    # NumPy's numbers and arrays say this of themselves.
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not a value of a request")


# -- claims ------------------------------------------------------------------------------


class ClaimName(NamedTuple):
    """What the name of an object says: the commit that is to have the id, and which claim."""

    commit_id: str
    token: str
    is_mark: bool

    @classmethod
    def parse(cls, name: str) -> ClaimName | None:
        """The meaning of a name relative to the graph root; None if nobody here gives such."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(found[1], found[2], found[3] == REVOKED)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody writes down before a commit with the id is published.

    ``token`` orders claims and is never used again. The claim holds for heads of this ``epoch``
    of this branch, and no others. ``outcome`` is what a repeat is told beside the commit.
    """

    format: int = FORMAT
    run_id: str
    digest: str
    commit_id: str
    token: str
    branch: str
    branch_id: str
    epoch: int
    branch_created: bool
    outcome: dict[str, Any]

    @classmethod
    def mint(
        cls,
        run: RunId,
        commit_id: str,
        *,
        branch: str,
        branch_id: str,
        epoch: int,
        branch_created: bool,
        outcome: Mapping[str, Any],
    ) -> Claim:
        """A claim that nobody has made before."""
        return cls(
            run_id=run.name,
            digest=run.digest,
            commit_id=commit_id,
            token=new_id(),
            branch=branch,
            branch_id=branch_id,
            epoch=epoch,
            branch_created=branch_created,
            outcome=msgspec.to_builtins(outcome),
        )

    def says_the_same(self, other: Claim) -> bool:
        """Whether two claims differ in nothing but the token."""
        return msgspec.structs.replace(self, token=other.token) == other


class _Format(msgspec.Struct, frozen=True):
    format: int


def parse_claim(name: str, data: bytes) -> Claim:
    """Read a claim; UnsupportedFormat if it is newer, StorageError if it is not one."""
    try:
        found = msgspec.json.decode(data, type=_Format).format
        if found > FORMAT:
            raise UnsupportedFormat(
                f"{name} has format {found} and this program reads up to {FORMAT}: upgrade the "
                "program",
                details={"found": found, "supported": FORMAT},
            )
        return msgspec.json.decode(data, type=Claim)
    except msgspec.MsgspecError as error:
        raise StorageError(f"{name} cannot be read: {error}", kind="permanent") from error
