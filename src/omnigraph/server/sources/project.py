"""The graphs of a project's file: those it names for serving, with their queries and policies.

Owns opening them. One that cannot be opened keeps the server from starting: its owner is there to
mend it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph import graph as engine
from omnigraph.config.embedding import embedding_of
from omnigraph.config.project import Maintenance, ProjectFile, ProjectGraph
from omnigraph.config.project_reader import read_project
from omnigraph.errors import BadRequest, NotFound
from omnigraph.graph.opening import embedded_by
from omnigraph.maintain.steps import MaintenanceLimits
from omnigraph.server.served import RESERVED, ServedGraph, ServedGraphs, is_graph_id
from omnigraph.server.stored_queries import StoredQueries

if TYPE_CHECKING:
    from omnigraph.policy import CompiledPolicy


@dataclass(frozen=True, slots=True)
class ProjectGraphs:
    """The graphs of a file; ``only`` one of them, if it is named."""

    file: str
    only: str | None = None

    def open(self) -> ServedGraphs:
        """Open all of them."""
        project = read_project(Path(self.file))
        chosen = project.served() if self.only is None else (project.graph(self.only),)
        if not chosen:
            raise BadRequest(f"{self.file} has no graph in storage that could be served")
        graphs: dict[str, ServedGraph] = {}
        for graph in chosen:
            one = _opened(project, graph)
            if one.id in graphs:
                where = project.place(f"graphs.{graph.name}.uri")
                raise BadRequest(f"{where}: another graph is served as {one.id!r}: rename one")
            graphs[one.id] = one
        policy = _server_policy(project)
        has_policies = policy is not None or any(one.policy is not None for one in graphs.values())
        return ServedGraphs(graphs, server_policy=policy, has_policies=has_policies)


def maintenance_limits(found: Maintenance | None) -> MaintenanceLimits:
    """What a project says about maintenance, as those who do it know it."""
    if found is None:
        return MaintenanceLimits()
    return MaintenanceLimits(keep=found.commits, older_than=found.keep, optimizes=found.optimize)


def stored_queries(project: ProjectFile, graph: ProjectGraph) -> StoredQueries:
    """The stored queries of a graph; those of the older dialect are of the one that is served."""
    of_served = project.queries if project.served() == (graph,) else ()
    return StoredQueries.named([(str(one.path), one.name) for one in (*graph.queries, *of_served)])


def _opened(project: ProjectFile, graph: ProjectGraph) -> ServedGraph:
    where = project.place(f"graphs.{graph.name}.uri")
    if graph.is_served:
        raise BadRequest(f"{where}: the graph '{graph.name}' is on a server: serve others")
    # Files of the older dialect say `local_s3`, which was no part of an address then.
    served_as = graph.name.replace("_", "-") if project.is_older else graph.name
    if not is_graph_id(served_as):
        raise BadRequest(
            f"{where}: a graph cannot be served as {graph.name!r}: a name has 1 to 64 letters, "
            f"digits and hyphens and is none of {', '.join(sorted(RESERVED))}"
        )
    try:
        opened = embedded_by(engine.open(graph.uri), embedding_of(project, graph))
    except NotFound as error:
        raise NotFound(
            f"{where}: {error.message}: make it with `omnigraph init {graph.name}`"
        ) from error
    policy = project.policy_of(graph)
    compiled = None
    if policy is not None:
        from omnigraph.policy import load

        compiled = load(str(policy), "graph")
    queries = stored_queries(project, graph)
    queries.check(opened.catalog)
    limits = maintenance_limits(project.maintenance)
    return ServedGraph(served_as, opened, compiled, queries, maintenance=limits)


def _server_policy(project: ProjectFile) -> CompiledPolicy | None:
    if project.server.policy is None:
        return None
    from omnigraph.policy import load

    return load(str(project.server.policy), "server")
