"""The graph: the one façade that people, the command line and the server use.

Owns the public names and how a branch or a commit becomes one snapshot. Thin:
every method hands over to the package that knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, overload

from omnigraph.errors import BadRequest, NotFound, StorageError
from omnigraph.evolve.contract import lagging_copies, write_copies
from omnigraph.evolve.genesis import CLAIM_NAME, create_graph, release_claim
from omnigraph.history.branches import Branches
from omnigraph.history.commits import Commits
from omnigraph.history.diff import Diff, diff
from omnigraph.history.feed import Changes
from omnigraph.history.selection import Names
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source
from omnigraph.maintain.facade import Maintained
from omnigraph.manifest.branch_names import normalise_branch
from omnigraph.manifest.catalogs import catalog_of
from omnigraph.manifest.entries import MAIN, SchemaContract
from omnigraph.manifest.snapshot import Snapshot, SnapshotTable
from omnigraph.manifest.store import Manifest
from omnigraph.pipeline.export.operation import choose_export_engine, export_on_spark
from omnigraph.pipeline.facade import OnSpark
from omnigraph.pipeline.load.choice import choose_engine
from omnigraph.read.execute.budget import Budget, Cancellation
from omnigraph.read.output.export import Export, open_export
from omnigraph.read.output.export_file import ExportReport, write_export
from omnigraph.read.output.result import Result
from omnigraph.read.plan.explain import Explanation, explain
from omnigraph.read.plan.physical import Expansion
from omnigraph.read.queries import Query
from omnigraph.storage.cache_budget import CacheUse
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import cache_uses
from omnigraph.write.backfill import Backfill, EmbedResult
from omnigraph.write.change.results import LoadResult, MutationResult
from omnigraph.write.load.operation import Load
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.mutation.operation import Mutation
from omnigraph.write.publish.driver import Writer
from omnigraph.write.recovery.audit import Recovery, recoveries
from omnigraph.write.recovery.sweep import sweep

if TYPE_CHECKING:
    import lance
    from pyspark.sql import SparkSession

    from omnigraph.pipeline.spark.settings import SparkSettings


def init(
    location: str | Path, schema: str | Path, *, force: bool = False, actor: str | None = None
) -> Graph:
    """Make a graph and open it; ``schema`` is the path of a `.pg` file, or its text."""
    root = Location.parse(str(location))
    create_graph(root, _schema_source(schema), force=force, actor=actor)
    return open(location, actor=actor)


def open(  # noqa: A001 - the word everybody expects: `omnigraph.open`
    location: str | Path, *, read_only: bool = False, actor: str | None = None
) -> Graph:
    """Open a graph; read-only writes nothing and repairs nothing."""
    root = Location.parse(str(location))
    graph = Graph(root, Manifest(root), read_only=read_only, actor=actor)
    graph.prepare()
    return graph


def _schema_source(schema: str | Path) -> Source:
    text = str(schema)
    if isinstance(schema, str) and ("{" in text or "\n" in text or not text.strip()):
        return Source(text, "<schema>")
    try:
        return Source(Path(text).read_text(encoding="utf-8-sig"), text)
    except OSError as error:
        raise BadRequest(f"cannot read {text}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{text} is not UTF-8 text (byte {error.start})") from error


class Graph(OnSpark, Maintained):
    """An opened graph."""

    def __init__(
        self, location: Location, manifest: Manifest, *, read_only: bool, actor: str | None
    ) -> None:
        super().__init__(location, manifest, read_only=read_only, actor=actor)
        self.notices: list[str] = []
        """What opening found and mended."""
        self.commits = Commits(self)
        self.branches = Branches(self)
        self.changes = Changes(self)

    def prepare(self) -> None:
        """Prove that there is a graph, and mend its derived files unless it is read-only.

        Where nothing is to be mended, nothing is written.
        """
        try:
            view = self.manifest.view()
        except StorageError as error:
            if error.kind == "not_found":
                raise NotFound(f"there is no graph at {self.location}") from error
            raise
        catalog_of(view.state.schema)
        if self.read_only:
            return
        try:
            self._mend_files(view.state.schema)
        except StorageError as error:
            # Nobody needs them: a disk that is full must not keep people from cleaning it.
            self.notices.append(f"the files beside the manifest were not put right: {error}")
        self._sweep()

    def _mend_files(self, contract: SchemaContract) -> None:
        """Remove the claim of a finished init, and rewrite copies of the schema that lag."""
        objects = ControlObjects(self.location)
        if objects.read(CLAIM_NAME) is not None:
            release_claim(objects)
        lagging = lagging_copies(objects, contract)
        if lagging:
            write_copies(objects, contract, lagging)
            self.notices.append(f"rewrote {', '.join(lagging)} from the manifest")

    def _sweep(self) -> None:
        """Finish the story of writers that died; nobody needs it done to go on."""
        try:
            report = sweep(self.location, self.manifest)
        except StorageError as error:
            self.notices.append(f"the sweep of unfinished writes stopped: {error}")
            return
        self.notices += [
            f"{found.recovery_kind}: operation {found.operation_id} ({found.writer_kind})"
            for found in report.recoveries
        ]
        self.notices += report.notices

    # -- looking ---------------------------------------------------------------------

    @property
    def schema(self) -> str:
        """The source of the accepted schema."""
        return self.manifest.view().state.schema.source

    @property
    def catalog(self) -> Catalog:
        """The accepted schema, typed."""
        return catalog_of(self.manifest.view().state.schema)

    def table(
        self, type_name: str, *, branch: str = MAIN, snapshot: str | None = None
    ) -> lance.LanceDataset:
        """The pinned dataset of a type, for reading with other tools; never write to it.

        Of a node and an edge type of one name the node is meant; write `edge:Name` for
        the other.
        """

        def run(shown: Snapshot) -> lance.LanceDataset:
            found = _find_table(shown, type_name)
            return found.pinned.dataset()

        return self.read(run, branch, commit=snapshot)

    @overload
    def export(
        self,
        path: None = None,
        *,
        branch: str = MAIN,
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
        types: Sequence[str] | None = None,
        format: str = "jsonl",
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
    ) -> ExportReport: ...

    def export(
        self,
        path: str | Path | None = None,
        *,
        branch: str = MAIN,
        types: Sequence[str] | None = None,
        format: str = "jsonl",  # noqa: A002 - the word of the API
        engine: str = "auto",
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
    ) -> Export | ExportReport:
        """The entities of a branch as NDJSON lines, or written to a file when one is named.

        ``types`` are names of node or edge types; without any, everything is exported. Parquet,
        and a path that ends in `/`, make a directory of files, written on Spark.
        """
        shown = self.snapshot(branch)
        catalog = catalog_of(shown.schema)
        if choose_export_engine(path, format, engine) == "inline" or path is None:
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

    def diff(
        self,
        a: str | Snapshot,
        b: str | Snapshot,
        *,
        kinds: Names = None,
        types: Names = None,
        ops: Names = None,
    ) -> Diff:
        """What is different in ``b``: branches, commits or snapshots, in any combination.

        ``kinds`` are `node` and `edge`, ``ops`` are `insert`, `update` and `delete`; without
        any, everything counts. Rows are read when the differences are looked at.
        """
        return diff(self, a, b, kinds=kinds, types=types, ops=ops)

    def recoveries(self) -> list[Recovery]:
        """What became of writes that did not finish, newest first."""
        return recoveries(self.location)

    def lint(self, source: str | Source) -> LintReport:
        """Everything that can be said of queries against this graph's schema."""
        if isinstance(source, str):
            source = Source(source, "<query>")
        return lint_queries(source, self.catalog)

    # -- asking ----------------------------------------------------------------------

    def query(
        self,
        source: str | Source,
        name: str | None = None,
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

        ``timeout`` is in seconds, ``max_bytes`` bounds what it holds at once, and
        ``cancellation`` lets another thread stop it.
        """
        budget = Budget(timeout, max_bytes, cancellation)
        query = Query(*_query_text(source, name), params, _path(source), budget, expansion)

        def run(shown: Snapshot) -> Result:
            # Old data is read with the schema of today.
            catalog = catalog_of(shown.schema) if snapshot is None else self.catalog
            return query.run(shown, catalog, at_commit=snapshot is not None)

        return self.read(run, branch, commit=snapshot)

    def explain(
        self,
        source: str | Source,
        name: str | None = None,
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
        budget = Budget(timeout, max_bytes, cancellation)
        query = Query(*_query_text(source, name), params, _path(source), budget, expansion)
        is_old = snapshot is not None

        def run(shown: Snapshot) -> Explanation:
            catalog = self.catalog if is_old else catalog_of(shown.schema)
            return explain(query, shown, catalog, at_commit=is_old, analyze=analyze)

        return self.read(run, branch, commit=snapshot)

    @property
    def caches(self) -> Mapping[str, CacheUse]:
        """How full the caches of this process are, which every graph it opens shares."""
        return cache_uses()

    # -- changing --------------------------------------------------------------------

    def mutate(
        self,
        source: str | Source,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str = MAIN,
        if_commit: str | None = None,
        actor: str | None = None,
    ) -> MutationResult:
        """Run a mutation query as one commit.

        ``name`` chooses one of several queries of the source. With ``if_commit`` it
        happens only if that commit is the head of the branch.
        """
        self.require_writable()
        text, path = (
            (source.text, source.name) if isinstance(source, Source) else (source, "<query>")
        )
        writer = Writer(self.location, self.manifest, normalise_branch(branch), if_commit)
        return Mutation(text, name, params, path).run(writer, actor or self.actor)

    def load(
        self,
        data: object,
        *,
        mode: str,
        branch: str = MAIN,
        from_branch: str | None = None,
        engine: str = "auto",
        on_error: str = "fail",
        rejects: str | None = None,
        max_rejects: int | None = None,
        run_id: str | None = None,
        dry_run: bool = False,
        spark: SparkSession | SparkSettings | str | None = None,
        progress: bool = False,
        actor: str | None = None,
    ) -> LoadResult:
        """Load rows as one commit, or none of them.

        ``data`` is a path, glob or directory or a list of those, NDJSON text, an iterable of
        envelopes, or frames or paths by type name. A missing branch is forked from
        ``from_branch`` if that is given. The ``engine`` is chosen by size: large input runs on
        Spark, on a session of yours, a master's URL or what ``spark`` says.
        """
        self.require_writable()
        options = LoadOptions.of(
            mode,
            on_error=on_error,
            rejects=rejects,
            max_rejects=max_rejects,
            run_id=run_id,
            dry_run=dry_run,
        )
        base = None if from_branch is None else normalise_branch(from_branch)
        writer = Writer(self.location, self.manifest, normalise_branch(branch), fork_from=base)
        if choose_engine(data, engine) == "inline":
            return Load(data, options).run(writer, actor or self.actor)
        from omnigraph.pipeline.load.entry import SparkTarget, load_on_spark

        choice = SparkTarget.of(spark, progress=progress)
        return load_on_spark(data, options, writer, actor or self.actor, choice)

    def embed(
        self,
        type: str,  # noqa: A002 - the word of the API
        property: str | None = None,  # noqa: A002 - the word of the API
        *,
        branch: str = MAIN,
        where: str | None = None,
        only_missing: bool = True,
        actor: str | None = None,
    ) -> EmbedResult:
        """Make the `@embed` vectors of stored nodes that have none, as one commit.

        Without a ``property`` all vectors of the type are made. ``where`` chooses nodes, as the
        condition of a mutation does. Unless ``only_missing``, vectors that are there are made
        anew.
        """
        self.require_writable()
        writer = Writer(self.location, self.manifest, normalise_branch(branch))
        backfill = Backfill(type, property, where, only_missing)
        return backfill.run(writer, actor or self.actor)

    # -- the end ---------------------------------------------------------------------

    def close(self) -> None:
        """Let go of what is held; safe to forget."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Graph {self.location}>"


def _query_text(source: str | Source, name: str | None) -> tuple[str, str | None]:
    return (source.text if isinstance(source, Source) else source), name


def _path(source: str | Source) -> str:
    return source.name if isinstance(source, Source) else "<query>"


def _find_table(snapshot: Snapshot, name: str) -> SnapshotTable:
    tables: Mapping[str, SnapshotTable] = snapshot.tables
    for key in (name, f"node:{name}", f"edge:{name}"):
        if key in tables:
            return tables[key]
    raise NotFound(f"there is no type {name} at commit {snapshot.commit_id}")
