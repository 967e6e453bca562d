"""Errors as JSON: their code, and the one detail that goes with it."""

from __future__ import annotations

import inspect

import msgspec
import pytest

from omnigraph import errors
from omnigraph.wire.body import encode
from omnigraph.wire.errors import ErrorBody, code_of

CONFLICT = errors.MergeConflict("divergent_update", "node", "Person", "Ann", "both changed it")
PLACE = {"member": "graph_head:main", "expected": "01A", "actual": "01B"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            errors.PreconditionFailed(
                "lost", details={"branch": "main", "expected": "01A", "actual": "01B"}
            ),
            (
                '{"error":"lost","precondition_failure":'
                '{"branch":"main","expected":"01A","actual":"01B"}}'
            ),
        ),
        (
            errors.MergeConflicts([CONFLICT]),
            (
                "{\"error\":\"merge conflicts: node type 'Person', entity id 'Ann' "
                '(divergent_update)","code":"conflict","merge_conflicts":[{"entity_kind":"node",'
                '"type_name":"Person","entity_id":"Ann","kind":"divergent_update",'
                '"message":"both changed it","property":null,"base":null,"source":null,'
                '"target":null}]}'
            ),
        ),
        (
            errors.VersionMismatch(type_key="edge:Knows", expected=3, actual=4),
            (
                '{"error":"edge:Knows is at version 4, expected 3: read again and retry",'
                '"code":"conflict","published_dataset_version_conflict":{"entity_kind":"edge",'
                '"type_name":"Knows","expected_published_dataset_version":3,'
                '"actual_published_dataset_version":4}}'
            ),
        ),
        (
            errors.BlobRangeNotSatisfiable(start=4, end=9, length=3),
            (
                '{"error":"Blob range is not satisfiable: 4 to 9 of 3 bytes",'
                '"code":"bad_request","blob_range":{"start":4,"end":9,"length":3}}'
            ),
        ),
        (
            errors.ReadSetChanged("moved", details=PLACE),
            (
                '{"error":"moved","code":"conflict","read_set_conflict":'
                '{"member":"graph_head:main","expected":"01A","actual":"01B"}}'
            ),
        ),
        (
            errors.ReadSetChanged("moved", details={"member": "schema_identity"}),
            (
                '{"error":"moved","code":"conflict","read_set_conflict":'
                '{"member":"schema_identity","expected":null,"actual":null}}'
            ),
        ),
        (
            errors.KeyConflict(
                "there", details={"type_key": "node:Person", "entity_id": "Ann", "total": 1}
            ),
            (
                '{"error":"there","code":"conflict","key_conflict":'
                '{"entity_kind":"node","type_name":"Person","entity_id":"Ann"}}'
            ),
        ),
        (
            errors.KeyConflict("there", details={"type_key": "node:Person"}),
            (
                '{"error":"there","code":"conflict","key_conflict":'
                '{"entity_kind":"node","type_name":"Person"}}'
            ),
        ),
        (
            errors.ResourceLimit(
                "late", details={"resource": "query_seconds", "limit": 0.5, "actual": 1}
            ),
            (
                '{"error":"late","code":"bad_request","resource_limit":'
                '{"resource":"query_seconds","limit":0.5,"actual":1}}'
            ),
        ),
        (
            errors.RecoveryRequired("wait", details={"operation_id": "01J"}),
            '{"error":"wait","recovery_required":{"operation_id":"01J"}}',
        ),
        (
            errors.ChangeFeedGap(
                "gone",
                details={
                    "first_unreadable_commit_id": "01A",
                    "commit_id": "01A",
                    "oldest_readable_commit_id": "01B",
                },
            ),
            '{"error":"gone","change_feed_gap":{"first_unreadable_commit_id":"01A"}}',
        ),
        (
            errors.ChangeFeedGap(
                "gone", details={"cursor": "cur", "first_unreadable_commit_id": "01A"}
            ),
            (
                '{"error":"gone","change_feed_gap":'
                '{"cursor":"cur","first_unreadable_commit_id":"01A"}}'
            ),
        ),
        (
            errors.ChangeDiffRefused(
                "no", details={"reason": "schema_boundary", "graph_commit_id": "01A"}
            ),
            (
                '{"error":"no","code":"conflict","change_diff_refusal":'
                '{"reason":"schema_boundary","graph_commit_id":"01A"}}'
            ),
        ),
        (
            errors.SchemaChangeRefused(
                "no",
                code="OG-MF-103",
                details={
                    "entity": "node:A.x",
                    "refusals": [{"entity": "node:A.x", "reason": "no", "code": "OG-MF-103"}],
                    "supported": False,
                    "steps": [{"kind": "unsupported_change"}],
                },
            ),
            (
                '{"error":"no","code":"bad_request","schema_change_refusal":{"refusals":'
                '[{"entity":"node:A.x","reason":"no","code":"OG-MF-103"}],'
                '"steps":[{"kind":"unsupported_change"}]},'
                '"reason":{"type":"SchemaChangeRefused","code":"OG-MF-103",'
                '"report":"error[OG-MF-103]: no"}}'
            ),
        ),
        (
            errors.BranchNotFound("branch 'x' not found"),
            '{"error":"branch \'x\' not found","code":"not_found"}',
        ),
        (
            errors.ParseError("wrong", report="error: wrong"),
            (
                '{"error":"error: wrong","code":"bad_request",'
                '"reason":{"type":"ParseError","code":"parse_error","message":"wrong"}}'
            ),
        ),
        (errors.PolicyDenied("no"), '{"error":"no","code":"forbidden"}'),
        (
            errors.StorageError("broken"),
            (
                '{"error":"broken","code":"internal",'
                '"reason":{"type":"StorageError","code":"storage_error"}}'
            ),
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_written_to_the_letter_and_read_back(
    error: errors.OmniGraphError, text: str
) -> None:
    body = ErrorBody.of(error)
    assert encode(body).decode() == text
    assert msgspec.json.decode(text, type=ErrorBody) == body


def test_only_these_have_no_code() -> None:
    kinds = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.OmniGraphError)
    }
    assert {kind.__name__ for kind in kinds if code_of(kind) is None} == {
        "PreconditionFailed",
        "RecoveryRequired",
        "ChangeFeedGap",
    }
