"""Errors as JSON: the text for a person, a code, and the one detail that tells them apart.

Owns which code and which detail an error has. What status it is answered with is the
server's to say.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import convert, to_builtins

from omnigraph import errors
from omnigraph.wire.body import Body
from omnigraph.wire.graphs import ConflictBody, EntityKind, split_key
from omnigraph.wire.schemas import SchemaRefusedBody

Code = Literal[
    "unauthorized",
    "forbidden",
    "bad_request",
    "not_found",
    "method_not_allowed",
    "conflict",
    "too_many_requests",
    "internal",
]

# By the nearest class; where there is none, the detail alone says what it is.
_CODES: dict[type[BaseException], Code | None] = {
    errors.OmniGraphError: "internal",
    errors.LanguageError: "bad_request",
    errors.ParamError: "bad_request",
    errors.QueryError: "bad_request",
    errors.ValidationError: "bad_request",
    errors.BadRequest: "bad_request",
    errors.ResourceLimit: "bad_request",
    errors.BlobRangeNotSatisfiable: "bad_request",
    errors.SchemaChangeRefused: "bad_request",
    errors.ChangeCursorRejected: "bad_request",
    errors.QueryCancelled: "bad_request",
    errors.PolicyDenied: "forbidden",
    errors.NotFound: "not_found",
    errors.Conflict: "conflict",
    errors.KeyConflict: "conflict",
    errors.ReadSetChanged: "conflict",
    errors.VersionMismatch: "conflict",
    errors.MergeConflicts: "conflict",
    errors.AlreadyInitialized: "conflict",
    errors.ChangeDiffRefused: "conflict",
    errors.PreconditionFailed: None,
    errors.RecoveryRequired: None,
    errors.ChangeFeedGap: None,
}


_PLAIN = frozenset(
    {
        errors.BadRequest,
        errors.NotFound,
        errors.BranchNotFound,
        errors.Conflict,
        errors.PolicyDenied,
        errors.KeyConflict,
        errors.ReadSetChanged,
        errors.VersionMismatch,
        errors.MergeConflicts,
        errors.PreconditionFailed,
        errors.ResourceLimit,
        errors.BlobRangeNotSatisfiable,
        errors.RecoveryRequired,
        errors.ChangeFeedGap,
        errors.ChangeDiffRefused,
    }
)
"""What its code and its detail tell from all others."""


class VersionConflictBody(Body, frozen=True):
    """A type that is not at the version it was expected at."""

    entity_kind: EntityKind
    type_name: str
    expected_published_dataset_version: int
    actual_published_dataset_version: int


class ReadSetConflictBody(Body, frozen=True):
    """What a write depended on and somebody has changed."""

    member: str
    expected: Any
    actual: Any


class KeyConflictBody(Body, frozen=True):
    """An entity that is there already."""

    entity_kind: EntityKind
    type_name: str
    entity_id: str | None = None


class ResourceLimitBody(Body, frozen=True):
    """A limit, and how much was asked for."""

    resource: str
    limit: int | float
    actual: int | float
    operator: str | None = None


class BlobRangeBody(Body, frozen=True):
    """A range of bytes, from one place up to another, and how many bytes there are."""

    start: int
    end: int
    length: int


class RecoveryRequiredBody(Body, frozen=True):
    """The operation that has to be recovered first."""

    operation_id: str


class PreconditionFailureBody(Body, frozen=True):
    """The head that a conditional write named, and the one it found."""

    branch: str
    expected: str
    actual: str | None


class FeedGapBody(Body, frozen=True, kw_only=True):
    """The first commit that a reader has missed for good."""

    cursor: str | None = None
    first_unreadable_commit_id: str


class DiffRefusalBody(Body, frozen=True):
    """Why two states cannot be compared row by row."""

    reason: str
    graph_commit_id: str | None = None
    type_name: str | None = None


class ReasonBody(Body, frozen=True):
    """The error as Python has it, where code and detail do not say all of it.

    ``message`` is there where `error` shows more than that; ``details`` not of what is the
    program's own business.
    """

    type: str
    code: str
    message: str | None = None
    details: dict[str, Any] | None = None
    report: str | None = None
    """All mistakes with their places, where `error` does not show them."""


class ErrorBody(Body, frozen=True):
    """An error; at most one of the details is there."""

    error: str
    code: Code | None = None
    merge_conflicts: list[ConflictBody] | None = None
    published_dataset_version_conflict: VersionConflictBody | None = None
    read_set_conflict: ReadSetConflictBody | None = None
    key_conflict: KeyConflictBody | None = None
    resource_limit: ResourceLimitBody | None = None
    blob_range: BlobRangeBody | None = None
    recovery_required: RecoveryRequiredBody | None = None
    precondition_failure: PreconditionFailureBody | None = None
    change_feed_gap: FeedGapBody | None = None
    change_diff_refusal: DiffRefusalBody | None = None
    schema_change_refusal: SchemaRefusedBody | None = None
    reason: ReasonBody | None = None

    @classmethod
    def of(cls, error: errors.OmniGraphError) -> ErrorBody:
        """The error with its code and its detail."""
        return cls(str(error), code_of(type(error)), **_detail(error), reason=_reason(error))


def code_of(kind: type[errors.OmniGraphError]) -> Code | None:
    """The code of a class of errors."""
    return next(_CODES[base] for base in kind.__mro__ if base in _CODES)


def _reason(error: errors.OmniGraphError) -> ReasonBody | None:
    kind = type(error)
    if kind in _PLAIN:
        return None
    is_internal = code_of(kind) == "internal"
    # What a schema change is refused with is a detail already.
    report: str | None = getattr(error, "report", None)
    whole = not is_internal and not isinstance(error, errors.SchemaChangeRefused)
    return ReasonBody(
        kind.__name__,
        error.code,
        None if str(error) == error.message else error.message,
        to_builtins(error.details, enc_hook=str) or None if whole else None,
        None if report == str(error) else report,
    )


def _detail(error: errors.OmniGraphError) -> dict[str, Any]:
    details = error.details
    match error:
        case errors.MergeConflicts():
            return {"merge_conflicts": [ConflictBody.of(one) for one in error.conflicts]}
        case errors.VersionMismatch():
            of_type = split_key(error.type_key)
            found = VersionConflictBody(*of_type, error.expected, error.actual)
            return {"published_dataset_version_conflict": found}
        case errors.KeyConflict():
            of_type = split_key(details["type_key"])
            return {"key_conflict": KeyConflictBody(*of_type, details.get("entity_id"))}
        case errors.ReadSetChanged():
            sides = (details.get("expected"), details.get("actual"))
            return {"read_set_conflict": ReadSetConflictBody(details["member"], *sides)}
        case errors.ResourceLimit():
            return {"resource_limit": convert(details, ResourceLimitBody)}
        case errors.BlobRangeNotSatisfiable():
            return {"blob_range": convert(details, BlobRangeBody)}
        case errors.RecoveryRequired():
            return {"recovery_required": convert(details, RecoveryRequiredBody)}
        case errors.PreconditionFailed():
            return {"precondition_failure": convert(details, PreconditionFailureBody)}
        case errors.ChangeFeedGap():
            return {"change_feed_gap": convert(details, FeedGapBody)}
        case errors.ChangeDiffRefused():
            return {"change_diff_refusal": convert(details, DiffRefusalBody)}
        case errors.SchemaChangeRefused() if "refusals" in details:
            return {"schema_change_refusal": convert(details, SchemaRefusedBody)}
    return {}
