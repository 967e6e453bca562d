"""`omnigraph commit`: the commits of a graph, as a list, one by one, and what each changed.

Owns the rendering and the reading of `--filter`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.completed import refs
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option, change_filters, limit_option
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table, time_text

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.changes import Change
    from omnigraph.history.feed import CommitChanges
    from omnigraph.manifest.entries import Commit


@click.group("commit", cls=VerbGroup)
def command() -> None:
    """Look at the commits of a graph."""


def _read_filter(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The actor of `actor=NAME`."""
    if value is None:
        return None
    name, equals, actor = value.partition("=")
    if name.strip() != "actor" or not equals or not actor.strip():
        raise click.BadParameter(f"{value!r} is not actor=NAME", ctx, param)
    return actor.strip()


@command.command("list", cls=VerbCommand)
@uri_argument
@branch_option
@click.option(
    "--filter",
    "by_actor",
    metavar="actor=NAME",
    callback=_read_filter,
    help="Only the commits of one actor.",
)
@json_option
@click.pass_obj
def list_commits(
    scope: CommandScope, *, uri: str | None, branch: str, by_actor: str | None, as_json: bool
) -> None:
    """List the commits a branch can see, newest first."""
    with target_of(scope, uri).read() as graph:
        commits = graph.commits.list(branch, actor=by_actor)
    if as_json:
        from omnigraph.wire.graphs import CommitsBody

        write_json(CommitsBody.of(commits))
    else:
        columns = ("commit", "created", "actor", "branch", "manifest version")
        write_text(render_table(columns, [_row(commit) for commit in commits]))


@command.command("show", cls=VerbCommand)
@uri_argument
@word("commit_id", shell_complete=refs, metavar="ID")
@json_option
@click.pass_obj
def show_commit(scope: CommandScope, *, commit_id: str, uri: str | None, as_json: bool) -> None:
    """Show one commit, whatever branch it is on."""
    with target_of(scope, uri).read() as graph:
        commit = graph.commits.get(commit_id)
    if as_json:
        from omnigraph.wire.graphs import CommitBody

        write_json(CommitBody.of(commit))
    else:
        write_text("\n".join(f"{name}: {value}" for name, value in facts_of(commit)))


@command.command("changes", cls=VerbCommand)
@uri_argument
@word("commit_id", shell_complete=refs, metavar="ID")
@limit_option
@click.option("--page-token", metavar="T", help="Only the page behind this token.")
@change_filters
@json_option
@click.pass_obj
def show_changes(
    scope: CommandScope,
    /,
    *,
    commit_id: str,
    uri: str | None,
    page_token: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what a commit changed against its first parent."""
    from omnigraph.cli.render.changes import ChangeText, cause_line
    from omnigraph.cli.render.json_stream import write_json_stream
    from omnigraph.wire.changes import streamed_block

    with target_of(scope, uri).read() as graph:
        page = graph.commits.changes(commit_id, page_token=page_token, **options)
        if page_token is None:
            changes = all_changes(graph, page, options)
            next_page_token = None
        else:
            changes = iter(page.changes)
            next_page_token = page.next_page_token
        if as_json:
            write_json_stream(streamed_block(page.cause, changes, next_page_token))
            return
        write_text(cause_line(page.cause))
        text = ChangeText()
        text.write(changes)
        write_text(text.summary)
        if next_page_token is not None:
            write_text(f"next page: {next_page_token}")


def all_changes(graph: Graph, page: CommitChanges, options: dict[str, Any]) -> Iterator[Change]:
    """The changes of a page and of all that follow."""
    commit_id = page.cause.graph_commit_id
    yield from page.changes
    while page.next_page_token is not None:
        page = graph.commits.changes(commit_id, page_token=page.next_page_token, **options)
        yield from page.changes


def _row(commit: Commit) -> tuple[object, ...]:
    return (
        commit.id,
        time_text(commit.created_at),
        commit.actor,
        commit.branch or "main",
        commit.manifest_version,
    )


def facts_of(commit: Commit) -> list[tuple[str, object]]:
    """What there is to say of a commit."""
    facts = [
        ("commit", commit.id),
        ("created", time_text(commit.created_at)),
        ("branch", commit.branch or "main"),
        ("manifest version", commit.manifest_version),
        ("actor", commit.actor),
        ("parent", commit.parent_id),
        ("merged parent", commit.merged_parent_id),
        ("message", commit.message),
    ]
    return [(name, value) for name, value in facts if value is not None]
