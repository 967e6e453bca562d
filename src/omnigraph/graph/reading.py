"""The half of a session that looks: queries, tables, exports, differences.

Owns those public methods, each written once. Thin: the packages below know how.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.graph.access import action, shown_at
from omnigraph.graph.looking_back import LookingBack
from omnigraph.graph.networks import Networks
from omnigraph.graph.schema_sources import desired_source, named_query, query_source
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.snapshot import Snapshot, catalog_of
from omnigraph.read.output.blobs import Blob, BlobSelector, find_value
from omnigraph.read.output.result import Result
from omnigraph.read.plan.explain import Explanation, explain
from omnigraph.read.plan.physical import Expansion
from omnigraph.read.queries import Query
from omnigraph.storage.budget import Budget
from omnigraph.storage.cache_budget import CacheUse
from omnigraph.storage.cancellation import Cancellation
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.handles import cache_uses

if TYPE_CHECKING:
    from omnigraph.lang.schema.migration.plan import MigrationPlan
    from omnigraph.maintain.reports import IndexStatus
    from omnigraph.write.change.results import Recovery


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

        >>> wanted = graph.schema.replace("born: I32?", "born: I32?  died: I32?")
        >>> graph.plan_schema(wanted, check=True)
        1 step: 1 safe
        safe
          node:Person.died is added as I32? (metadata only)
        """
        from omnigraph.evolve.planning import plan_schema

        wanted = desired_source(source)

        def plan(shown: Snapshot, _: Catalog) -> MigrationPlan:
            planned = plan_schema(
                shown, wanted, allow_data_loss=allow_data_loss, looks=check, queries=queries
            )
            return planned.checked() if check else planned.plan

        return self._access.read(plan, branch)

    @action("read", branch=shown_at("commit"), hides=True)
    def snapshot(self, branch: str = MAIN, *, commit: str | None = None) -> Snapshot:
        """What a branch shows now, or what a commit showed.

        >>> sorted(graph.snapshot("draft").tables)
        ['edge:ActedIn', 'node:Film', 'node:Person']
        """
        return self._access.snapshot(branch, commit)

    @action("read", branch="branch")
    def index_status(self, branch: str = MAIN) -> IndexStatus:
        """Which indexes a branch has, how much they cover, and which are missing and why.

        >>> {index.state for index in graph.index_status().indexes}
        {'pending'}
        """
        from omnigraph.maintain.index_choice import index_status

        return index_status(self._access.snapshot(branch))

    @action("read")
    def recoveries(self) -> list[Recovery]:
        """What became of writes that did not finish, newest first.

        >>> graph.recoveries()
        []
        """
        from omnigraph.write.recovery.sweep import recoveries

        return recoveries(self.location)

    @action("read", branch=shown_at(), hides=True)
    def lint(
        self, source: str | Source, *, branch: str = MAIN, snapshot: str | None = None
    ) -> LintReport:
        """Everything that can be said of queries against the schema of a branch, or of a commit.

        >>> report = graph.lint("query all() { match { $p: Person } return { $p.nam } }")
        >>> [(finding.code, finding.message) for finding in report.findings]
        []
        """
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

        >>> question = "match { $f: Film  $f.year < $until } return { $f.title as film }"
        >>> graph.query(question, {"until": 2000}).rows
        [{'film': 'The Matrix'}]
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

        >>> print(graph.explain("match { $p: Person } return { $p.name }").text)
        plan of query on branch main, commit ...
        scan $p: Person
            every row, 2 nodes, about 2 rows
        project p.name := $p.name
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

        >>> posters = og.init("posters.omni", "node Film { title: String @key  poster: Blob? }")
        >>> row = {"type": "Film", "data": {"title": "Speed", "poster": "base64:aGVsbG8="}}
        >>> done = posters.load([row], mode="append")
        >>> posters.blob("node", "Film", "Speed", "poster").read()
        b'hello'
        """
        selector = BlobSelector(entity, type, id, property)
        manifest = self._access.handle.manifest

        def run(shown: Snapshot, catalog: Catalog) -> Blob:
            def require_kept() -> None:
                manifest.require_retained(manifest.find_commit(shown.commit_id))

            return find_value(shown, catalog, selector, require_kept)

        return self._access.read(run, branch, snapshot)
