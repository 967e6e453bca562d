"""What maintenance and checks report: indexes, cleanup, recoveries, lint, pipelines.

Owns the names of these bodies. What a report lists stands in them as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from msgspec import convert, field

from omnigraph.maintain.reports import (
    CleanupReport,
    DirectoryCleanup,
    IndexChange,
    IndexReport,
    IndexState,
    IndexStatus,
    PendingIndex,
)
from omnigraph.wire.body import Body
from omnigraph.wire.graphs import EntityKind
from omnigraph.write.change.results import Recovery

if TYPE_CHECKING:
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.lang.lint_report import LintReport, Operation, QueryResult, Touched

# -- indexes -----------------------------------------------------------------------------


class IndexReportBody(Body, frozen=True):
    """What building indexes did; without any changes there is no commit."""

    uri: str
    branch: str
    graph_commit_id: str | None
    changes: tuple[IndexChange, ...]
    pending: tuple[PendingIndex, ...]

    @classmethod
    def of(cls, report: IndexReport, uri: str) -> IndexReportBody:
        """The report on a graph."""
        return cls(uri, report.branch, report.commit_id, report.changes, report.pending)


class IndexStatusBody(Body, frozen=True):
    """All indexes of a branch, by type and property."""

    uri: str
    branch: str
    graph_commit_id: str
    indexes: tuple[IndexState, ...]

    @classmethod
    def of(cls, found: IndexStatus, uri: str) -> IndexStatusBody:
        """The indexes of a graph."""
        return cls(uri, found.branch, found.commit_id, found.indexes)


# -- cleanup and recovery ----------------------------------------------------------------


class CleanupBody(Body, frozen=True):
    """What a cleanup removed under its rule, or would."""

    uri: str
    keep_versions: int | None
    older_than_secs: int | None
    dry_run: bool
    commits_reclaimed: int
    datasets: tuple[DirectoryCleanup, ...]

    @classmethod
    def of(
        cls, report: CleanupReport, uri: str, keep: int | None, older_than: timedelta | None
    ) -> CleanupBody:
        """The report on a graph, with the rule that was given."""
        return cls(
            uri,
            keep,
            None if older_than is None else int(older_than.total_seconds()),
            report.dry_run,
            report.commits_reclaimed,
            report.tables,
        )


class RecoveriesBody(Body, frozen=True):
    """All recoveries of a graph, newest first."""

    recoveries: tuple[Recovery, ...]

    @classmethod
    def of(cls, found: Sequence[Recovery]) -> RecoveriesBody:
        """The rows of the audit."""
        return cls(tuple(found))


# -- lint --------------------------------------------------------------------------------


class SchemaSourceBody(Body, frozen=True):
    """Where the schema is from: a file, or a graph."""

    kind: Literal["file", "graph"]
    path: str | None = None
    uri: str | None = None


class TouchedBody(Body, frozen=True):
    """A type that an operation reads or writes."""

    kind: EntityKind
    type_name: str


class ResultFieldBody(Body, frozen=True, kw_only=True):
    """One result column as a client sees it."""

    name: str
    kind: str
    item_kind: str | None = None
    vector_dim: int | None = None
    nullable: bool


class OperationBody(Body, frozen=True):
    """What a query returns, reads and writes."""

    result: list[ResultFieldBody]
    reads: list[TouchedBody]
    writes: list[TouchedBody]

    @classmethod
    def of(cls, operation: Operation) -> OperationBody:
        """The descriptor of a query."""
        return cls(
            convert(operation.result, list[ResultFieldBody], from_attributes=True),
            _touched(operation.reads),
            _touched(operation.writes),
        )


def _touched(types: Iterable[Touched]) -> list[TouchedBody]:
    return [TouchedBody("edge" if one.is_edge else "node", one.type_name) for one in types]


class LintedQueryBody(Body, frozen=True):
    """What lint says of one query; `error` is the first of its mistakes."""

    name: str
    kind: Literal["read", "mutation"]
    status: Literal["ok", "error"]
    warnings: tuple[str, ...] = ()
    error: str | None = None
    operation: OperationBody | None = None

    @classmethod
    def of(cls, result: QueryResult) -> LintedQueryBody:
        """The result for a query."""
        return cls(
            result.name,
            result.kind,
            "error" if result.diagnostics else "ok",
            result.warnings,
            result.diagnostics[0].summary if result.diagnostics else None,
            None if result.operation is None else OperationBody.of(result.operation),
        )


class FindingBody(Body, frozen=True):
    """A remark about the file as a whole."""

    severity: Literal["error", "warning", "info"]
    code: str
    message: str
    type_name: str | None = None
    property_name: str | None = field(default=None, name="property")
    query_names: tuple[str, ...] = ()


class DiagnosticBody(Body, frozen=True):
    """One mistake with its place in the text."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    code: str
    message: str
    hint: str | None

    @classmethod
    def of(cls, diagnostic: Diagnostic) -> DiagnosticBody:
        """The diagnostic, as the details of an error have it."""
        return convert(diagnostic.to_json(), cls)


class LintBody(Body, frozen=True):
    """What lint says of a schema, or of the queries of a file."""

    status: Literal["ok", "error"]
    schema_source: SchemaSourceBody
    query_path: str | None
    queries_processed: int
    errors: int
    warnings: int
    infos: int
    results: list[LintedQueryBody]
    findings: list[FindingBody]
    diagnostics: list[DiagnosticBody]

    @classmethod
    def of(
        cls, report: LintReport, schema_source: SchemaSourceBody, query_path: str | None
    ) -> LintBody:
        """The report, and where its texts are from."""
        return cls(
            "ok" if report.ok else "error",
            schema_source,
            query_path,
            len(report.results),
            report.errors,
            report.warnings,
            report.infos,
            [LintedQueryBody.of(result) for result in report.results],
            convert(report.findings, list[FindingBody], from_attributes=True),
            [DiagnosticBody.of(diagnostic) for diagnostic in report.diagnostics],
        )


# -- pipelines ---------------------------------------------------------------------------


class PipelineProblemBody(Body, frozen=True):
    """One thing that is wrong with the document of a pipeline."""

    path: str
    line: int
    message: str


class PipelineCheckBody(Body, frozen=True):
    """Whether a pipeline fits its graph and its sources, and all that does not."""

    uri: str
    pipeline: str
    valid: bool
    problems: list[PipelineProblemBody]

    @classmethod
    def of(
        cls, uri: str, pipeline: str, problems: Sequence[Mapping[str, Any]]
    ) -> PipelineCheckBody:
        """The outcome of a check; the problems are those of its error."""
        found = convert(problems, list[PipelineProblemBody])
        return cls(uri, pipeline, not found, found)
