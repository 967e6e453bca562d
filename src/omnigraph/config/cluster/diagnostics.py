"""Diagnostics of a cluster: what is wrong, where, and under which stable code.

Owns the codes. Every one of them is explained in the user documentation, and none is given a
second meaning.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

Severity = Literal["error", "warning"]
ErrorCode = Literal[
    "apply_approval_invariant_violation",
    "approval_not_required",
    "approval_write_error",
    "catalog_payload_digest_mismatch",
    "catalog_payload_missing",
    "catalog_payload_read_error",
    "cluster_config_read_error",
    "cluster_empty",
    "cluster_no_healthy_graphs",
    "cluster_recovery_unattributed",
    "cluster_state_missing",
    "config_dir_not_found",
    "conflicting_graph_manifest_observation",
    "dangling_embedding_provider_reference",
    "dangling_graph_reference",
    "duplicate_policy_binding",
    "duplicate_query_name",
    "duplicate_yaml_key",
    "embedding_api_key_inline",
    "embedding_api_key_required",
    "embedding_provider_digest_mismatch",
    "embedding_provider_missing",
    "embedding_provider_profile_missing",
    "empty_metadata_name",
    "external_blob_policy_digest_mismatch",
    "future_phase_field",
    "graph_create_failed",
    "graph_create_incomplete",
    "graph_delete_export_in_progress",
    "graph_delete_failed",
    "graph_not_applied",
    "graph_observation_error",
    "invalid_cluster_yaml",
    "invalid_embedding_provider",
    "invalid_external_blob_base",
    "invalid_external_blob_policy",
    "invalid_resource_id",
    "invalid_state_json",
    "invalid_state_lock",
    "invalid_storage_root",
    "policy_bindings_missing",
    "policy_file_missing",
    "policy_invalid",
    "policy_missing_applies_to",
    "policy_mixed_binding_kinds",
    "query_dir_unreadable",
    "query_file_missing",
    "query_key_mismatch",
    "query_parse_error",
    "query_typecheck_error",
    "recovery_sidecar_write_error",
    "removed_streaming_declaration",
    "resource_content_changed",
    "resource_payload_write_error",
    "schema_apply_failed",
    "schema_catalog_error",
    "schema_file_missing",
    "schema_parse_error",
    "state_already_exists",
    "state_cas_mismatch",
    "state_lock_error",
    "state_lock_held",
    "state_lock_id_mismatch",
    "state_lock_missing",
    "state_lock_read_error",
    "state_missing",
    "state_read_error",
    "state_write_error",
    "storage_root_invalid",
    "unsupported_cluster_config_version",
    "unsupported_state_backend",
    "unsupported_state_lock_version",
    "unsupported_state_version",
    "wrong_kind_reference",
]
WarningCode = Literal[
    "apply_dependency_blocked",
    "apply_unsupported_change",
    "approval_stale",
    "catalog_payload_mismatch",
    "catalog_payload_missing",
    "cluster_recovery_pending",
    "cluster_recovery_rolled_forward",
    "external_blob_ingress_default_deny",
    "graph_create_skipped",
    "graph_delete_incomplete",
    "graph_delete_skipped",
    "invalid_state_lock",
    "query_dir_empty",
    "query_typecheck_skipped",
    "recovery_sidecar_cleanup_failed",
    "recovery_sidecar_read_error",
    "schema_apply_skipped",
    "schema_preview_unavailable",
    "state_lock_disabled",
    "state_lock_read_error",
    "state_missing",
    "unsupported_state_lock_version",
]
ERRORS: tuple[str, ...] = get_args(ErrorCode)
WARNINGS: tuple[str, ...] = get_args(WarningCode)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong, or worth knowing; ``path`` is the key, file or address it is of."""

    code: str
    severity: Severity
    path: str
    message: str

    def __str__(self) -> str:
        word = "ERROR" if self.severity == "error" else "WARN "
        return f"{word} {self.code} {self.path}: {self.message}"


@dataclass(slots=True)
class Diagnostics:
    """Everything that was found, in the order of finding it, and nothing twice."""

    found: list[Diagnostic] = field(default_factory=list)

    def error(self, code: ErrorCode, path: str, message: str) -> None:
        """Something that stands in the way."""
        self.add(Diagnostic(code, "error", path, message))

    def warn(self, code: WarningCode, path: str, message: str) -> None:
        """Something that does not."""
        self.add(Diagnostic(code, "warning", path, message))

    @property
    def has_errors(self) -> bool:
        """Whether anything stands in the way."""
        return any(one.severity == "error" for one in self.found)

    def add(self, diagnostic: Diagnostic) -> None:
        """One more, unless it was found before."""
        if diagnostic not in self.found:
            self.found.append(diagnostic)
