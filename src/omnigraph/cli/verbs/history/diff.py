"""`omnigraph diff`: what is different between two branches or commits.

Owns the options and the rendering; what is compared is the engine's.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import change_filters
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.history.diff import Diff


@click.command("diff", cls=VerbCommand)
@uri_argument
@word("before", metavar="A")
@word("after", metavar="B")
@click.option("--stat", is_flag=True, help="Only count, for every type.")
@change_filters
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    /,
    *,
    before: str,
    after: str,
    uri: str | None,
    stat: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show what is different between two branches or commits.

    A and B are names of branches or ids of commits: what is in B and not in A was added.
    """
    with target_of(scope, uri).read() as graph:
        found = graph.diff(before, after, **filters)
        if as_json:
            _write_json(found, stat=stat)
        else:
            write_diff(found, stat=stat)


def _write_json(found: Diff, *, stat: bool) -> None:
    from omnigraph.cli.render.json_stream import write_json_stream
    from omnigraph.wire.changes import DiffBody, streamed_diff

    if stat:
        write_json(DiffBody.of(found, only_stats=True))
    else:
        write_json_stream(streamed_diff(found))


def write_diff(found: Diff, *, stat: bool) -> None:
    """Print a diff for people."""
    from omnigraph.cli.render.changes import NO_OTHER_DIFFERENCES, ChangeText
    from omnigraph.cli.render.plans import plan_text

    has_schema = bool(found.schema.steps)
    if has_schema:
        write_text(click.style("schema", bold=True))
        write_text(indent(plan_text(found.schema), "  "))
    if stat and found.stats:
        _write_stats(found)
        return
    text = ChangeText()
    if not stat:
        text.write(found)
    if has_schema and not text.counts:
        write_text(NO_OTHER_DIFFERENCES)
    else:
        write_text(text.summary)


def _write_stats(found: Diff) -> None:
    rows = [
        (f"{of.kind}:{of.type_name}", of.inserted, of.updated, of.deleted) for of in found.stats
    ]
    write_text(render_table(("type", "added", "changed", "removed"), rows))
