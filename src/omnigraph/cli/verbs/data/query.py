"""`omnigraph query`: run a query and print what it returns.

Owns the choice of the format; the formats are elsewhere, and the rows are the engine's.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.asked_query import AskedQuery, source_options
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.query_source import view_of, view_options
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.formats import FORMATS, Format, TableLayout, render
from omnigraph.cli.render.output import write_data, write_text
from omnigraph.wire.results import ReadOutput


@click.command("query", cls=VerbCommand)
@source_options
@view_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="How rows are printed; table if not given, and nothing else is configured.",
)
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    asked: AskedQuery,
    branch: str | None,
    snapshot: str | None,
    timeout: float | None,
    max_bytes: int | None,
    format_: Format | None,
    as_json: bool,
) -> None:
    """Run a query and print what it returns.

    The words are a LOCATION (a path, a URI or a graph of the project; the default graph without
    one), the NAME of a query, and its parameters. NAME chooses one of several queries, is stored
    with the graph, or is an alias.
    """
    run_query(
        scope,
        asked,
        branch=branch,
        snapshot=snapshot,
        timeout=timeout,
        max_bytes=max_bytes,
        format_="json" if as_json else format_,
    )


def run_query(
    scope: CommandScope,
    asked: AskedQuery,
    *,
    branch: str | None = None,
    snapshot: str | None = None,
    timeout: float | None = None,
    max_bytes: int | None = None,
    format_: Format | None = None,
) -> None:
    """Run a query and print its rows."""
    shown, commit = view_of(branch, snapshot)
    if commit is None:
        shown = asked.branch(scope, branch)
    if asked.target.is_served and asked.source is None:
        if max_bytes is not None:
            raise click.UsageError("the server sets the bound of memory: leave --max-bytes out")
        result = asked.target.served().invoke(
            asked.name or "", asked.params, branch=shown, snapshot=commit, timeout=timeout
        )
    else:
        source = asked.written()
        with asked.target.read() as graph:
            result = graph.query(
                *source, branch=shown, snapshot=commit, timeout=timeout, max_bytes=max_bytes
            )
    layers = layers_of(scope, format=format_)
    wanted = layers.format(asked.alias).value
    write = write_text if wanted in ("table", "kv") else write_data
    layout = TableLayout(layers.width.value, layers.cell_layout.value)
    for piece in render(ReadOutput.of(result), wanted, layout):
        write(piece)
