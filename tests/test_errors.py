"""The error tree: as drawn, as coded, as exported."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.errors import MergeConflict, OmniGraphError

# The contract: programs compare these strings.
CODES = {
    "OmniGraphError": "error",
    "LanguageError": "parse_error",
    "ParseError": "parse_error",
    "SchemaError": "schema_error",
    "TypeCheckError": "type_error",
    "ParamError": "param_error",
    "QueryError": "query_error",
    "ValidationError": "validation_error",
    "CheckFailed": "check_failed",
    "KeyConflict": "key_conflict",
    "ReadSetChanged": "read_set_conflict",
    "Conflict": "conflict",
    "GraphReplaced": "graph_replaced",
    "VersionMismatch": "version_mismatch",
    "PreconditionFailed": "precondition_failed",
    "MergeConflicts": "merge_conflicts",
    "NotFound": "not_found",
    "BranchNotFound": "not_found",
    "BadRequest": "bad_request",
    "ResourceLimit": "resource_limit",
    "BlobRangeNotSatisfiable": "blob_range_not_satisfiable",
    "QueryCancelled": "query_cancelled",
    "RecoveryRequired": "recovery_required",
    "SchemaChangeRefused": "schema_change_refused",
    "AlreadyInitialized": "already_initialized",
    "UnsupportedFormat": "unsupported_format",
    "PolicyDenied": "policy_denied",
    "ChangeCursorRejected": "change_cursor_rejected",
    "ChangeFeedGap": "change_feed_gap",
    "ChangeDiffRefused": "change_diff_refused",
    "MissingExtra": "missing_extra",
    "EngineError": "engine_error",
    "EmbeddingError": "embedding_error",
    "ServerError": "server_error",
    "Unauthenticated": "unauthenticated",
    "NotServed": "not_served",
    "StorageError": "storage_error",
    "InternalError": "internal_error",
}
ROW = re.compile(r"^ {4}(?P<bars>[│ ]*)[├└]── (?P<name>\w+)(?: {2,}(?P<code>.+))?$", re.MULTILINE)


def classes() -> dict[str, type[OmniGraphError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, OmniGraphError)
    }


def drawn() -> dict[str, tuple[str, str | None]]:
    """Each class in the docstring's tree, with its parent and the code beside it."""
    found: dict[str, tuple[str, str | None]] = {}
    path = ["OmniGraphError"]
    for row in ROW.finditer(errors.__doc__ or ""):
        depth = len(row["bars"]) // 4 + 1
        del path[depth:]
        found[row["name"]] = (path[-1], row["code"])
        path.append(row["name"])
    return found


def test_the_drawn_tree_is_the_real_tree() -> None:
    real = {
        name: cls.__bases__[0].__name__ for name, cls in classes().items() if cls != OmniGraphError
    }
    assert {name: parent for name, (parent, _) in drawn().items()} == real


def test_the_drawn_codes_are_the_real_codes() -> None:
    for name, (_, code) in drawn().items():
        if code is not None:
            assert code.removeprefix("T1 … T25, else ").removeprefix("OG-…, else ") == CODES[name]


def test_codes_are_the_contract() -> None:
    assert {name: cls.default_code for name, cls in classes().items()} == CODES


def test_an_error_is_a_message_a_code_and_details() -> None:
    error = errors.NotFound("no branch `x`", details={"branch": "x"})
    assert (str(error), error.code, error.details) == (
        "no branch `x`",
        "not_found",
        {"branch": "x"},
    )
    assert errors.TypeCheckError("m", code="T4").code == "T4"


def test_a_language_error_shows_its_report() -> None:
    error = errors.ParseError("short", report="a.pg:1:2: short\n  node")
    assert (error.message, str(error)) == ("short", "a.pg:1:2: short\n  node")
    assert str(errors.SchemaError("only a message")) == "only a message"


def test_errors_carry_what_programs_need() -> None:
    assert errors.ValidationError("m", rule="unique").details == {"rule": "unique"}
    assert errors.StorageError("m", kind="transient").details == {"kind": "transient"}
    mismatch = errors.VersionMismatch(type_key="node:Person", expected=3, actual=4)
    assert mismatch.details == {"type_key": "node:Person", "expected": 3, "actual": 4}
    assert "is at version 4, expected 3" in str(mismatch)


@pytest.mark.parametrize(
    ("count", "tail"),
    [(1, "'0' (divergent_update)"), (3, "'2' (divergent_update)"), (5, "; and 2 more")],
)
def test_a_merge_shows_the_first_conflicts_and_keeps_all(count: int, tail: str) -> None:
    conflicts = [
        errors.MergeConflict("divergent_update", "node", "Person", str(n), f"c{n}")
        for n in range(count)
    ]
    error = errors.MergeConflicts(conflicts)
    assert str(error).endswith(tail)
    assert error.conflicts == tuple(conflicts)


def test_the_public_names_are_true() -> None:
    assert sorted(omnigraph.__all__) == [
        "Cancellation",
        "CsvOptions",
        "Graph",
        "MigrationPlan",
        "OmniGraphError",
        "SchemaCommit",
        "SchemaResult",
        "Session",
        "__version__",
        "errors",
        "infer",
        "init",
        "open",
        "project",
        "repair",
        "verify",
    ]
    for name in omnigraph.__all__:
        assert hasattr(omnigraph, name)


def test_errors_cross_processes() -> None:
    conflict = MergeConflict("divergent_update", "node", "Person", "ann", "both changed ann")
    originals: list[OmniGraphError] = [
        errors.ValidationError("too old", rule="range", details={"line": 3}),
        errors.VersionMismatch(type_key="node:Person", expected=1, actual=2),
        errors.StorageError("no answer", kind="transient"),
        errors.ParseError("wrong", report="wrong\n  ^"),
        errors.MergeConflicts([conflict]),
        errors.KeyConflict("'a' exists"),
    ]
    for original in originals:
        copy = pickle.loads(pickle.dumps(original))  # noqa: S301 - of our own making
        assert type(copy) is type(original)
        assert (str(copy), vars(copy)) == (str(original), vars(original))
