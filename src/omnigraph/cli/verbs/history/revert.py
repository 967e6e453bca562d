"""`omnigraph revert`: undo on a branch what a commit did, as a new commit.

Owns the options; what comes of it is the engine's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.completed import refs
from omnigraph.cli.options.replays import onto_option, replay_options, resolve_option, run_replay
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.options.words import uri_argument, word

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.merge.conflicts import MergeResult


@click.command("revert", cls=VerbCommand)
@uri_argument
@word("ref", shell_complete=refs)
@onto_option
@resolve_option
@replay_options
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    ref: str,
    onto: str,
    uri: str | None,
    resolve: str | dict[str, str] | None,
    dry_run: bool,
    run_id: str | None,
    message: str | None,
    as_json: bool,
) -> int:
    """Undo on a branch what a commit did, as a new commit.

    REF is a commit: an id or its beginning, a tag, a branch, `main~2`, `main@{yesterday}`.
    Conflicts are told and resolved as in a merge. A merge is undone as a whole.
    """

    def revert(graph: Graph) -> MergeResult:
        return graph.branches.revert(
            ref, onto, resolve=resolve, dry_run=dry_run, run_id=run_id, message=message
        )

    return run_replay(scope, uri, "revert", revert, dry_run=dry_run, as_json=as_json)
