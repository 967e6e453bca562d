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
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.verbs.maintain.cleanup import Duration

if TYPE_CHECKING:
    from omnigraph.server.served import GraphSource

_FLAGS_OFF = ("", "0", "false")


@click.command("serve", cls=VerbCommand)
@uri_argument
@click.option(
    "--bind",
    metavar="HOST:PORT",
    default="127.0.0.1:8080",
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
    default=1,
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
    bind: str,
    unauthenticated: bool,
    queries: tuple[str, ...],
    policy: str | None,
    workers: int,
    maintain_every: timedelta | None,
    require_all_graphs: bool,
    no_access_log: bool,
) -> int:
    """Serve a graph over HTTP until a signal comes.

    With --cluster, every graph that was applied to it. Bearer tokens are read from the
    environment. Without any, --unauthenticated has to be given.
    """
    environment = os.environ
    cluster = _cluster_of(scope, uri)
    if cluster is None:
        target = target_of(replace(scope, graph=None), uri)
    elif queries or policy is not None or scope.graph is not None:
        raise click.UsageError(
            "a cluster is served with the queries and policies that were applied to it: leave "
            "--queries, --policy and --graph out"
        )

    from omnigraph.server.boot import boot_from, serve
    from omnigraph.server.served import OneGraph, id_of_location

    source: GraphSource
    if cluster is not None:
        from omnigraph.server.sources.cluster import ClusterGraphs

        wants_all = require_all_graphs or _is_on(environment, "OMNIGRAPH_REQUIRE_ALL_GRAPHS")
        source = ClusterGraphs(cluster, wants_all)
    else:
        id_ = scope.graph or id_of_location(target.uri)
        source = OneGraph(target.uri, id_, queries, policy)
    told = _is_on(environment, "OMNIGRAPH_UNAUTHENTICATED")
    boot = boot_from(source, environment, unauthenticated=unauthenticated or told)
    if maintain_every is not None:
        if not maintain_every:
            raise click.UsageError("--maintain-every needs some time, such as 60s")
        seconds = maintain_every.total_seconds()
        boot = replace(boot, limits=replace(boot.limits, maintain_seconds=seconds))
    return serve(replace(boot, with_access_log=not no_access_log), bind, workers=workers)


def _cluster_of(scope: CommandScope, uri: str | None) -> str | None:
    """The cluster that is to be served, if it is one and not a graph."""
    given = {"URI": uri, "--store": scope.store, "--cluster": scope.cluster}
    named = [name for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise click.UsageError(f"more than one thing to serve ({', '.join(named)}): choose one")
    if named and scope.cluster is None:
        return None
    from omnigraph.cli.options.cluster import configured_cluster

    return configured_cluster(scope)


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() not in _FLAGS_OFF


def main() -> int:
    """The program `omnigraph-server`: the verb under a name of its own."""
    from omnigraph.cli.main import main as run

    return run(["serve", *sys.argv[1:]])
