"""`omnigraph schema`: the accepted schema of a graph.

Owns the rendering only.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.render.output import write_json, write_text


@click.group("schema", cls=VerbGroup, aliases={"get": "show"})
def command() -> None:
    """Look at the schema of a graph."""


@command.command("show", cls=VerbCommand)
@uri_argument
@json_option
@click.pass_obj
def show_schema(scope: CommandScope, *, uri: str | None, as_json: bool) -> None:
    """Print the schema as it was accepted, comments included."""
    with target_of(scope, uri).read() as graph:
        source = graph.schema
    if as_json:
        from omnigraph.wire.graphs import SchemaBody

        write_json(SchemaBody(source))
    else:
        write_text(source.removesuffix("\n"))
