"""`omnigraph export`: the entities of a branch as NDJSON on stdout.

Owns the options and the stream; what the lines say is the engine's.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.output import diagnose
from omnigraph.cli.scope import Scope
from omnigraph.cli.target import target_of, uri_argument


@click.command("export", cls=VerbCommand)
@uri_argument
@click.option("--branch", metavar="B", default="main", help="The branch; main if not given.")
@click.option(
    "--type", "types", metavar="T", multiple=True, help="Only this type; may be given repeatedly."
)
@click.option("--jsonl", "as_jsonl", is_flag=True, hidden=True)
@click.pass_obj
def command(
    scope: Scope, *, uri: str | None, branch: str, types: tuple[str, ...], as_jsonl: bool
) -> None:
    """Write the entities of a branch to stdout, one JSON object per line."""
    if as_jsonl:
        diagnose("warning", "`--jsonl` is deprecated: an export is always NDJSON, leave it out")
    with target_of(scope, uri).read() as graph:
        export = graph.export(branch=branch, types=types)
        for chunk in export.chunks():
            # A reader that went away raises here, and click ends the program quietly.
            click.echo(chunk.data, nl=False)
