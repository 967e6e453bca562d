"""`omnigraph explain`: how a query would be run, or how it was.

Owns the choice between text and JSON; both are the engine's.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.query_source import (
    AskedQuery,
    source_options,
    store_of,
    view_of,
    view_options,
    written_query,
)
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import write_json, write_text


@click.command("explain", cls=VerbCommand)
@source_options
@view_options
@click.option("--analyze", is_flag=True, help="Run the query, and show what each step took.")
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
    analyze: bool,
    as_json: bool,
) -> None:
    """Show how a query would be run, or how it was.

    Without --analyze no data is read, and parameters may be left out.
    """
    branch, snapshot = view_of(branch, snapshot)
    source = written_query(asked)
    with store_of(scope).read() as graph:
        shown = graph.explain(
            *source,
            branch=branch,
            snapshot=snapshot,
            analyze=analyze,
            timeout=timeout,
            max_bytes=max_bytes,
        )
    if as_json:
        from omnigraph.wire.results import ExplanationBody

        write_json(ExplanationBody.of(shown))
    else:
        write_text(shown.text)
