"""`omnigraph commit`: the commits of a graph, as a list and one by one.

Owns the rendering and the reading of `--filter`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from omnigraph.cli.bodies import commit_body
from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.output import write_json, write_text
from omnigraph.cli.scope import Scope
from omnigraph.cli.tables import render_table
from omnigraph.cli.target import target_of, uri_argument, uri_option

if TYPE_CHECKING:
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
@click.option("--branch", metavar="B", default="main", help="The branch; main if not given.")
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
    scope: Scope, *, uri: str | None, branch: str, by_actor: str | None, as_json: bool
) -> None:
    """List the commits a branch can see, newest first."""
    with target_of(scope, uri).read() as graph:
        commits = graph.commits.list(branch, actor=by_actor)
    if as_json:
        write_json({"commits": [commit_body(commit) for commit in commits]})
    else:
        columns = ("commit", "created", "actor", "branch", "manifest version")
        write_text(render_table(columns, [_row(commit) for commit in commits]))


@command.command("show", cls=VerbCommand)
@click.argument("commit_id", metavar="ID")
@uri_option
@json_option
@click.pass_obj
def show_commit(scope: Scope, *, commit_id: str, uri: str | None, as_json: bool) -> None:
    """Show one commit, whatever branch it is on."""
    with target_of(scope, uri).read() as graph:
        commit = graph.commits.get(commit_id)
    if as_json:
        write_json(commit_body(commit))
    else:
        write_text("\n".join(f"{name}: {value}" for name, value in _facts(commit)))


def _row(commit: Commit) -> tuple[object, ...]:
    return (
        commit.id,
        _time(commit.created_at),
        commit.actor,
        commit.branch or "main",
        commit.manifest_version,
    )


def _facts(commit: Commit) -> list[tuple[str, object]]:
    facts = [
        ("commit", commit.id),
        ("created", _time(commit.created_at)),
        ("branch", commit.branch or "main"),
        ("manifest version", commit.manifest_version),
        ("actor", commit.actor),
        ("parent", commit.parent_id),
        ("merged parent", commit.merged_parent_id),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _time(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
