"""`omnigraph init`: make a graph where there is none.

Owns the parsing only; the steps live behind `omnigraph.graph.init`.
"""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.scope import storage_target
from omnigraph.cli.render.output import write_text


@click.command("init", cls=VerbCommand)
@click.argument("uri")
@click.option(
    "--schema",
    type=click.Path(path_type=Path),
    required=True,
    help="The schema of the graph, a .pg file.",
)
@click.option("--force", is_flag=True, help="Overwrite what an init that died has left.")
def command(*, uri: str, schema: Path, force: bool) -> None:
    """Make a new, empty graph.

    Refused where there is a graph already, with or without --force.
    """
    target = storage_target(uri)
    from omnigraph import graph
    from omnigraph.cli.options.cluster import refuse_in_cluster

    refuse_in_cluster(target.uri, "declare it in cluster.yaml, and run `omnigraph cluster apply`")
    graph.init(target.uri, schema, force=force).close()
    write_text(f"initialized {target.uri}")
