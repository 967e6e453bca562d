"""`omnigraph query`: run a query and print what it returns.

Owns the choice of the format; the formats are elsewhere, and the rows are the engine's.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.query_source import (
    AskedQuery,
    source_options,
    store_of,
    stored_query,
    view_of,
    view_options,
    written_query,
)
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.formats import FORMATS, Format, render
from omnigraph.cli.render.output import write_data, write_text
from omnigraph.wire.results import ReadOutput


@click.command("query", cls=VerbCommand)
@source_options
@view_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="table",
    help="How rows are printed; table if not given.",
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
    format_: Format,
    as_json: bool,
) -> None:
    """Run a query and print what it returns.

    NAME chooses one of several queries, or is a stored one of a server. The graph is named with
    --store or --server.
    """
    branch, snapshot = view_of(branch, snapshot)
    target = store_of(scope)
    if target.is_served and asked.source is None:
        if max_bytes is not None:
            raise click.UsageError("the server sets the bound of memory: leave --max-bytes out")
        name, params = stored_query(asked)
        result = target.served().invoke(
            name, params, branch=branch, snapshot=snapshot, timeout=timeout
        )
    else:
        source = written_query(asked)
        with target.read() as graph:
            result = graph.query(
                *source, branch=branch, snapshot=snapshot, timeout=timeout, max_bytes=max_bytes
            )
    wanted: Format = "json" if as_json else format_
    write = write_text if wanted in ("table", "kv") else write_data
    for piece in render(ReadOutput.of(result), wanted):
        write(piece)
