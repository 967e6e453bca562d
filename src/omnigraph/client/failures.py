"""What a server says when it cannot do something, as the error that the engine would raise.

Owns finding the class again, and the words for answers that no server of ours gives. Never shows
a token, nor what a proxy or a stranger has written beyond its first line.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from omnigraph import errors
from omnigraph.errors import OmniGraphError, ServerError, Unauthenticated
from omnigraph.wire.errors import ErrorBody
from omnigraph.wire.graphs import ConflictBody

_SHOWN = 240
_NO_BRANCH = ("branch '", "there is no branch ")
"""How the engine begins to say that a branch is not there; it has no detail of its own."""
_BY_STATUS: Mapping[int, type[OmniGraphError]] = {
    403: errors.PolicyDenied,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.ChangeFeedGap,
    412: errors.PreconditionFailed,
    413: errors.ResourceLimit,
    416: errors.BlobRangeNotSatisfiable,
    500: errors.InternalError,
}
_BY_DETAIL: Mapping[str, type[OmniGraphError]] = {
    "read_set_conflict": errors.ReadSetChanged,
    "resource_limit": errors.ResourceLimit,
    "blob_range": errors.BlobRangeNotSatisfiable,
    "recovery_required": errors.RecoveryRequired,
    "precondition_failure": errors.PreconditionFailed,
    "change_feed_gap": errors.ChangeFeedGap,
    "change_diff_refusal": errors.ChangeDiffRefused,
    "schema_change_refusal": errors.SchemaChangeRefused,
}


def failure(server: str, status: int, headers: Mapping[str, str], body: bytes) -> OmniGraphError:
    """The error that an answer tells of."""
    content = headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        found = msgspec.json.decode(body, type=ErrorBody) if content == "application/json" else None
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        found = None
    if found is None:
        return stranger(server, status, content)
    if status == 401:
        return Unauthenticated(
            f"{server} says: {_shown(found.error)}; give token=, set OMNIGRAPH_BEARER_TOKEN, or "
            "use `omnigraph login`"
        )
    if status == 429:
        wait = headers.get("retry-after")
        after = f" after {wait} s" if wait else ""
        return ServerError(
            f"{server} is busy: {_shown(found.error)}; try again{after}",
            kind="busy",
            details={"retry_after": wait},
        )
    return _error(found, status)


def stranger(server: str, status: int, content: str) -> ServerError:
    """The error for an answer that is not one of ours."""
    if 300 <= status < 400:
        what = "sends its callers elsewhere: give the address that it leads to"
    elif content == "text/html":
        what = f"answers with a web page (status {status}), not as an OmniGraph server: check the"
        what += " address, and what stands between you and it"
    else:
        what = f"answers with {content or 'nothing'} (status {status}), not as an OmniGraph server"
        what += " does: check the address"
    kind: errors.ServerKind = "lost" if status in (502, 503, 504) else "bad_answer"
    return ServerError(f"{server} {what}", kind=kind, details={"status": status})


def _error(found: ErrorBody, status: int) -> OmniGraphError:
    reason = found.reason
    if reason is not None:
        of_reason = _class_of(reason.type) or _BY_STATUS.get(status, OmniGraphError)
        details = reason.details or _details(found)
        return _made(of_reason, reason.message or found.error, reason.code, details, found)
    if found.merge_conflicts is not None:
        return errors.MergeConflicts([conflict_of(one) for one in found.merge_conflicts])
    if (moved := found.published_dataset_version_conflict) is not None:
        return errors.VersionMismatch(
            type_key=f"{moved.entity_kind}:{moved.type_name}",
            expected=moved.expected_published_dataset_version,
            actual=moved.actual_published_dataset_version,
        )
    if (key := found.key_conflict) is not None:
        details = {"type_key": f"{key.entity_kind}:{key.type_name}", "entity_id": key.entity_id}
        return errors.KeyConflict(found.error, details=details)
    named = next((kind for name, kind in _BY_DETAIL.items() if getattr(found, name)), None)
    kind = named or _BY_STATUS.get(status) or errors.BadRequest
    if kind is errors.NotFound and found.error.startswith(_NO_BRANCH):
        kind = errors.BranchNotFound
    return _made(kind, found.error, None, _details(found), found)


def _class_of(name: str) -> type[OmniGraphError] | None:
    found = getattr(errors, name, None)
    return found if isinstance(found, type) and issubclass(found, OmniGraphError) else None


def _details(found: ErrorBody) -> dict[str, Any]:
    for name in _BY_DETAIL:
        detail = getattr(found, name)
        if detail is not None:
            plain: dict[str, Any] = msgspec.to_builtins(detail)
            if name == "schema_change_refusal" and plain["refusals"]:
                first = plain["refusals"][0]["entity"]
                return {"entity": first, "supported": False, **plain}
            return plain
    return {}


def _made(
    kind: type[OmniGraphError],
    message: str,
    code: str | None,
    details: Mapping[str, Any],
    found: ErrorBody,
) -> OmniGraphError:
    """An error of a class, whatever its constructor asks for."""
    made = kind.__new__(kind)
    OmniGraphError.__init__(made, message, code=code, details=details)
    # What some classes have beside message, code and details.
    for name in ("rule", "kind"):
        if name in kind.__annotations__ or name in details:
            setattr(made, name, details.get(name, "unknown"))
    if issubclass(kind, errors.LanguageError | errors.SchemaChangeRefused):
        of_reason = None if found.reason is None else found.reason.report
        made.report = of_reason or found.error  # type: ignore[attr-defined]
    if issubclass(kind, errors.EmbeddingError):
        made.position = None  # type: ignore[attr-defined]
    return made


def conflict_of(body: ConflictBody) -> errors.MergeConflict:
    """A conflict as the engine has it."""
    return errors.MergeConflict(
        body.kind,
        body.entity_kind,
        body.type_name,
        body.entity_id,
        body.message,
        body.property,
        body.base,
        body.source,
        body.target,
    )


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
