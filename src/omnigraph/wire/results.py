"""What a command or a request gave: rows, plans, writes, and files that were written.

Owns the names of these bodies. Rows are as JSON has them, whoever found them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, UnsetType, convert

from omnigraph.wire.body import Body
from omnigraph.wire.graphs import CommitBody

if TYPE_CHECKING:
    from omnigraph.embed.files import FileSummary
    from omnigraph.generate.people_graph import GeneratedGraph
    from omnigraph.read.output.export import ExportReport
    from omnigraph.read.output.result import Result
    from omnigraph.read.plan.explain import Explanation
    from omnigraph.write.backfill import EmbedResult
    from omnigraph.write.change.results import (
        EmptiedProperties,
        LoadResult,
        MutationResult,
    )

Row = Mapping[str, Any]

# -- reads -------------------------------------------------------------------------------


class TargetBody(Body, frozen=True):
    """What was read: a branch, or a commit."""

    branch: str | None
    snapshot: str | None


class QueryBody(Body, frozen=True, kw_only=True):
    """What a query returned; without rows it may have no columns either."""

    query_name: str
    target: TargetBody
    row_count: int
    columns: tuple[str, ...] = ()
    rows: list[Row]
    graph_commit_id: str | None = None


@dataclass(frozen=True)
class ReadOutput:
    """What a query returned, here or on a server, in pages of rows that can be had again."""

    query_name: str
    branch: str | None
    snapshot: str | None
    row_count: int
    columns: Sequence[str]
    pages: Callable[[], Iterable[Sequence[Row]]]
    commit_id: str | None = None

    @classmethod
    def of(cls, result: Result) -> ReadOutput:
        """The output of a query that ran here."""
        return cls(
            result.query_name,
            result.branch,
            result.snapshot,
            len(result),
            result.columns,
            result.pages,
            result.commit_id,
        )

    def rows(self) -> Iterator[Row]:
        """All rows."""
        return (row for page in self.pages() for row in page)

    @property
    def whole(self) -> QueryBody:
        """All of it as one body."""
        return QueryBody(
            query_name=self.query_name,
            target=TargetBody(self.branch, self.snapshot),
            row_count=self.row_count,
            columns=tuple(self.columns),
            rows=list(self.rows()),
            graph_commit_id=self.commit_id,
        )


class TotalBody(Body, frozen=True):
    """What a whole run took."""

    rows: int
    seconds: float
    requests: int | None


class ExplanationBody(Body, frozen=True):
    """How a query would be run, or how it was; operators say what there is to say of them."""

    query_name: str
    target: TargetBody
    graph_commit_id: str
    analyzed: bool
    operators: list[dict[str, Any]]
    total: TotalBody | None = None

    @classmethod
    def of(cls, explanation: Explanation) -> ExplanationBody:
        """The explanation as its own JSON has it."""
        return convert(explanation.to_json(), cls)


class EntityCountBody(Body, frozen=True):
    """How many entities of a type were written."""

    name: str
    entities: int


class ExportBody(Body, frozen=True):
    """What an export wrote, and where."""

    uri: str
    branch: str | None
    out: str
    nodes: list[EntityCountBody]
    edges: list[EntityCountBody]
    total_entities: int
    bytes: int
    snapshot: str | None = None

    @classmethod
    def of(
        cls, report: ExportReport, uri: str, branch: str, snapshot: str | None = None
    ) -> ExportBody:
        """The report of an export of a branch, or of a commit."""
        nodes, edges = (
            [EntityCountBody(name, count) for name, count in sorted(counts.items())]
            for counts in (report.nodes, report.edges)
        )
        shown = branch if snapshot is None else None
        return cls(uri, shown, report.path, nodes, edges, report.total, report.bytes, snapshot)


# -- writes ------------------------------------------------------------------------------


class EmptiedPropertiesBody(Body, frozen=True):
    """Rows that an insert has replaced, and what they have lost by it."""

    code: str
    message: str
    type_name: str
    rows: int
    properties: list[str]

    @classmethod
    def of(cls, warning: EmptiedProperties) -> EmptiedPropertiesBody:
        """The warning of a mutation."""
        return cls(
            warning.code,
            str(warning),
            warning.type_name,
            warning.rows,
            list(warning.properties),
        )


class MutationBody(Body, frozen=True):
    """What a mutation did; `commit` is null when nothing changed, `rows` are what it returns."""

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor_id: str | None
    commit: CommitBody | None
    warnings: list[EmptiedPropertiesBody]
    repeats_run: bool = False
    rows: list[dict[str, Any]] | UnsetType = UNSET

    @classmethod
    def of(cls, result: MutationResult) -> MutationBody:
        """The result of a mutation."""
        return cls(
            result.branch,
            result.query_name,
            result.affected_nodes,
            result.affected_edges,
            result.actor,
            CommitBody.of_any(result.commit),
            [EmptiedPropertiesBody.of(warning) for warning in result.warnings],
            result.repeats_run,
            UNSET if result.rows is None else result.rows,
        )


class LoadedTypeBody(Body, frozen=True):
    """How many input rows of a type were accepted."""

    name: str
    entities_loaded: int


class TypeChangesBody(Body, frozen=True):
    """What a load does to the rows of one type, by the key of the type."""

    type: str
    inserted: int
    replaced: int
    patched: int
    emptied: int


class LoadBody(Body, frozen=True, kw_only=True):
    """What a load did, types by name.

    What was left out is told only where something was, what the work took only of a bulk load, and
    what happens to stored rows not of a load that was done before.
    """

    uri: str | None = None
    pipeline: str | None = None
    branch: str
    mode: str
    base_branch: str | None
    branch_created: bool
    nodes: list[LoadedTypeBody]
    edges: list[LoadedTypeBody]
    total_entities: int
    actor_id: str | None
    commit: CommitBody | None
    dry_run: bool = False
    repeats_run: bool = False
    rejected: int = 0
    rejects: dict[str, int] | None = None
    rejects_file: str | UnsetType | None = UNSET
    changes: list[TypeChangesBody] | None = None
    engine: str | None = None
    fragments: int | None = None
    bytes: int | None = None
    seconds: dict[str, float] | None = None
    log_file: str | UnsetType | None = UNSET

    @classmethod
    def of(
        cls, result: LoadResult, *, uri: str | None = None, pipeline: str | None = None
    ) -> LoadBody:
        """The result of a load, and the graph and the pipeline it was told to use."""
        work: dict[str, Any] = {}
        if result.work is not None:
            work = {
                "engine": result.engine,
                "fragments": result.work.fragments,
                "bytes": result.work.bytes,
                "seconds": {name: round(took, 3) for name, took in result.work.seconds.items()},
                "log_file": result.work.log_file,
            }
        return cls(
            uri=uri,
            pipeline=pipeline,
            branch=result.branch,
            mode=result.mode,
            base_branch=result.base_branch,
            branch_created=result.branch_created,
            nodes=_loaded(result.nodes),
            edges=_loaded(result.edges),
            total_entities=result.total,
            actor_id=result.actor,
            commit=CommitBody.of_any(result.published),
            dry_run=result.is_dry_run,
            repeats_run=result.repeats_run,
            rejected=result.rejected,
            rejects=dict(result.rejects) if result.rejected else None,
            rejects_file=result.rejects_file if result.rejected else UNSET,
            changes=[
                TypeChangesBody(key, one.inserted, one.replaced, one.patched, one.emptied)
                for key, one in result.changes.items()
            ]
            or None,
            **work,
        )


def _loaded(counts: Mapping[str, int]) -> list[LoadedTypeBody]:
    return [LoadedTypeBody(name, count) for name, count in sorted(counts.items())]


class EmbedBody(Body, frozen=True):
    """What an embedding of stored nodes did: the new vectors by property."""

    branch: str
    type: str
    entities: int
    vectors: dict[str, int]
    actor_id: str | None
    commit: CommitBody | None

    @classmethod
    def of(cls, result: EmbedResult) -> EmbedBody:
        """The result of a backfill."""
        return cls(
            result.branch,
            result.type_name,
            result.rows,
            dict(result.vectors),
            result.actor,
            CommitBody.of_any(result.commit),
        )


# -- files -------------------------------------------------------------------------------


class EmbedFileBody(Body, frozen=True):
    """What an embedding of a file did."""

    input: str
    output: str
    records: int
    selected_records: int
    embedded_records: int
    cleaned_records: int
    mode: Literal["fill_missing", "reembed_selected", "reembed_all", "clean"]
    dimension: int
    model: str

    @classmethod
    def of(cls, summary: FileSummary) -> EmbedFileBody:
        """The summary of a file."""
        return convert(summary, cls, from_attributes=True)


class GeneratedTypeBody(Body, frozen=True):
    """The files of one type, their good rows and the broken ones that were planted."""

    name: str
    rows: int
    planted: int
    files: list[str]
    bytes: int


class GeneratedBody(Body, frozen=True):
    """A made-up graph; `planted` counts broken rows by their kind."""

    out: str
    schema: str
    seed: int
    types: list[GeneratedTypeBody]
    total_rows: int
    total_bytes: int
    planted: dict[str, int]

    @classmethod
    def of(cls, made: GeneratedGraph, out: str, seed: int) -> GeneratedBody:
        """What was generated in a directory."""
        types = []
        for name, rows in made.counts.items():
            files = [file for file in made.files if file.type_name == name]
            planted = sum(row.type_name == name for row in made.planted)
            paths = [str(file.path) for file in files]
            size = sum(file.bytes for file in files)
            types.append(GeneratedTypeBody(name, rows, planted, paths, size))
        return cls(
            out,
            str(made.schema_path),
            seed,
            types,
            sum(made.counts.values()),
            sum(file.bytes for file in made.files),
            made.planted_kinds,
        )
