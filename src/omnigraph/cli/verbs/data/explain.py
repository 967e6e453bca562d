"""`omnigraph explain`: how a query would be run, or how it was.

Owns the choice between text and JSON; both are the engine's.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.asked_query import AskedQuery, source_options
from omnigraph.cli.options.query_source import view_of, view_options
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

    Without --analyze no data is read, and parameters may be left out. The words are those of
    `query`: [LOCATION] [NAME] [ARG…].
    """
    state, commit = view_of(branch, snapshot)
    if commit is None:
        state = asked.branch(scope, branch)
    source = asked.written()
    with asked.target.read() as graph:
        shown = graph.explain(
            *source,
            branch=state,
            snapshot=commit,
            analyze=analyze,
            timeout=timeout,
            max_bytes=max_bytes,
        )
    if as_json:
        from omnigraph.wire.results import ExplanationBody

        write_json(ExplanationBody.of(shown))
    else:
        write_text(shown.text)
