"""`omnigraph blame`: who set each property of an entity last, and in which commit.

Owns the rendering only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.completed import types
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table, time_text, value_text

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit


@click.command("blame", cls=VerbCommand)
@uri_argument
@word("type_name", metavar="TYPE", shell_complete=types)
@word("id_", metavar="ID")
@branch_option
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    type_name: str,
    id_: str,
    branch: str,
    uri: str | None,
    as_json: bool,
) -> None:
    """Show who set each property of an entity last, and in which commit.

    Of a node and an edge type of one name the node is meant: write `edge:Name` for the other.
    """
    with target_of(scope, uri).read() as graph:
        found = graph.blame(type_name, id_, branch=branch)
    if as_json:
        from omnigraph.wire.entities import BlameBody

        write_json(BlameBody.of(found))
        return
    rows = [
        (
            one.property,
            value_text(one.value),
            *_set_by(one.commit),
        )
        for one in found
    ]
    write_text(render_table(("property", "value", "commit", "time", "actor", "message"), rows))


def _set_by(commit: Commit | None) -> tuple[object, ...]:
    if commit is None:
        return ("(reclaimed)", None, None, None)
    message = None if commit.message is None else commit.message.splitlines()[0]
    return (commit.id, time_text(commit.created_at), commit.actor, message)
