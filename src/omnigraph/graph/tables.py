"""The part of a session that hands out whole tables: to SQL, to Lance, to Spark, to files.

Owns those public methods, each written once. Thin: the packages below know how. Spark and DuckDB
are imported by the calls that run on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from omnigraph.graph.access import action, shown_at
from omnigraph.graph.reading import Reading
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.limited.view import is_whole
from omnigraph.read.output.export import Export, ExportReport, open_export, write_export
from omnigraph.read.output.result import Result
from omnigraph.storage.tables.limited_table import deny

if TYPE_CHECKING:
    import lance
    from pyspark.sql import DataFrame, SparkSession

    from omnigraph.pipeline.spark.settings import SparkSettings


class Tables(Reading):
    """The tables of a graph, for other tools."""

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

        >>> graph.sql("select title, year from Film where year < ?", [2000]).rows
        [{'title': 'The Matrix', 'year': 1999}]
        """
        from omnigraph.read.output.sql import run_sql

        def run(shown: Snapshot, _: Catalog) -> Result:
            at = (shown.branch, None) if snapshot is None else (None, shown.commit_id)
            return Result(run_sql(shown, text, params), "sql", shown.commit_id, *at)

        return self._access.read(run, branch, snapshot)

    @action("read", branch=shown_at(), hides=True)
    def table(
        self, type_name: str, *, branch: str = MAIN, snapshot: str | None = None
    ) -> lance.LanceDataset:
        """The pinned dataset of a type, for reading with other tools; never write to it.

        It has the columns that are stored, under the names that `columns` of the snapshot's
        table knows. Of a node and an edge type of one name the node is meant; write `edge:Name`
        for the other.

        >>> graph.table("Film").count_rows()
        2
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

        >>> films = graph.to_spark("Film", columns=["title", "year"], spark=spark)
        >>> films.where("year < 2000").collect()
        [Row(title='The Matrix', year=1999)]
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

        >>> graph.create_views(spark, prefix="now_")
        ['now_Film', 'now_Person', 'now_ActedIn']
        >>> spark.sql("select count(*) as films from now_Film").collect()
        [Row(films=2)]
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

        >>> list(graph.export(types=["Person"]))[0]
        '{"type":"Person","data":{"id":"Carrie-Anne Moss","born":1967,"name":"Carrie-Anne Moss"}}'
        >>> graph.export("film.jsonl").total
        7
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
