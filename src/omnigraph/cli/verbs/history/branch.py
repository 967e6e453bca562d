"""`omnigraph branch`: list, create, rename, reset, merge and delete the branches of a graph.

Owns the rendering only; which names are allowed and what may be deleted is the
engine's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.completed import branches, refs
from omnigraph.cli.options.replays import replay_options, resolve_option, run_replay
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import message_option, run_id_option
from omnigraph.cli.options.words import uri_argument, word
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


@click.group("branch", cls=VerbGroup)
def command() -> None:
    """List, create, rename, reset, merge and delete branches."""


@command.command("list", cls=VerbCommand)
@uri_argument
@json_option
@click.pass_obj
def list_branches(scope: CommandScope, *, uri: str | None, as_json: bool) -> None:
    """List the branches by name, main included."""
    with target_of(scope, uri).read() as graph:
        names = graph.branches.list()
    if as_json:
        from omnigraph.wire.graphs import BranchesBody

        write_json(BranchesBody(names))
    else:
        write_text("\n".join(names))


@command.command("create", cls=VerbCommand)
@uri_argument
@word("name")
@click.option(
    "--from",
    "from_branch",
    metavar="B",
    default="main",
    shell_complete=refs,
    help="The branch, commit or tag that it starts from; main if not given.",
)
@json_option
@click.pass_obj
def create_branch(
    scope: CommandScope, *, name: str, uri: str | None, from_branch: str, as_json: bool
) -> None:
    """Create a branch from another, or from any commit. Nothing is copied."""
    target = target_of(scope, uri)
    with target.write("branch create", scope) as graph:
        created = graph.branches.create(name, from_branch)
    if as_json:
        from omnigraph.wire.graphs import BranchCreatedBody

        write_json(BranchCreatedBody(target.uri, from_branch.strip(), created, scope.actor))
    else:
        write_text(f"created branch {created} from {from_branch.strip()}")


@command.command("merge", cls=VerbCommand)
@uri_argument
@word("source", shell_complete=branches)
@click.option(
    "--into",
    shell_complete=branches,
    metavar="B",
    default="main",
    help="The target; main if not given.",
)
@click.option("--delete-branch", is_flag=True, help="Delete the source after the merge.")
@resolve_option
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@run_id_option
@message_option
@json_option
@click.pass_obj
def merge_branch(
    scope: CommandScope,
    *,
    source: str,
    uri: str | None,
    into: str,
    delete_branch: bool,
    resolve: str | dict[str, str] | None,
    dry_run: bool,
    run_id: str | None,
    message: str | None,
    as_json: bool,
) -> int:
    """Merge a branch into another, as one commit, or list all conflicts.

    A dry run that finds conflicts ends with code 1, like a merge.
    """
    from omnigraph.wire.graphs import MergeBody

    target = target_of(scope, uri)
    try:
        with target.read() if dry_run else target.write("branch merge", scope) as graph:
            result = graph.branches.merge(
                source,
                into,
                delete_source=delete_branch,
                resolve=resolve,
                dry_run=dry_run,
                run_id=run_id,
                message=message,
            )
    except MergeConflicts as error:
        diagnose("error", f"{source} was not merged into {into}: {error}")
        write_note(conflicts_text(error.conflicts))
        if as_json:
            write_failure(error, str(error))
        return 1
    with result_of(None if result.commit is None else result.commit.id):
        if result.branch_delete_error is not None:
            diagnose("warning", f"branch {source} was not deleted: {result.branch_delete_error}")
        if as_json:
            write_json(MergeBody.of(result))
        else:
            write_text(merge_text(result))
            if result.repeats_run:
                diagnose("note", DONE_BEFORE)
    return 1 if result.conflicts else 0


@command.command("delete", cls=VerbCommand)
@uri_argument
@word("name", shell_complete=branches)
@json_option
@click.pass_obj
def delete_branch(scope: CommandScope, *, name: str, uri: str | None, as_json: bool) -> None:
    """Delete a branch. Commits that only it had are lost."""
    target = target_of(scope, uri)
    target.require_consent(f"deleting branch {name}", scope, as_json=as_json)
    with target.write("branch delete", scope) as graph:
        deleted = graph.branches.delete(name)
    if as_json:
        from omnigraph.wire.graphs import BranchDeletedBody

        write_json(BranchDeletedBody(target.uri, deleted, scope.actor))
    else:
        write_text(f"deleted branch {deleted}")


@command.command("rename", cls=VerbCommand)
@uri_argument
@word("old", shell_complete=branches)
@word("new")
@json_option
@click.pass_obj
def rename_branch(
    scope: CommandScope, *, old: str, new: str, uri: str | None, as_json: bool
) -> None:
    """Give a branch another name, under which it goes on."""
    target = target_of(scope, uri)
    with target.write("branch rename", scope) as graph:
        renamed = graph.branches.rename(old, new)
    if as_json:
        from omnigraph.wire.graphs import BranchRenamedBody

        write_json(BranchRenamedBody(target.uri, old.strip(), renamed, scope.actor))
    else:
        write_text(f"renamed branch {old.strip()} to {renamed}")


@command.command("reset", cls=VerbCommand)
@uri_argument
@word("name", shell_complete=branches)
@click.option(
    "--to",
    shell_complete=refs,
    metavar="REF",
    required=True,
    help="The commit: an id, a tag, main~2 or the like.",
)
@replay_options
@json_option
@click.pass_obj
def reset_branch(
    scope: CommandScope,
    *,
    name: str,
    to: str,
    uri: str | None,
    dry_run: bool,
    run_id: str | None,
    message: str | None,
    as_json: bool,
) -> int:
    """Have a branch show what a commit showed, schema and all, as one new commit.

    Its history stays: what it was before is one commit back.
    """

    def reset(graph: Graph) -> MergeResult:
        return graph.branches.reset(name, to, dry_run=dry_run, run_id=run_id, message=message)

    return run_replay(scope, uri, "branch reset", reset, dry_run=dry_run, as_json=as_json)
