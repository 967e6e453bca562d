"""Which parts of the product the Python reference shows, in its order.

Owns that choice, and which members are the engine's own: those are public among our packages and
promised to nobody else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import omnigraph as og
from omnigraph import aio
from omnigraph.client.graph import ServedGraph
from omnigraph.client.projects import Project
from omnigraph.client.reading import ServedReading
from omnigraph.evolve.apply import SchemaResult
from omnigraph.evolve.log import SchemaCommit
from omnigraph.graph.branches import Branches, Tags
from omnigraph.graph.loading import Loading
from omnigraph.graph.looking_back import LookingBack
from omnigraph.graph.namespaces import Changes, Commits
from omnigraph.graph.networks import Networks
from omnigraph.graph.reading import Reading
from omnigraph.graph.tables import Tables
from omnigraph.graph.upkeep import Upkeep
from omnigraph.history.baseline import Baseline, BaselineLines
from omnigraph.history.changes import Cause, Change, ChangeBlock, Endpoints, Image, TypeRef
from omnigraph.history.diff import Diff, TypeStats
from omnigraph.history.entity_history import EntityChange, EntityHistory, SetBy
from omnigraph.history.feed import CommitChanges, FeedPage
from omnigraph.history.merge.conflicts import MergedRowCounts, MergeResult
from omnigraph.inference.proposal import InferredSchema
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.maintain.health import GraphStatus, HealthFinding, TypeStatus
from omnigraph.maintain.repair_report import DatasetRepair, RepairReport, Rescue
from omnigraph.maintain.reports import (
    CleanupProgress,
    CleanupReport,
    DatasetOptimize,
    DirectoryCleanup,
    IndexChange,
    IndexReport,
    IndexState,
    IndexStatus,
    OptimizeReport,
)
from omnigraph.maintain.steps import MaintenanceReport, MaintenanceStep
from omnigraph.maintain.verify.report import BranchVerdict, Finding, Looked, VerifyReport
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable
from omnigraph.read.execute.trace import Operator
from omnigraph.read.output.blobs import Blob, BlobSelector
from omnigraph.read.output.export import Chunk, Export, ExportReport
from omnigraph.read.output.result import Result
from omnigraph.read.plan.explain import Explanation, Total
from omnigraph.storage.cache_budget import CacheUse
from omnigraph.storage.cancellation import Cancellation
from omnigraph.storage.objects.location import Location
from omnigraph.write.backfill import EmbedResult
from omnigraph.write.change.results import (
    LoadResult,
    MutationResult,
    PipelineResult,
    Recovery,
    StepResult,
    TypeChanges,
)
from omnigraph.write.load.csv_options import CsvOptions


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions of one module, under the name that users write."""

    module: str
    functions: tuple[Callable[..., object], ...]


@dataclass(frozen=True, slots=True)
class Class:
    """A class, or the part of one that stands in a base of it."""

    type: type
    name: str = ""
    """How a user names what has the members, such as `graph.branches`."""
    title: str = ""
    internal: frozenset[str] = frozenset()
    """Members that are the engine's own."""


@dataclass(frozen=True, slots=True)
class Part:
    """A chapter of the page."""

    title: str
    text: str
    items: tuple[Functions | Class, ...]


def _class(shown: type, *internal: str, name: str = "", title: str = "") -> Class:
    return Class(shown, name, title, frozenset(internal))


PARTS: tuple[Part, ...] = (
    Part(
        "Opening",
        "The functions of `import omnigraph as og`.",
        (Functions("og", (og.open, og.init, og.project, og.infer, og.verify, og.repair)),),
    ),
    Part(
        "Graphs and sessions",
        "`og.open` returns a `Graph`. It is a `Session` that no [policy](policies.md) binds; "
        "`graph.as_actor(…)` makes one for somebody. Both have the methods below, and `branches`, "
        "`tags`, `commits` and `changes`.",
        (
            _class(Reading, name="graph", title="Asking"),
            _class(og.Session, name="graph", title="Changing"),
            _class(Loading, name="graph", title="Loading"),
            _class(LookingBack, name="graph", title="Looking back"),
            _class(Tables, name="graph", title="Whole tables"),
            _class(Networks, name="graph", title="For other libraries"),
            _class(Upkeep, name="graph", title="Looking after"),
            _class(og.Graph, "manifest", name="graph", title="Only of a graph"),
            _class(Branches, name="graph.branches"),
            _class(Tags, name="graph.tags"),
            _class(Commits, name="graph.commits"),
            _class(Changes, name="graph.changes"),
        ),
    ),
    Part(
        "Projects",
        "What `og.project` returns: [projects](projects.md).",
        (_class(Project, name="project"),),
    ),
    Part(
        "Graphs on a server",
        '`og.open("http://…", graph=…)` returns a `ServedGraph`, which has the methods of a graph, '
        "as far as [servers offer them](client.md), and these:",
        (
            _class(
                ServedReading,
                *vars(Reading),
                *vars(Tables),
                *vars(LookingBack),
                name="served",
                title="Asking a server",
            ),
            _class(
                ServedGraph,
                "notices",
                *vars(og.Session),
                *vars(og.Graph),
                *vars(Loading),
                *vars(Upkeep),
                name="served",
                title="Changing on a server",
            ),
        ),
    ),
    Part(
        "In event loops",
        "`omnigraph.aio` has the same names, awaited: [event loops](async.md).",
        (Functions("aio", (aio.open, aio.init)),),
    ),
    Part(
        "Answers",
        "What asking returns.",
        (
            _class(Result),
            _class(Explanation),
            _class(Operator, "add"),
            _class(Total),
            _class(LintReport),
            _class(Blob),
            _class(BlobSelector),
            _class(Export),
            _class(Chunk),
            _class(ExportReport),
            _class(Cancellation),
        ),
    ),
    Part(
        "Writes",
        "What changing and loading return, and take.",
        (
            _class(MutationResult),
            _class(LoadResult),
            _class(TypeChanges, "of"),
            _class(PipelineResult),
            _class(StepResult),
            _class(EmbedResult),
            _class(CsvOptions, "named", "nulls", "special"),
            _class(InferredSchema),
        ),
    ),
    Part(
        "Schemas",
        "",
        (
            _class(SchemaResult),
            _class(SchemaCommit),
            _class(MigrationPlan, "checks_on", "effects_on", "rewritten", "with_findings"),
            _class(Catalog, *(name for name in dir(Catalog) if not name.startswith("_"))),
        ),
    ),
    Part(
        "Commits, differences and merges",
        "",
        (
            _class(Commit, "stored"),
            _class(Snapshot, "by_identity", "is_local"),
            _class(SnapshotTable, "identity", "pin", "entry", "root"),
            _class(Diff),
            _class(TypeStats, "plus"),
            _class(Change),
            _class(Image),
            _class(Endpoints),
            _class(TypeRef),
            _class(EntityHistory),
            _class(EntityChange),
            _class(SetBy),
            _class(CommitChanges),
            _class(Cause, "of"),
            _class(FeedPage),
            _class(ChangeBlock),
            _class(Baseline),
            _class(BaselineLines),
            _class(MergeResult, "source_id", "with_deletion"),
            _class(MergedRowCounts),
        ),
    ),
    Part(
        "Upkeep",
        "",
        (
            _class(GraphStatus),
            _class(TypeStatus),
            _class(HealthFinding),
            _class(VerifyReport),
            _class(Finding, "affecting"),
            _class(BranchVerdict),
            _class(Looked),
            _class(RepairReport),
            _class(DatasetRepair),
            _class(Rescue),
            _class(MaintenanceReport, "of"),
            _class(MaintenanceStep),
            _class(CleanupReport),
            _class(CleanupProgress),
            _class(DirectoryCleanup),
            _class(IndexReport),
            _class(IndexChange),
            _class(IndexStatus),
            _class(IndexState),
            _class(OptimizeReport),
            _class(DatasetOptimize),
            _class(Recovery),
            _class(Location, "join", "parse", "storage_options"),
            _class(CacheUse, "beside"),
        ),
    ),
)
