"""`omnigraph branch`: list, create, merge and delete the branches of a graph.

Owns the rendering only; which names are allowed and what may be deleted is the
engine's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, target_of, uri_option
from omnigraph.cli.options.shared import run_id_option
from omnigraph.cli.render.output import (
    DONE_BEFORE,
    diagnose,
    result_of,
    write_json,
    write_note,
    write_text,
)
from omnigraph.cli.render.plans import plan_text
from omnigraph.cli.render.tables import render_table, value_text
from omnigraph.errors import MergeConflicts
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.errors import MergeConflict
    from omnigraph.history.merge.conflicts import MergeResult

HOW_TO_RESOLVE = (
    "take a side with --resolve source or --resolve target: for one kind of conflict with\n"
    "--resolve KIND=SIDE, for one entity with --resolve TYPE:ID=SIDE; or change one of the "
    "branches"
)
HOW_TO_RESOLVE_SCHEMAS = (
    "a disagreement of the schemas is also settled with --resolve TYPE=SIDE or --resolve "
    "TYPE.PROPERTY=SIDE"
)


@click.group("branch", cls=VerbGroup)
def command() -> None:
    """List, create, merge and delete branches."""


@command.command("list", cls=VerbCommand)
@uri_option
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
@click.argument("name")
@uri_option
@click.option(
    "--from",
    "from_branch",
    metavar="B",
    default="main",
    help="The branch whose head it starts from; main if not given.",
)
@json_option
@click.pass_obj
def create_branch(
    scope: CommandScope, *, name: str, uri: str | None, from_branch: str, as_json: bool
) -> None:
    """Create a branch from the head of another. Nothing is copied."""
    target = target_of(scope, uri)
    with target.write("branch create", scope) as graph:
        created = graph.branches.create(name, from_branch)
    if as_json:
        from omnigraph.wire.graphs import BranchCreatedBody

        write_json(BranchCreatedBody(target.uri, from_branch.strip(), created, scope.actor))
    else:
        write_text(f"created branch {created} from {from_branch.strip()}")


def _read_resolution(
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


@command.command("merge", cls=VerbCommand)
@click.argument("source")
@uri_option
@click.option("--into", metavar="B", default="main", help="The target; main if not given.")
@click.option("--delete-branch", is_flag=True, help="Delete the source after the merge.")
@click.option(
    "--resolve",
    metavar="SIDE|KIND=SIDE|TYPE:ID=SIDE|TYPE[.PROPERTY]=SIDE",
    multiple=True,
    callback=_read_resolution,
    help="Which side wins in a conflict, source or target; may be given several times.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and change nothing.")
@run_id_option
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
            )
    except MergeConflicts as error:
        diagnose("error", f"{source} was not merged into {into}: {error}")
        write_note(conflicts_text(error.conflicts))
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
@click.argument("name")
@uri_option
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


def merge_text(result: MergeResult) -> str:
    """What became of a merge, for people."""
    names = f"{result.source} into {result.target}"
    verb = "would merge" if result.is_dry_run else "merged"
    first = f"cannot merge {names}" if result.conflicts else f"{verb} {names}: {result.outcome}"
    lines = [first]
    if result.schema.steps:
        lines += ["schema:", indent(plan_text(result.schema), "  ")]
    if result.counts:
        columns = ("type", "inserted", "updated", "deleted", "combined")
        rows = [
            (key, counts.inserted, counts.updated, counts.deleted, counts.combined)
            for key, counts in result.counts.items()
        ]
        lines.append(render_table(columns, rows))
    if result.resolved:
        lines.append(f"{_counted(len(result.resolved))} resolved:")
        for conflict, side in result.resolved:
            lines.append(f"  {_entity(conflict)}: {conflict.kind}, {side} wins")
    if result.conflicts:
        lines.append(conflicts_text(result.conflicts))
    return "\n".join(lines)


def conflicts_text(conflicts: Sequence[MergeConflict]) -> str:
    """Every conflict by entity, with what the base and both sides say."""
    lines = [f"{_counted(len(conflicts))}:"]
    for entity, found in groupby(conflicts, _entity):
        lines.append(click.style(entity, bold=True))
        for conflict in found:
            lines.append(f"  {click.style(conflict.kind, fg='red')}: {conflict.message}")
            if _has_sides(conflict):
                lines += _values(conflict)
    lines.append(HOW_TO_RESOLVE)
    if any(map(_concerns_schema, conflicts)):
        lines.append(HOW_TO_RESOLVE_SCHEMAS)
    return "\n".join(lines)


def _has_sides(conflict: MergeConflict) -> bool:
    if conflict.base is not None or conflict.kind.startswith(("divergent", "delete")):
        return True
    return _concerns_schema(conflict) and (conflict.source or conflict.target) is not None


def _values(conflict: MergeConflict) -> list[str]:
    label = "" if conflict.property is None else f"{conflict.property} "
    text: Callable[[Any], str] = value_text
    if _concerns_schema(conflict):
        # What each side says is a piece of a schema, not a value.
        label, text = "", str
    sides = (("base", conflict.base), ("source", conflict.source), ("target", conflict.target))
    return [
        f"    {side:>6}  {label}{'(none)' if value is None else text(value)}"
        for side, value in sides
    ]


def _concerns_schema(conflict: MergeConflict) -> bool:
    return not conflict.entity_id


def _entity(conflict: MergeConflict) -> str:
    if _concerns_schema(conflict):
        part = "" if conflict.property is None else f".{conflict.property}"
        return f"{conflict.entity_kind} {conflict.type_name}{part}"
    return f"{conflict.type_name}:{printable(conflict.entity_id)}"


def _counted(count: int) -> str:
    return "1 conflict" if count == 1 else f"{count} conflicts"
