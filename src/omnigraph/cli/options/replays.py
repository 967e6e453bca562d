"""The options and the output of the verbs that replay a commit: revert, cherry-pick, branch reset.

Owns what they share; each verb says what it does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.options.completed import branches
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import message_option, run_id_option, together
from omnigraph.cli.render.merges import conflicts_text, merge_text
from omnigraph.cli.render.output import (
    DONE_BEFORE,
    diagnose,
    result_of,
    write_failure,
    write_json,
    write_note,
    write_text,
)
from omnigraph.errors import MergeConflicts

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.merge.conflicts import MergeResult


def read_resolution(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> str | dict[str, str] | None:
    """One side for everything, or sides by what stands before the last `=`."""
    sides = [value for value in values if "=" not in value]
    if sides and len(values) > 1:
        raise click.BadParameter(
            f"{sides[0]!r} settles everything: leave the others out", ctx, param
        )
    if sides:
        return sides[0]
    return dict(value.rsplit("=", 1) for value in values) or None


onto_option = click.option(
    "--onto",
    metavar="B",
    default="main",
    help="The branch; main if not given.",
    shell_complete=branches,
)
resolve_option = click.option(
    "--resolve",
    metavar="SIDE|KIND=SIDE|TYPE:ID=SIDE|TYPE[.PROPERTY]=SIDE",
    multiple=True,
    callback=read_resolution,
    help="Which side wins in a conflict, source or target; may be given several times.",
)
replay_options = together(
    click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing."),
    run_id_option,
    message_option,
)


def run_replay(
    scope: CommandScope,
    uri: str | None,
    verb: str,
    work: Callable[[Graph], MergeResult],
    *,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run one of these verbs and say how it went; a dry run with conflicts ends with code 1."""
    target = target_of(scope, uri)
    try:
        with target.read() if dry_run else target.write(verb, scope) as graph:
            result = work(graph)
    except MergeConflicts as error:
        diagnose("error", f"{verb}: {error}")
        write_note(conflicts_text(error.conflicts))
        if as_json:
            write_failure(error, str(error))
        return 1
    with result_of(None if result.commit is None else result.commit.id):
        if as_json:
            from omnigraph.wire.graphs import MergeBody

            write_json(MergeBody.of(result))
        else:
            write_text(merge_text(result, verb))
            if result.repeats_run:
                diagnose("note", DONE_BEFORE)
    return 1 if result.conflicts else 0
