"""`omnigraph serve`, which `omnigraph-server` is too: serve a graph over HTTP.

Owns the options and the environment of a server; the rest is the server's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.configured import layers_of, project_file
from omnigraph.cli.options.scope import CommandScope, graph_of_project, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.verbs.maintain.cleanup import Duration
from omnigraph.config.keys import STORE
from omnigraph.config.project import ServerSection
from omnigraph.extras import require_extra

if TYPE_CHECKING:
    from omnigraph.config.project import ProjectFile
    from omnigraph.server.served import GraphSource, OneGraph
    from omnigraph.server.sources.project import ProjectGraphs

MAINTAIN_SECONDS = 60.0
"""How far apart rounds of maintenance are, for a project that says what is kept."""
_FLAGS_OFF = ("", "0", "false")


@click.command("serve", cls=VerbCommand)
@uri_argument
@click.option(
    "--bind",
    metavar="HOST:PORT",
    help="Where to listen; port 0 chooses one. 127.0.0.1:8080 if not given.",
)
@click.option(
    "--unauthenticated",
    is_flag=True,
    help="Let everybody who reaches the server do everything.",
)
@click.option(
    "--queries",
    metavar="PATH",
    multiple=True,
    help="A .gq file, or a directory of them: its queries can be called by name.",
)
@click.option(
    "--policy",
    metavar="FILE",
    help="The policy that says which actor may do what.",
)
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(min=1, max=256),
    help="How many processes serve the graph; 1 if not given.",
)
@click.option(
    "--maintain-every",
    metavar="D",
    type=Duration(),
    help="Keep the graph in order in the background, in rounds that are so far apart, as 60s.",
)
@click.option(
    "--require-all-graphs",
    is_flag=True,
    help="With --cluster: do not start unless every graph can be served.",
)
@click.option("--no-access-log", is_flag=True, help="Do not write a line for every request.")
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    bind: str | None,
    unauthenticated: bool,
    queries: tuple[str, ...],
    policy: str | None,
    workers: int | None,
    maintain_every: timedelta | None,
    require_all_graphs: bool,
    no_access_log: bool,
) -> int:
    """Serve a graph over HTTP until a signal comes.

    In a project, without an address: every graph that its file names for that, with their queries
    and policies; with --cluster, every graph that was applied to it. Bearer tokens are read from
    the environment. Without any, --unauthenticated has to be given.
    """
    require_extra("server", "omnigraph serve")
    environment = os.environ
    project = project_file(scope)
    cluster = _cluster_of(scope, uri)
    found = None if cluster is not None else project_source(scope, project, uri)
    if cluster is not None:
        if queries or policy is not None or scope.graph is not None:
            raise click.UsageError(
                "a cluster is served with the queries and policies that were applied to it: leave "
                "--queries, --policy and --graph out"
            )
        from omnigraph.server.sources.cluster import ClusterGraphs

        wants_all = require_all_graphs or _is_on(environment, "OMNIGRAPH_REQUIRE_ALL_GRAPHS")
        source: GraphSource = ClusterGraphs(cluster, wants_all)
    elif found is None:
        source = _one_graph(scope, project, uri, queries, policy)
    elif queries or policy is not None:
        raise click.UsageError(
            "the project says which queries and policies its graphs have: leave --queries and "
            "--policy out"
        )
    else:
        source = found

    from omnigraph.server.boot import DEFAULT_BIND, boot_from, serve

    told = _is_on(environment, "OMNIGRAPH_UNAUTHENTICATED")
    boot = boot_from(source, environment, unauthenticated=unauthenticated or told)
    if maintain_every is not None and not maintain_every:
        raise click.UsageError("--maintain-every needs some time, such as 60s")
    section = None if project is None or (found is None and scope.config is None) else project
    every = maintain_every.total_seconds() if maintain_every is not None else 0.0
    if not every and not boot.limits.maintain_seconds and section and section.maintenance:
        every = MAINTAIN_SECONDS
    if every:
        boot = replace(boot, limits=replace(boot.limits, maintain_seconds=every))
    own = ServerSection() if section is None else section.server
    return serve(
        replace(boot, with_access_log=not no_access_log),
        bind or own.bind or DEFAULT_BIND,
        workers=workers or own.workers or 1,
    )


def project_source(
    scope: CommandScope, project: ProjectFile | None, uri: str | None
) -> ProjectGraphs | None:
    """The graphs of the project, if it is that and no other graph what is to be served."""
    place = layers_of(scope).place
    is_store = scope.store is not None or scope.location is not None
    if uri is None and place is not None and place.source == STORE:
        is_store = True
    if project is None or not project.graphs or is_store:
        return None
    named = scope.graph
    if uri is not None:
        target = graph_of_project(replace(scope, graph=None), uri)
        if target is None or target.graph is None:
            return None
        named = target.graph.name
    elif layers_of(scope).profile is not None:
        return None
    from omnigraph.server.sources.project import ProjectGraphs

    return ProjectGraphs(str(project.path), None if named is None else project.graph(named).name)


def _one_graph(
    scope: CommandScope,
    project: ProjectFile | None,
    uri: str | None,
    queries: tuple[str, ...],
    policy: str | None,
) -> OneGraph:
    """One graph by its location; a file that names none may still say what it is served with."""
    from omnigraph.server.served import OneGraph, id_of_location

    target = target_of(replace(scope, graph=None), uri)
    if project is not None and scope.config is not None:
        queries = queries or tuple(str(one.path) for one in project.queries)
        policy = policy or (None if project.policy is None else str(project.policy))
    return OneGraph(target.uri, scope.graph or id_of_location(target.uri), queries, policy)


def _cluster_of(scope: CommandScope, uri: str | None) -> str | None:
    """The cluster that is to be served, if it is one and not a graph."""
    given = {
        "URI": uri,
        "--uri": scope.location,
        "--store": scope.store,
        "--cluster": scope.cluster,
    }
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise click.UsageError(f"more than one thing to serve ({', '.join(named)}): choose one")
    if scope.cluster is None and (named or layers_of(scope).profile is None):
        return None
    from omnigraph.cli.options.cluster import configured_cluster

    return configured_cluster(scope)


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() not in _FLAGS_OFF


def main() -> int:
    """The program `omnigraph-server`: the verb under a name of its own."""
    from omnigraph.cli.main import main as run

    return run(["serve", *sys.argv[1:]])
