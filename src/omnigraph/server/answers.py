"""Answers: bodies as responses, and errors with the status that each has.

Owns which status an error is answered with. The bodies are those of `wire`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.responses import Response

from omnigraph import errors
from omnigraph.wire.body import Body, encode
from omnigraph.wire.errors import Code, ErrorBody, ResourceLimitBody

JSON = "application/json"
NDJSON = "application/x-ndjson; charset=utf-8"
ARROW = "application/vnd.apache.arrow.stream"

# By the nearest class.
_STATUSES: Mapping[type[BaseException], int] = {
    errors.OmniGraphError: 500,
    errors.LanguageError: 400,
    errors.ParamError: 400,
    errors.QueryError: 400,
    errors.ValidationError: 400,
    errors.BadRequest: 400,
    errors.ResourceLimit: 413,
    errors.BlobRangeNotSatisfiable: 416,
    errors.SchemaChangeRefused: 400,
    errors.ChangeCursorRejected: 400,
    errors.QueryCancelled: 503,
    errors.PolicyDenied: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.KeyConflict: 409,
    errors.ReadSetChanged: 409,
    errors.VersionMismatch: 409,
    errors.MergeConflicts: 409,
    errors.AlreadyInitialized: 409,
    errors.ChangeDiffRefused: 409,
    errors.PreconditionFailed: 412,
    errors.RecoveryRequired: 503,
    errors.ChangeFeedGap: 410,
}
_EMBEDDING: Mapping[str, int] = {"text_too_long": 400, "refused": 400, "unavailable": 503}
_CODES: Mapping[int, Code] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "bad_request",
    409: "conflict",
    412: "conflict",
    413: "bad_request",
    415: "bad_request",
    416: "bad_request",
    429: "too_many_requests",
    500: "internal",
}


class Refusal(Exception):
    """An answer that the protocol asks for, and not the graph."""

    def __init__(
        self,
        status: int,
        text: str,
        *,
        headers: Mapping[str, str] | None = None,
        limit: ResourceLimitBody | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = dict(headers or {})
        self.limit = limit

    @property
    def response(self) -> Response:
        """The answer, with the body that every error has."""
        body = ErrorBody(self.text, _CODES.get(self.status), resource_limit=self.limit)
        return answer(body, self.status, self.headers)


class ClientGone(Exception):
    """Nobody waits for the answer any more."""


def answer(
    body: Body | Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A body as a response."""
    return Response(encode(body), status, headers, JSON)


def error_answer(error: errors.OmniGraphError) -> Response:
    """An error of the product as a response."""
    if isinstance(error, errors.NotFound) and "queries" in error.details:
        error = errors.BadRequest(error.message)  # the request is wrong, nothing is missing
    body = ErrorBody.of(error)
    return answer(msgspec.structs.replace(body, error=_text(error, body)), status_of(error))


def _text(error: errors.OmniGraphError, body: ErrorBody) -> str:
    """What the error says; where clients know a text by heart, that one."""
    if isinstance(error, errors.BranchNotFound) and "branch" in error.details:
        return f"branch '{error.details['branch']}' not found"
    if body.precondition_failure is not None:
        failed = body.precondition_failure
        actual = "<absent>" if failed.actual is None else failed.actual
        return (
            f"precondition failed on branch '{failed.branch}': expected head "
            f"'{failed.expected}' but current is {actual}"
        )
    if body.key_conflict is not None:
        found = body.key_conflict
        of_type = f"{found.entity_kind} type '{found.type_name}'"
        if found.entity_id is None:
            return f"{of_type} already has this id"
        return f"{of_type} already has id '{found.entity_id}'"
    return body.error


def status_of(error: errors.OmniGraphError) -> int:
    """What an error is answered with."""
    if isinstance(error, errors.EmbeddingError):
        return _EMBEDDING.get(error.kind, 500)
    if isinstance(error, errors.ResourceLimit) and error.details["resource"] == "query_seconds":
        return 504
    return next(_STATUSES[base] for base in type(error).__mro__ if base in _STATUSES)


def phrase(status: int) -> str:
    """What a status is called."""
    return HTTPStatus(status).phrase
