"""The half of a session that looks: queries, tables, exports, differences.

Owns those public methods, each written once. Thin: the packages below know how.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from omnigraph.evolve.planning import plan_schema
from omnigraph.graph.access import action, shown_at
from omnigraph.graph.looking_back import LookingBack
from omnigraph.graph.networks import Networks
from omnigraph.graph.schema_sources import desired_source, named_query, query_source
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.source import Source
from omnigraph.maintain.index_choice import index_status
from omnigraph.maintain.reports import IndexStatus
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.read.limited.view import is_whole
from omnigraph.read.output.blobs import Blob, BlobSelector, find_value
from omnigraph.read.output.export import Export, ExportReport, open_export, write_export
from omnigraph.read.output.result import Result
from omnigraph.read.plan.explain import Explanation, explain
from omnigraph.read.plan.physical import Expansion
from omnigraph.read.queries import Query
from omnigraph.storage.budget import Budget
from omnigraph.storage.cache_budget import CacheUse
from omnigraph.storage.cancellation import Cancellation
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import cache_uses
from omnigraph.storage.tables.limited_table import deny
from omnigraph.write.change.results import Recovery
from omnigraph.write.recovery.sweep import recoveries

if TYPE_CHECKING:
    import lance
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipeline.spark.settings import SparkSettings


class Reading(Networks, LookingBack):
    """What a session shows of a graph."""

    @property
    def location(self) -> Location:
        """Where the graph is."""
        return self._access.handle.location

    @property
    def read_only(self) -> bool:
        """Whether it was opened to be looked at."""
        return self._access.handle.read_only

    @property
    def actor(self) -> str | None:
        """Who acts, unless a call names another."""
        return self._access.actor

    @property
    def caches(self) -> Mapping[str, CacheUse]:
        """How full the caches of this process are, which every graph it opens shares."""
        return cache_uses()

    # -- the graph -------------------------------------------------------------------

    @property
    @action("read", hides=True)
    def schema(self) -> str:
        """The source of the schema that main has."""
        return self._access.schema.source

    @property
    @action("read", hides=True)
    def catalog(self) -> Catalog:
        """The schema that main has, typed."""
        return catalog_of(self._access.schema)

    @action("read", branch="branch", hides=True)
    def plan_schema(
        self,
        source: str | Path | Source,
        *,
        branch: str = MAIN,
        allow_data_loss: bool = False,
        check: bool = False,
        queries: Mapping[str, str] | None = None,
    ) -> MigrationPlan:
        """What it takes to give a branch another schema; ``source`` is a `.pg` file or its text.

        With ``check`` the steps that depend on data are tried on the data, and say which rows
        stand against them. ``queries`` are texts of stored queries by their names: those that
        would no longer compile are listed. Nothing is changed.
        """
        wanted = desired_source(source)

        def plan(shown: Snapshot, _: Catalog) -> MigrationPlan:
            planned = plan_schema(
                shown, wanted, allow_data_loss=allow_data_loss, looks=check, queries=queries
            )
            return planned.checked() if check else planned.plan

        return self._access.read(plan, branch)

    @action("read", branch=shown_at("commit"), hides=True)
    def snapshot(self, branch: str = MAIN, *, commit: str | None = None) -> Snapshot:
        """What a branch shows now, or what a commit showed."""
        return self._access.snapshot(branch, commit)

    @action("read", branch="branch")
    def index_status(self, branch: str = MAIN) -> IndexStatus:
        """Which indexes a branch has, how much they cover, and which are missing and why."""
        return index_status(self._access.snapshot(branch))

    @action("read")
    def recoveries(self) -> list[Recovery]:
        """What became of writes that did not finish, newest first."""
        return recoveries(self.location)

    @action("read", branch=shown_at(), hides=True)
    def lint(
        self, source: str | Source, *, branch: str = MAIN, snapshot: str | None = None
    ) -> LintReport:
        """Everything that can be said of queries against the schema of a branch, or of a commit."""
        _, catalog = self._access.view(branch, snapshot)
        return lint_queries(query_source(source), catalog)

    # -- asking ----------------------------------------------------------------------

    @action("read", branch=shown_at(), hides=True)
    def query(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        timeout: float | None = None,
        max_bytes: int | None = None,
        cancellation: Cancellation | None = None,
        expansion: Expansion = "auto",
    ) -> Result:
        """Run a read query on a branch as it is now, or on what a commit showed.

        ``source`` is the text of a query, with or without its header, or the path of a file.
        ``name`` chooses one of several; parameters may stand in its place.
        ``timeout`` is in seconds, ``max_bytes`` bounds what it holds at once (a quarter of the
        memory unless `OMNIGRAPH_QUERY_BYTES` says otherwise), and ``cancellation`` lets another
        thread stop it.
        """
        text, is_old = query_source(source), snapshot is not None
        budget = Budget(timeout, max_bytes, cancellation)
        made_by = self._access.embedding
        asked = named_query(name, params)
        query = Query(text.text, *asked, text.name, budget, expansion, made_by)

        def run(shown: Snapshot, catalog: Catalog) -> Result:
            return query.run(shown, catalog, at_commit=is_old)

        return self._access.read(run, branch, snapshot)

    @action("read", branch=shown_at(), hides=True)
    def explain(
        self,
        source: str | Path | Source,
        name: str | Mapping[str, Any] | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        analyze: bool = False,
        timeout: float | None = None,
        max_bytes: int | None = None,
        cancellation: Cancellation | None = None,
        expansion: Expansion = "auto",
    ) -> Explanation:
        """How a read query would be run; with ``analyze`` it is run, and how that went.

        Without ``analyze`` no data is read, and parameters may be left out.
        """
        text, is_old = query_source(source), snapshot is not None
        budget = Budget(timeout, max_bytes, cancellation)
        made_by = self._access.embedding
        asked = named_query(name, params)
        query = Query(text.text, *asked, text.name, budget, expansion, made_by)

        def run(shown: Snapshot, catalog: Catalog) -> Explanation:
            return explain(query, shown, catalog, at_commit=is_old, analyze=analyze)

        return self._access.read(run, branch, snapshot)

    @action("read", branch=shown_at(), hides=True)
    def blob(
        self,
        entity: Literal["node", "edge"],
        type: str,  # noqa: A002 - the word of the API
        id: str,  # noqa: A002 - the word of the API
        property: str,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
    ) -> Blob:
        """A Blob property of one entity, to be read piece by piece.

        It stays what it is now: the value of the newest commit of a branch, or of the one named.
        """
        selector = BlobSelector(entity, type, id, property)
        manifest = self._access.handle.manifest

        def run(shown: Snapshot, catalog: Catalog) -> Blob:
            def require_kept() -> None:
                manifest.require_retained(manifest.find_commit(shown.commit_id))

            return find_value(shown, catalog, selector, require_kept)

        return self._access.read(run, branch, snapshot)

    @action("read", branch=shown_at())
    def sql(
        self,
        text: str,
        params: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
    ) -> Result:
        """Ask the tables of a branch, or of what a commit showed, in SQL, by DuckDB.

        Every type is a view of its name, with its properties, `id`, and for edges `from` and `to`.
        Needs the extra `sql`.
        """
        from omnigraph.read.output.sql import run_sql

        def run(shown: Snapshot, _: Catalog) -> Result:
            at = (shown.branch, None) if snapshot is None else (None, shown.commit_id)
            return Result(run_sql(shown, text, params), "sql", shown.commit_id, *at)

        return self._access.read(run, branch, snapshot)

    # -- whole tables ----------------------------------------------------------------

    @action("read", branch=shown_at(), hides=True)
    def table(
        self, type_name: str, *, branch: str = MAIN, snapshot: str | None = None
    ) -> lance.LanceDataset:
        """The pinned dataset of a type, for reading with other tools; never write to it.

        It has the columns that are stored, under the names that `columns` of the snapshot's
        table knows. Of a node and an edge type of one name the node is meant; write `edge:Name`
        for the other.
        """

        def run(shown: Snapshot, _: Catalog) -> lance.LanceDataset:
            return shown.named(type_name).pinned.dataset()

        return self._access.read(run, branch, snapshot)

    @action("read", branch=shown_at())
    def to_spark(
        self,
        type_name: str,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        columns: Sequence[str] | None = None,
        spark: SparkSession | SparkSettings | str | None = None,
    ) -> DataFrame:
        """The entities of a type as a DataFrame, which shows one commit for as long as it lives.

        All columns but blobs, or those named. Without a session of yours, this process has one.
        """
        from omnigraph.pipeline.source.frame import read_frame

        shown = self._access.snapshot(branch, snapshot)
        return read_frame(self.location, shown, type_name, columns, spark)

    @action("read", branch=shown_at("commit"))
    def create_views(
        self,
        spark: SparkSession | SparkSettings | str | None = None,
        *,
        branch: str = MAIN,
        commit: str | None = None,
        prefix: str = "",
        types: Sequence[str] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]:
        """Make a temporary view of each type in a session of Spark; what the views are called.

        They show one commit. A ``prefix`` lets those of several stand side by side. ``types`` are
        those that get a view, ``columns`` those of types that shall not have all but blobs.
        """
        from omnigraph.pipeline.source.views import ViewChoice, create_views

        shown = self._access.snapshot(branch, commit)
        return create_views(self.location, shown, spark, ViewChoice(prefix, types, columns or {}))

    @overload
    def export(
        self,
        path: None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
    ) -> Export: ...

    @overload
    def export(
        self,
        path: str | Path,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
    ) -> ExportReport: ...

    @action("export", branch=shown_at(), hides=True)
    def export(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        snapshot: str | None = None,
        types: Sequence[str] | None = None,
        format: str = "jsonl",  # noqa: A002 - the word of the API
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
    ) -> Export | ExportReport:
        """The entities of a branch as NDJSON lines, or written to a file when one is named.

        With ``snapshot`` they are those that a commit showed, under the schema that it had.
        ``types`` are names of node or edge types; without any, everything is exported. Parquet,
        and a path that ends in `/`, make a directory of files, written on Spark.
        """
        from omnigraph.pipeline.export.operation import choose_export_engine, export_on_spark

        shown, catalog = self._access.view(branch, snapshot)
        chosen = choose_export_engine(path, format, engine)
        if chosen == "spark" and not is_whole(shown):
            deny()
        if chosen == "inline" or path is None:
            export = open_export(shown, catalog, types, format)
            return export if path is None else write_export(export, path)
        from omnigraph.pipeline.load.entry import SparkTarget

        return export_on_spark(
            self.location,
            shown,
            catalog,
            types,
            format_=format,
            path=path,
            spark=SparkTarget.of(spark, progress=progress),
        )
