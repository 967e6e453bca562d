"""`omnigraph history`: which commits changed one entity, and how.

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
from omnigraph.cli.render.output import diagnose, write_json, write_text
from omnigraph.cli.render.tables import time_text
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.manifest.entries import Commit


@click.command("history", cls=VerbCommand)
@uri_argument
@word("type_name", metavar="TYPE", shell_complete=types)
@word("id_", metavar="ID")
@branch_option
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the newest N.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    type_name: str,
    id_: str,
    branch: str,
    limit: int | None,
    uri: str | None,
    as_json: bool,
) -> None:
    """Show which commits changed one entity, and how.

    Of a node and an edge type of one name the node is meant: write `edge:Name` for the other.
    """
    with target_of(scope, uri).read() as graph:
        found = graph.history(type_name, id_, branch=branch, limit=limit)
    if as_json:
        from omnigraph.wire.entities import EntityHistoryBody

        write_json(EntityHistoryBody.of(found))
        return
    from omnigraph.cli.render.changes import ChangeText

    for one in found.changes:
        said = "" if one.commit.message is None else f" “{printable(one.commit.message)}”"
        write_text(click.style(_line(one.commit) + said, fg="cyan"))
        ChangeText().write([one.change])
    if not found.is_complete:
        diagnose("note", "cleanup has reclaimed older commits: there may have been more")


def _line(commit: Commit) -> str:
    author = "" if commit.actor is None else f" by {printable(commit.actor)}"
    return f"commit {commit.id} of {time_text(commit.created_at)}{author}"
