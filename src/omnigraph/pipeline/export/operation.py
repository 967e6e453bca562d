"""Export on Spark: one snapshot as a directory of files, one directory for each type.

Owns when Spark is used, and the order of steps: check, write all parts, show them together.
Rows go from storage to files inside the tasks; the driver sees counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from omnigraph.errors import BadRequest
from omnigraph.extras import require_extra
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityKind, NodeType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.output.export import ExportReport, open_export
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table

if TYPE_CHECKING:
    from omnigraph.pipeline.export.tasks import Format
    from omnigraph.pipeline.load.entry import SparkTarget

FORMATS: Final = ("jsonl", "parquet")
ENGINES: Final = ("auto", "inline", "spark")


def choose_export_engine(
    path: str | Path | None, format_: str, wanted: str = "auto"
) -> Literal["inline", "spark"]:
    """The engine for an export: Spark writes directories and Parquet."""
    if format_ not in FORMATS:
        raise BadRequest(f"cannot export as {format_!r}: the formats are {', '.join(FORMATS)}")
    if wanted not in ENGINES:
        raise BadRequest(f"there is no export engine {wanted!r}: choose {' or '.join(ENGINES)}")
    is_columns = format_ == "parquet"
    if wanted == "inline" and is_columns:
        raise BadRequest("Parquet is written by the engine spark: choose that, or leave it open")
    is_directory = str(path).endswith("/")
    if wanted == "inline" or (wanted == "auto" and not is_columns and not is_directory):
        return "inline"
    if path is None:
        raise BadRequest("an export on Spark goes into a directory: give its path")
    return "spark"


def export_on_spark(
    root: Location,
    shown: Snapshot,
    catalog: Catalog,
    types: Sequence[str] | None,
    *,
    format_: str,
    path: str | Path,
    spark: SparkTarget,
) -> ExportReport:
    """Write the types of these names, or all of them, into a directory that is new or empty."""
    # Before the imports: some of them are Spark's.
    if spark.session is None:
        require_extra("spark", "an export into a directory", otherwise="export jsonl into a file")
    from omnigraph.pipeline.export.tasks import ExportDirectory, PartJob, move, write_part
    from omnigraph.pipeline.source.reading import parts_of
    from omnigraph.pipeline.spark.probe import require_sound_executors
    from omnigraph.pipeline.spark.progress import stages
    from omnigraph.pipeline.spark.session import require_shared_storage, spark_session
    from omnigraph.pipeline.spark.tasks import run_tasks

    tables = open_export(shown, catalog, types).tables
    format_ = _checked(tables, format_)
    directory = ExportDirectory.of(path)
    directory.require_free()
    jobs: dict[str, PartJob] = {}
    used: Counter[str] = Counter()
    for type_, table in tables:
        for part in parts_of(table):
            name = f"{type_.name}/part-{used[type_.name]:05d}.{format_}"
            used[type_.name] += 1
            jobs[name] = PartJob(type_, part, format_, directory.draft.join(name))
    with (
        spark_session(spark.settings, existing=spark.session) as engine,
        stages(engine, show=spark.progress) as bars,
    ):
        for uri in (root.uri, directory.target.uri):
            require_shared_storage(engine, uri)
        require_sound_executors(engine, root.uri)
        with directory.drafting():
            with bars.stage("export", len(jobs)):
                written = run_tasks(engine, write_part, list(jobs.values()))
            run_tasks(engine, move, directory.moves(jobs))
            directory.show(jobs)
    counts: dict[EntityKind, dict[str, int]] = {"node": {}, "edge": {}}
    for type_, _ in tables:
        counts[type_.kind][type_.name] = 0
    for job, done in zip(jobs.values(), written, strict=True):
        counts[job.type.kind][job.type.name] += done.rows
    size = sum(done.bytes for done in written)
    return ExportReport(str(path), counts["node"], counts["edge"], size)


def _checked(tables: Sequence[tuple[NodeType | EdgeType, Table]], format_: str) -> Format:
    if format_ != "parquet":
        return "jsonl"
    names = Counter(type_.name for type_, _ in tables)
    shared = sorted(name for name, count in names.items() if count > 1)
    if shared:
        raise BadRequest(
            f"a node type and an edge type are both named {', '.join(shared)}, and a table of"
            " columns does not say which it is: export as jsonl"
        )
    return "parquet"
