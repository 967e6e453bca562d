"""`omnigraph serve`, which `omnigraph-server` is too: serve a graph over HTTP.

Owns the options and the environment of a server; the rest is the server's.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import timedelta

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.verbs.maintain.cleanup import Duration

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
    no_access_log: bool,
) -> int:
    """Serve a graph over HTTP until a signal comes.

    Bearer tokens are read from the environment. Without any, --unauthenticated has to be given.
    """
    target = target_of(replace(scope, graph=None), uri)

    from omnigraph.server.boot import boot_from, serve
    from omnigraph.server.served import OneGraph, id_of_location

    environment = os.environ
    told = environment.get("OMNIGRAPH_UNAUTHENTICATED", "").strip().lower() not in _FLAGS_OFF
    source = OneGraph(target.uri, scope.graph or id_of_location(target.uri), queries, policy)
    boot = boot_from(source, environment, unauthenticated=unauthenticated or told)
    if maintain_every is not None:
        if not maintain_every:
            raise click.UsageError("--maintain-every needs some time, such as 60s")
        seconds = maintain_every.total_seconds()
        boot = replace(boot, limits=replace(boot.limits, maintain_seconds=seconds))
    return serve(replace(boot, with_access_log=not no_access_log), bind, workers=workers)


def main() -> int:
    """The program `omnigraph-server`: the verb under a name of its own."""
    from omnigraph.cli.main import main as run

    return run(["serve", *sys.argv[1:]])
