"""The stored queries that a command is about: those of a graph of a cluster, or of the project.

Owns finding the graph. Runs no query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options.configured import layers_of
from omnigraph.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import name_hint

if TYPE_CHECKING:
    from omnigraph.cli.options.scope import CommandScope
    from omnigraph.cluster.stored_queries import QueryProblem, RegisteredQuery
    from omnigraph.config.project import ProjectFile, ProjectGraph
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.server.stored_queries import StoredQuery


@dataclass(frozen=True, slots=True)
class StoredOfGraph:
    """The stored queries of one graph, by name, and where it is."""

    location: str
    queries: Mapping[str, StoredQuery | RegisteredQuery]
    problems: Callable[[], Sequence[QueryProblem]]
    """What is wrong with them under the schema that the graph has now."""

    def find(self, name: str) -> StoredQuery | RegisteredQuery:
        """One of them."""
        found = self.queries.get(name)
        if found is None:
            hint = name_hint(name, self.queries) or "none is stored"
            raise NotFound(f"there is no stored query `{name}`: {hint}")
        return found


def stored_of(scope: CommandScope) -> StoredOfGraph:
    """Those of the cluster that is named, else of the graph of the project."""
    from omnigraph.cli.options.cluster import configured_cluster

    if configured_cluster(scope) is not None:
        return _of_cluster(scope)
    layers = layers_of(scope)
    place, project = layers.place, layers.project
    if project is None or place is None or place.kind != "graph":
        raise click.UsageError(
            "whose queries? give --cluster DIR|URI, or --graph NAME in a project",
            click.get_current_context(silent=True),
        )
    return _of_project(project, project.graph(place.target))


def _of_cluster(scope: CommandScope) -> StoredOfGraph:
    from omnigraph.cli.options.cluster import applied_cluster
    from omnigraph.cluster.revision import require_graph
    from omnigraph.cluster.stored_queries import check_queries, registered_queries

    applied = require_graph(applied_cluster(scope), scope.graph)
    queries = {one.name: one for one in registered_queries(applied)}
    return StoredOfGraph(str(applied.location), queries, lambda: check_queries(applied))


def _of_project(project: ProjectFile, graph: ProjectGraph) -> StoredOfGraph:
    from omnigraph.cli.options.project_queries import queries_of

    if graph.is_served:
        raise BadRequest(
            f"the graph '{graph.name}' of {project.path.name} is on a server, which has checked "
            "its queries: name one in storage"
        )
    queries = queries_of(project, graph).by_name

    def problems() -> list[QueryProblem]:
        from omnigraph.cluster.stored_queries import problems_of

        catalog = _catalog(graph)
        return [
            problem
            for name, query in queries.items()
            for problem in problems_of(name, query.source, catalog)
        ]

    return StoredOfGraph(graph.uri, queries, problems)


def _catalog(graph: ProjectGraph) -> Catalog:
    """The schema that the graph has; before it is made, that of the file that the project names."""
    from omnigraph import graph as engine

    try:
        return engine.open(graph.uri, read_only=True).catalog
    except NotFound:
        if graph.schema is None:
            raise
    from omnigraph.cli.options.query_source import read_source
    from omnigraph.lang.schema.compile import compile_schema

    return compile_schema(read_source(graph.schema)).catalog
