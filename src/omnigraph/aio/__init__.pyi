# Made from the signatures of omnigraph.graph by tests/graph/aio_stub.py; do not edit.

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, overload

import lance
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from omnigraph.evolve.apply import SchemaResult
from omnigraph.evolve.log import SchemaCommit
from omnigraph.graph import Policy
from omnigraph.history.baseline import Baseline
from omnigraph.history.changes import Change, Names
from omnigraph.history.diff import TypeStats
from omnigraph.history.entity_history import EntityHistory, SetBy
from omnigraph.history.feed import CommitChanges, FeedPage
from omnigraph.history.merge.conflicts import MergeResult, Resolve
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.source import Source
from omnigraph.maintain.health import GraphStatus
from omnigraph.maintain.repair_report import RepairReport
from omnigraph.maintain.reports import (
    CleanupProgress,
    CleanupReport,
    IndexReport,
    IndexStatus,
    OptimizeReport,
)
from omnigraph.maintain.steps import MaintenanceReport
from omnigraph.maintain.verify.report import VerifyReport
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.pipeline.declared.run import Pipeline
from omnigraph.pipeline.spark.settings import SparkSettings
from omnigraph.read.output.blobs import BlobSelector
from omnigraph.read.output.export import Chunk, ExportReport
from omnigraph.read.output.result import Result
from omnigraph.read.plan.explain import Explanation
from omnigraph.read.plan.physical import Expansion
from omnigraph.storage.cache_budget import CacheUse
from omnigraph.storage.cancellation import Cancellation
from omnigraph.storage.objects.location import Location
from omnigraph.write.backfill import EmbedResult
from omnigraph.write.change.results import LoadResult, MutationResult, PipelineResult, Recovery
from omnigraph.write.load.csv_options import CsvOptions
from omnigraph.write.load.row_order import OrderBy

__all__ = ["Graph", "Session", "Stream", "init", "open"]
_T = TypeVar("_T")

class Stream(AsyncIterator[_T]):
    def __aiter__(self) -> Stream[_T]: ...
    async def __anext__(self) -> _T: ...

class Export(Stream[str]):
    def chunks(self) -> Stream[Chunk]: ...

class BaselineLines(Stream[str]):
    snapshot_commit_id: str
    resume_cursor: str
    def chunks(self) -> Stream[bytes]: ...

class Diff(Stream[Change]):
    from_version: int
    to_version: int
    @property
    def schema(self) -> Awaitable[MigrationPlan]: ...
    @property
    def stats(self) -> Awaitable[tuple[TypeStats, ...]]: ...
    async def version_of(self, change: Change) -> int: ...

class Blob(Stream[bytes]):
    selector: BlobSelector
    commit_id: str
    @property
    def kind(self) -> Awaitable[Literal["managed", "external"]]: ...
    @property
    def uri(self) -> Awaitable[str | None]: ...
    @property
    def offset(self) -> Awaitable[int]: ...
    @property
    def size(self) -> Awaitable[int | None]: ...
    @property
    def etag(self) -> Awaitable[str | None]: ...
    async def read(self, start: int = 0, end: int | None = None) -> bytes: ...
    def chunks(self, start: int = 0, end: int | None = None) -> Stream[bytes]: ...

class Branches:
    async def list(self) -> list[str]: ...
    async def create(self, name: str, from_branch: str = ..., actor: str | None = None) -> str: ...
    async def rename(self, old: str, new: str, actor: str | None = None) -> str: ...
    async def reset(
        self,
        name: str,
        to: str,
        *,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult: ...
    async def revert(
        self,
        commit: str,
        onto: str = ...,
        *,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult: ...
    async def cherry_pick(
        self,
        commit: str,
        onto: str = ...,
        *,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult: ...
    async def delete(self, name: str, actor: str | None = None) -> str: ...
    async def merge(
        self,
        source: str,
        into: str = ...,
        *,
        delete_source: bool = False,
        resolve: Resolve = None,
        dry_run: bool = False,
        run_id: str | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MergeResult: ...

class Tags:
    async def list(self) -> dict[str, str]: ...
    async def create(self, name: str, ref: str = ..., actor: str | None = None) -> str: ...
    async def delete(self, name: str, actor: str | None = None) -> str: ...

class Commits:
    async def list(
        self,
        branch: str = ...,
        *,
        actor: str | None = None,
        merged: bool = False,
        since: datetime | None = None,
        grep: str | None = None,
        types: Names = None,
    ) -> list[Commit]: ...
    async def get(self, commit_id: str) -> Commit: ...
    async def changes(
        self,
        commit_id: str,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> CommitChanges: ...

class Changes:
    async def poll(
        self,
        *,
        branch: str = ...,
        start: str | None = None,
        cursor: str | None = None,
        page_token: str | None = None,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
        limit: int | None = None,
    ) -> FeedPage: ...
    @overload
    async def baseline(
        self,
        path: None = None,
        *,
        branch: str = ...,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> BaselineLines: ...
    @overload
    async def baseline(
        self,
        path: str | Path,
        *,
        branch: str = ...,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Baseline: ...

class Session:
    @property
    def branches(self) -> Branches: ...
    @property
    def tags(self) -> Tags: ...
    @property
    def commits(self) -> Commits: ...
    @property
    def changes(self) -> Changes: ...
    async def schema_at(self, ref: str | Snapshot) -> str: ...
    async def schema_log(self, branch: str = ...) -> list[SchemaCommit]: ...
    async def schema_diff(self, a: str | Snapshot, b: str | Snapshot) -> MigrationPlan: ...
    async def diff(
        self,
        a: str | Snapshot,
        b: str | Snapshot,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Diff: ...
    async def history(
        self, type: str, id: str, *, branch: str = ..., limit: int | None = None
    ) -> EntityHistory: ...
    async def blame(self, type: str, id: str, *, branch: str = ...) -> list[SetBy]: ...
    async def to_networkx(
        self,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any: ...
    async def to_igraph(
        self,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any: ...
    async def to_pyg(
        self,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        properties: Sequence[str] | None = None,
    ) -> Any: ...
    @property
    def location(self) -> Location: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def actor(self) -> str | None: ...
    @property
    def caches(self) -> Mapping[str, CacheUse]: ...
    @property
    def schema(self) -> Awaitable[str]: ...
    @property
    def catalog(self) -> Awaitable[Catalog]: ...
    async def plan_schema(
        self,
        source: str | Path | Source,
        *,
        branch: str = ...,
        allow_data_loss: bool = False,
        check: bool = False,
        queries: Mapping[str, str] | None = None,
    ) -> MigrationPlan: ...
    async def snapshot(self, branch: str = ..., *, commit: str | None = None) -> Snapshot: ...
    async def index_status(self, branch: str = ...) -> IndexStatus: ...
    async def recoveries(self) -> list[Recovery]: ...
    async def lint(
        self, source: str | Source, *, branch: str = ..., snapshot: str | None = None
    ) -> LintReport: ...
    async def query(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        cancellation: Cancellation | None = None,
        expansion: Expansion = "auto",
    ) -> Result: ...
    async def explain(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        analyze: bool = False,
        timeout: float | None = None,
        max_bytes: int | None = None,
        cancellation: Cancellation | None = None,
        expansion: Expansion = "auto",
    ) -> Explanation: ...
    async def blob(
        self,
        entity: Literal["node", "edge"],
        type: str,
        id: str,
        property: str,
        *,
        branch: str = ...,
        snapshot: str | None = None,
    ) -> Blob: ...
    async def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        branch: str = ...,
        snapshot: str | None = None,
    ) -> Result: ...
    async def table(
        self, type_name: str, *, branch: str = ..., snapshot: str | None = None
    ) -> lance.LanceDataset: ...
    async def to_spark(
        self,
        type_name: str,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        columns: Sequence[str] | None = None,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> DataFrame: ...
    async def create_views(
        self,
        spark: SparkSession | SparkSettings | str | None = None,
        *,
        branch: str = ...,
        commit: str | None = None,
        prefix: str = "",
        types: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]: ...
    @overload
    async def export(
        self,
        path: None = None,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
    ) -> Export: ...
    @overload
    async def export(
        self,
        path: str | Path,
        *,
        branch: str = ...,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
    ) -> ExportReport: ...
    async def status(self, branch: str = ...) -> GraphStatus: ...
    async def verify(self, *, deep: bool = False, branch: str | None = None) -> VerifyReport: ...
    async def maintain(
        self,
        branch: str | None = None,
        *,
        max_seconds: float | None = None,
        max_bytes: int | None = None,
        keep: int | None = None,
        older_than: timedelta | None = None,
        grace: timedelta = ...,
        dry_run: bool = False,
        actor: str | None = None,
    ) -> MaintenanceReport: ...
    async def cleanup(
        self,
        keep: int | None = None,
        older_than: timedelta | None = None,
        *,
        grace: timedelta = ...,
        dry_run: bool = False,
        progress: Callable[[CleanupProgress], None] | None = None,
    ) -> CleanupReport: ...
    async def repair(
        self, *, confirm: bool = False, force: bool = False, keep_as: str | None = None
    ) -> RepairReport: ...
    async def ensure_indices(
        self, branch: str = ..., *, actor: str | None = None
    ) -> IndexReport: ...
    async def optimize(
        self,
        branch: str = ...,
        types: Sequence[str] | None = None,
        engine: str = "auto",
        cluster: bool = False,
        dry_run: bool = False,
        *,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> OptimizeReport: ...
    async def load(
        self,
        data: object,
        *,
        mode: str,
        branch: str = ...,
        from_branch: str | None = None,
        engine: str = "auto",
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
        csv: CsvOptions | None = None,
        report: str | Path | None = None,
        order_by: OrderBy | None = None,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> LoadResult: ...
    async def stream_load(
        self,
        rows: DataFrame,
        *,
        type: str | Mapping[str, Callable[[DataFrame], DataFrame]],
        mode: str = "append",
        checkpoint: str | Path,
        branch: str = ...,
        from_branch: str | None = None,
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        query_name: str | None = None,
        output_mode: str = "append",
        trigger: Mapping[str, Any] | None = None,
        actor: str | None = None,
    ) -> StreamingQuery: ...
    async def run_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        dry_run: bool = False,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> PipelineResult: ...
    async def validate_pipeline(
        self,
        pipeline: str | Path | Pipeline,
        *,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> None: ...
    async def mutate(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = ...,
        if_commit: str | None = None,
        run_id: str | None = None,
        max_bytes: int | None = None,
        message: str | None = None,
        actor: str | None = None,
    ) -> MutationResult: ...
    async def apply_schema(
        self,
        source: str | Path | Source,
        *,
        branch: str = ...,
        allow_data_loss: bool = False,
        queries: Mapping[str, str] | None = None,
        force_queries: bool = False,
        if_commit: str | None = None,
        run_id: str | None = None,
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> SchemaResult: ...
    async def embed(
        self,
        type: str,
        property: str | None = None,
        *,
        branch: str = ...,
        where: str | None = None,
        only_missing: bool = True,
        commit_rows: int | None = None,
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        message: str | None = None,
        actor: str | None = None,
    ) -> EmbedResult: ...
    async def close(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, *_: object) -> None: ...

class Graph(Session):
    notices: list[str]
    def as_actor(self, actor: str, policy: Policy | None = None) -> Session: ...
    async def close(self) -> None: ...

class Opening:
    def __await__(self) -> Generator[Any, None, Graph]: ...
    async def __aenter__(self) -> Graph: ...
    async def __aexit__(self, *_: object) -> None: ...

def init(
    location: str | Path,
    schema: str | Path,
    *,
    force: bool = False,
    actor: str | None = None,
    threads: int = ...,
) -> Opening: ...
def open(
    location: str | Path, *, read_only: bool = False, actor: str | None = None, threads: int = ...
) -> Opening: ...
