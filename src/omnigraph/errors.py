"""Every error OmniGraph raises on purpose, in one tree.

    OmniGraphError
    ├── LanguageError
    │   ├── ParseError              parse_error
    │   ├── SchemaError             schema_error
    │   └── TypeCheckError          T1 … T25, else type_error
    ├── ParamError                  param_error
    ├── QueryError                  query_error
    ├── ValidationError             validation_error
    ├── CheckFailed                 check_failed
    ├── KeyConflict                 key_conflict
    ├── ReadSetChanged              read_set_conflict
    ├── Conflict                    conflict
    │   └── GraphReplaced           graph_replaced
    ├── VersionMismatch             version_mismatch
    ├── PreconditionFailed          precondition_failed
    ├── MergeConflicts              merge_conflicts
    ├── NotFound                    not_found
    │   └── BranchNotFound          not_found
    ├── BadRequest                  bad_request
    ├── ResourceLimit               resource_limit
    ├── BlobRangeNotSatisfiable     blob_range_not_satisfiable
    ├── QueryCancelled              query_cancelled
    ├── RecoveryRequired            recovery_required
    ├── SchemaChangeRefused         OG-…, else schema_change_refused
    ├── AlreadyInitialized          already_initialized
    ├── UnsupportedFormat           unsupported_format
    ├── PolicyDenied                policy_denied
    ├── ChangeCursorRejected        change_cursor_rejected
    ├── ChangeFeedGap               change_feed_gap
    ├── ChangeDiffRefused           change_diff_refused
    ├── MissingExtra                missing_extra
    ├── EngineError                 engine_error
    ├── EmbeddingError              embedding_error
    ├── ServerError                 server_error
    ├── Unauthenticated             unauthenticated
    ├── NotServed                   not_served
    ├── StorageError                storage_error
    └── InternalError               internal_error

Owns the classes, their stable codes and how much of a value a message quotes. Imports nothing of
the project but what a notebook shows them with: every layer may raise from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Rule = Literal[
    "range",
    "check",
    "enum",
    "required",
    "type",
    "unique",
    "endpoint",
    "cardinality",
    "format",
    "key_conflict",
]
StorageKind = Literal[
    "transient", "configuration", "not_found", "precondition", "permanent", "unknown"
]
EmbeddingKind = Literal[
    "configuration",
    "model",
    "dimension",
    "unavailable",
    "refused",
    "text_too_long",
    "bad_answer",
]

ServerKind = Literal["refused", "tls", "timeout", "lost", "busy", "bad_answer", "configuration"]

MAX_QUOTED = 200
"""How many characters of a value a message quotes."""


def quoted(value: object) -> str:
    """A value as a message may quote it: its text, cut if it is long."""
    try:
        text = str(value)
    except ValueError:  # Python does not print an integer of so many digits
        return "a number of thousands of digits"
    return text if len(text) <= MAX_QUOTED else f"{text[: MAX_QUOTED - 1]}…"


class OmniGraphError(Exception):
    """Root of the tree: a message for a person, a code and details for a program."""

    default_code: ClassVar[str] = "error"

    def __init__(
        self, message: str, *, code: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        message = _printable(message)
        super().__init__(message)
        self.message = message
        self.code = code if code is not None else self.default_code
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        return self.message

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows of it."""
        from omnigraph.display.failure import failure_lines

        return failure_lines(self, self.code)

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross processes: rebuilt as they are, whatever their constructor asks for."""
        return _restored, (type(self), self.args, self.__dict__)


def _printable(text: str) -> str:
    """A text that can be written: what a message quotes may hold half of a surrogate pair."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


def _restored(
    kind: type[OmniGraphError], args: tuple[Any, ...], state: dict[str, Any]
) -> OmniGraphError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class LanguageError(OmniGraphError):
    """Something is wrong with `.pg` or `.gq` text.

    ``message`` is the first problem in one line; ``report`` (and ``str``) shows
    every problem with file, line, column, the source line and a caret;
    ``details["diagnostics"]`` is the same as data.
    """

    default_code = "parse_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        report: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, details=details)
        self.report = self.message if report is None else _printable(report)

    def __str__(self) -> str:
        return self.report


class ParseError(LanguageError):
    """The text does not follow the grammar, or breaks a rule checked while parsing."""

    default_code = "parse_error"


class SchemaError(LanguageError):
    """The declarations of a schema do not fit together."""

    default_code = "schema_error"


class TypeCheckError(LanguageError):
    """A query does not fit the schema; ``code`` is the T-code where the language gives one."""

    default_code = "type_error"


class ParamError(OmniGraphError):
    """A parameter value does not fit its declaration."""

    default_code = "param_error"


class QueryError(OmniGraphError):
    """A query met values that it cannot be computed of: an integer too large, a broken pattern."""

    default_code = "query_error"


class ValidationError(OmniGraphError):
    """A row breaks a rule of the schema."""

    default_code = "validation_error"

    def __init__(
        self, message: str, *, rule: Rule, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, details={**(details or {}), "rule": rule})
        self.rule: Rule = rule


class CheckFailed(OmniGraphError):
    """A check of a pipeline has found rows in what it would publish; they are in the details."""

    default_code = "check_failed"


class KeyConflict(OmniGraphError):
    """A strict insert met a row that already has this id."""

    default_code = "key_conflict"


class ReadSetChanged(OmniGraphError):
    """What the write depended on was changed by somebody else meanwhile."""

    default_code = "read_set_conflict"


class Conflict(OmniGraphError):
    """The request contradicts the state of the graph (branch exists, apply running, …)."""

    default_code = "conflict"


class GraphReplaced(Conflict):
    """Another graph lies where the one was that a handle was opened on."""

    default_code = "graph_replaced"


class VersionMismatch(OmniGraphError):
    """A table is not at the version the publisher expected."""

    default_code = "version_mismatch"

    def __init__(self, *, type_key: str, expected: int, actual: int) -> None:
        super().__init__(
            f"{type_key} is at version {actual}, expected {expected}: read again and retry",
            details={"type_key": type_key, "expected": expected, "actual": actual},
        )
        self.type_key = type_key
        self.expected = expected
        self.actual = actual


class PreconditionFailed(OmniGraphError):
    """A conditional write found another head commit than the one it named."""

    default_code = "precondition_failed"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One place where two branches disagree."""

    kind: str
    entity_kind: Literal["node", "edge", "interface"]
    type_name: str
    entity_id: str
    """Empty where the schemas disagree, and not rows."""
    message: str
    property: str | None = None
    base: Any = None
    source: Any = None
    target: Any = None


def _shown_conflict(found: MergeConflict) -> str:
    named = f"{found.entity_kind} type '{found.type_name}'"
    if found.entity_id:
        return f"{named}, entity id '{quoted(found.entity_id)}' ({found.kind})"
    return f"{named} ({found.kind}): {found.message}"


class MergeConflicts(OmniGraphError):
    """A merge stopped; ``conflicts`` lists every disagreement, not only the first."""

    default_code = "merge_conflicts"

    def __init__(self, conflicts: Sequence[MergeConflict]) -> None:
        shown = [_shown_conflict(found) for found in conflicts[:3]]
        if len(conflicts) > 3:
            shown.append(f"and {len(conflicts) - 3} more")
        super().__init__(f"merge conflicts: {'; '.join(shown)}", details={"count": len(conflicts)})
        self.conflicts = tuple(conflicts)

    def _repr_html_(self) -> str:
        from omnigraph.display.history import conflicts_html

        return conflicts_html(self.conflicts)


class NotFound(OmniGraphError):
    """The named thing does not exist."""

    default_code = "not_found"


class BranchNotFound(NotFound):
    """The named branch does not exist."""


class BadRequest(OmniGraphError):
    """The request itself makes no sense."""

    default_code = "bad_request"


class ResourceLimit(OmniGraphError):
    """The request is larger than a stated limit."""

    default_code = "resource_limit"


class BlobRangeNotSatisfiable(OmniGraphError):
    """A range of bytes that does not lie in the blob it was asked of."""

    default_code = "blob_range_not_satisfiable"

    def __init__(self, *, start: int, end: int, length: int) -> None:
        super().__init__(
            f"Blob range is not satisfiable: {start} to {end} of {length} bytes",
            details={"start": start, "end": end, "length": length},
        )


class QueryCancelled(OmniGraphError):
    """Somebody stopped the query before it was done."""

    default_code = "query_cancelled"


class RecoveryRequired(OmniGraphError):
    """A derived state must be recovered before this can go on."""

    default_code = "recovery_required"


class SchemaChangeRefused(OmniGraphError):
    """A migration contains steps that cannot be applied; ``code`` is the first OG-code.

    ``report`` shows each of them with its place in the desired schema.
    """

    default_code = "schema_change_refused"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        report: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, details=details)
        heading = f"error[{self.code}]: {self.message}"
        self.report = heading if report is None else _printable(report)


class AlreadyInitialized(OmniGraphError):
    """The location already holds a graph."""

    default_code = "already_initialized"


class UnsupportedFormat(OmniGraphError):
    """The graph was written in a storage format this version does not handle."""

    default_code = "unsupported_format"


class PolicyDenied(OmniGraphError):
    """The policy does not allow this actor to do this."""

    default_code = "policy_denied"


class ChangeCursorRejected(OmniGraphError):
    """A change-feed cursor is malformed or belongs to something else."""

    default_code = "change_cursor_rejected"


class ChangeFeedGap(OmniGraphError):
    """The history a cursor points into was cleaned up."""

    default_code = "change_feed_gap"


class ChangeDiffRefused(OmniGraphError):
    """Two states cannot be compared row by row."""

    default_code = "change_diff_refused"


class MissingExtra(OmniGraphError):
    """What was asked for needs libraries that are not installed; the message says how they are."""

    default_code = "missing_extra"

    def __init__(
        self, what: str, *, extra: str, missing: Sequence[str], otherwise: str | None = None
    ) -> None:
        message = f"{what} needs the {extra} extra: pip install 'omnigraph[{extra}]'"
        super().__init__(
            message if otherwise is None else f"{message}, or {otherwise}",
            details={"extra": extra, "missing": list(missing)},
        )


class EngineError(OmniGraphError):
    """Spark could not be had, or a job on it failed; its log file is in the details."""

    default_code = "engine_error"


class EmbeddingError(OmniGraphError):
    """A vector could not be made; ``kind`` says why, and so whether a retry can help.

    ``position`` is that of the text among those that were asked for, if one of them is to blame.
    """

    default_code = "embedding_error"

    def __init__(
        self,
        message: str,
        *,
        kind: EmbeddingKind,
        details: Mapping[str, Any] | None = None,
        position: int | None = None,
    ) -> None:
        super().__init__(message, details={**(details or {}), "kind": kind})
        self.kind: EmbeddingKind = kind
        self.position = position


class ServerError(OmniGraphError):
    """A server was not reached, or what it said is no answer; ``kind`` says why.

    ``details["outcome"]`` is `unknown` for a write that may have happened.
    """

    default_code = "server_error"

    def __init__(
        self, message: str, *, kind: ServerKind, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message, details={**(details or {}), "kind": kind})
        self.kind: ServerKind = kind


class Unauthenticated(OmniGraphError):
    """A server wants a token, or does not know the one that it was given."""

    default_code = "unauthenticated"


class NotServed(OmniGraphError):
    """A graph on a server cannot be asked for this."""

    default_code = "not_served"


class StorageError(OmniGraphError):
    """The storage below failed; ``kind`` says whether a retry can help."""

    default_code = "storage_error"

    def __init__(
        self,
        message: str,
        *,
        kind: StorageKind = "unknown",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, details={**(details or {}), "kind": kind})
        self.kind: StorageKind = kind


class InternalError(OmniGraphError):
    """Something happened that nobody had thought of: a defect of OmniGraph."""

    default_code = "internal_error"
