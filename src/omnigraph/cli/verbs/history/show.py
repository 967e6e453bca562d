"""`omnigraph show`: a commit by any of its names, and what it changed.

Owns the rendering only.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.completed import refs
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.verbs.history.commit import all_changes, facts_of

SHOWN = 50


@click.command("show", cls=VerbCommand)
@uri_argument
@word("ref", shell_complete=refs, default="main")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(0, 1 << 31),
    default=SHOWN,
    help=f"How many changes are shown; {SHOWN} if not given.",
)
@json_option
@click.pass_obj
def command(scope: CommandScope, *, ref: str, limit: int, uri: str | None, as_json: bool) -> None:
    """Show a commit and what it changed.

    REF is a commit: an id or its beginning, a tag, a branch, `main~2`, `main@{yesterday}`; main
    if left out.
    """
    from itertools import islice

    from omnigraph.wire.graphs import CommitBody

    with target_of(scope, uri).read() as graph:
        commit = graph.commits.get(ref)
        if as_json:
            write_json(CommitBody.of(commit))
            return
        write_text("\n".join(f"{name}: {value}" for name, value in facts_of(commit)))
        if commit.parent_id is None or not limit:
            return
        from omnigraph.cli.render.changes import ChangeText

        page = graph.commits.changes(commit.id, limit=min(limit, 1000))
        text = ChangeText()
        changes = all_changes(graph, page, {})
        text.write(islice(changes, limit))
        more = next(changes, None) is not None
        write_text(text.summary + (f", and more: `commit changes {commit.id}`" if more else ""))
