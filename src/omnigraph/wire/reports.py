"""What maintenance and checks report: indexes, cleanup, recoveries, verify, lint, pipelines.

Owns the names of these bodies. What a report lists stands in them as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from msgspec import convert, field

from omnigraph.maintain.repair_report import DatasetRepair, RepairReport, Rescue
from omnigraph.maintain.reports import (
    CleanupReport,
    DatasetOptimize,
    DirectoryCleanup,
    IndexChange,
    IndexReport,
    IndexState,
    IndexStatus,
    OptimizeReport,
    PendingIndex,
)
from omnigraph.maintain.verify.report import BranchVerdict, Looked, VerifyReport
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


# -- optimize ----------------------------------------------------------------------------


class PendingPropertyBody(Body, frozen=True):
    """A wanted index that was not built, and why."""

    property: str
    reason: str


class OptimizedBody(Body, frozen=True):
    """What was done to one type, or would be; `__manifest` is the log of the branch."""

    type_key: str
    fragments_removed: int
    fragments_added: int
    rows_rewritten: int
    committed: bool
    skipped: str | None
    published_dataset_version: int | None
    lance_head_version: int | None
    indexes: tuple[IndexChange, ...]
    indexes_dropped: tuple[str, ...]
    pending_indexes: tuple[PendingPropertyBody, ...]

    @classmethod
    def of(cls, done: DatasetOptimize) -> OptimizedBody:
        """What was done."""
        return cls(
            done.type_key,
            done.fragments_removed,
            done.fragments_added,
            done.rows_rewritten,
            done.committed,
            done.skipped,
            done.published_dataset_version,
            done.lance_version,
            done.indexes,
            done.indexes_dropped,
            tuple(PendingPropertyBody(one.property, one.reason) for one in done.pending),
        )


class OptimizeBody(Body, frozen=True):
    """What optimizing a branch did, or would do; without anything to do there is no commit."""

    uri: str
    branch: str
    graph_commit_id: str | None
    engine: str
    dry_run: bool
    datasets: tuple[OptimizedBody, ...]

    @classmethod
    def of(cls, report: OptimizeReport, uri: str) -> OptimizeBody:
        """The report on a graph."""
        return cls(
            uri,
            report.branch,
            report.commit_id,
            report.engine,
            report.dry_run,
            tuple(OptimizedBody.of(one) for one in report.datasets),
        )


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


# -- verify ------------------------------------------------------------------------------


class VerifyFindingBody(Body, frozen=True):
    """One thing that is wrong, or worth a word; what is not known of it is left out."""

    kind: str
    severity: Literal["damage", "note"]
    message: str
    path: str | None = None
    type_key: str | None = None
    property_name: str | None = field(default=None, name="property")
    rule: str | None = None
    branches: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    commit_count: int = 0
    entities: tuple[str, ...] = ()
    entity_count: int = 0


class VerifyBody(Body, frozen=True):
    """What verifying a graph found, and how much was looked at."""

    uri: str
    deep: bool
    sound: bool
    findings: list[VerifyFindingBody]
    branches: tuple[BranchVerdict, ...]
    looked: Looked

    @classmethod
    def of(cls, report: VerifyReport, uri: str) -> VerifyBody:
        """The report on a graph."""
        findings = convert(report.findings, list[VerifyFindingBody], from_attributes=True)
        return cls(uri, report.deep, report.is_sound, findings, report.branches, report.looked)


class RepairBody(Body, frozen=True):
    """What was mended, or would be, and which branches have lost something."""

    uri: str
    confirm: bool
    force: bool
    graph_manifest_version: int | None
    datasets: tuple[DatasetRepair, ...]
    repaired: tuple[str, ...]
    rescues: tuple[Rescue, ...]
    findings: list[VerifyFindingBody]

    @classmethod
    def of(cls, report: RepairReport, uri: str, *, force: bool) -> RepairBody:
        """The report on a graph."""
        return cls(
            uri,
            report.confirm,
            force,
            report.graph_manifest_version,
            report.datasets,
            report.repaired,
            report.rescues,
            convert(report.found.findings, list[VerifyFindingBody], from_attributes=True),
        )


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
