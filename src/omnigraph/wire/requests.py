"""What a client asks of a server: the JSON bodies of its requests.

Owns their names and defaults. Whether a request makes sense is for the façade to say.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

Params = dict[str, Any]
Mode = Literal["append", "merge", "overwrite", "create", "patch"]


class QueryRequest(Struct, frozen=True):
    """A read query, on a branch as it is now or on what a commit showed."""

    query: str
    name: str | None = None
    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None


class ReadRequest(Struct, frozen=True):
    """The same under its older names."""

    query_source: str
    query_name: str | None = None
    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None


class MutateRequest(Struct, frozen=True):
    """A query that changes a branch."""

    query: str
    name: str | None = None
    params: Params | None = None
    branch: str | None = None


class ChangeRequest(Struct, frozen=True):
    """The same under its older names."""

    query_source: str
    query_name: str | None = None
    params: Params | None = None
    branch: str | None = None

    @property
    def renamed(self) -> MutateRequest:
        """The request under the names of today."""
        return MutateRequest(self.query_source, self.query_name, self.params, self.branch)


class InvokeRequest(Struct, frozen=True):
    """What a stored query is called with."""

    params: Params | None = None
    branch: str | None = None
    snapshot: str | None = None
    expect_mutation: bool | None = None


class LoadRequest(Struct, frozen=True):
    """Entities as NDJSON text, to be loaded as one commit."""

    data: str
    branch: str | None = None
    from_: str | None = field(default=None, name="from")
    mode: Mode = "merge"


class ExportRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """What of a branch is exported; without names of types everything."""

    branch: str | None = None
    type_names: list[str] = []


class BaselineRequest(Struct, frozen=True):
    """What of a branch a baseline holds; the operations only bind its cursor."""

    branch: str | None = None
    kind: list[Literal["node", "edge"]] | None = None
    type: list[str] | None = None
    op: list[Literal["insert", "update", "delete"]] | None = None


class BranchCreateRequest(Struct, frozen=True):
    """A branch to be made."""

    name: str
    from_: str | None = field(default=None, name="from")


class BranchMergeRequest(Struct, frozen=True):
    """A branch to be merged into another."""

    source: str
    target: str | None = None
    delete_branch: bool = False


class SchemaApplyRequest(Struct, frozen=True):
    """A schema that a branch is to get."""

    schema_source: str
    allow_data_loss: bool = False
    branch: str | None = None


class MaintainRequest(Struct, frozen=True):
    """A round of maintenance; commits are only reclaimed if a rule says which may go."""

    branch: str | None = None
    max_seconds: float | None = None
    max_bytes: int | None = None
    keep: int | None = None
    older_than_secs: int | None = None
    dry_run: bool = False


class EmbedRequest(Struct, frozen=True):
    """Vectors of stored nodes that are to be made."""

    type: str
    property: str | None = None
    branch: str | None = None
    where: str | None = None
    only_missing: bool = True
    commit_rows: int | None = None
