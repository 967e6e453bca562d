"""`omnigraph branch`: list, create and delete the branches of a graph.

Owns the rendering only; which names are allowed and what may be deleted is the
engine's to say.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.output import write_json, write_text
from omnigraph.cli.scope import Scope
from omnigraph.cli.target import target_of, uri_option


@click.group("branch", cls=VerbGroup)
def command() -> None:
    """List, create and delete branches."""


@command.command("list", cls=VerbCommand)
@uri_option
@json_option
@click.pass_obj
def list_branches(scope: Scope, *, uri: str | None, as_json: bool) -> None:
    """List the branches by name, main included."""
    with target_of(scope, uri).read() as graph:
        names = graph.branches.list()
    if as_json:
        write_json({"branches": names})
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
    scope: Scope, *, name: str, uri: str | None, from_branch: str, as_json: bool
) -> None:
    """Create a branch from the head of another. Nothing is copied."""
    target = target_of(scope, uri)
    with target.write("branch create", scope) as graph:
        created = graph.branches.create(name, from_branch)
    if as_json:
        body = {"uri": target.uri, "from": from_branch.strip(), "name": created}
        write_json({**body, "actor_id": scope.actor})
    else:
        write_text(f"created branch {created} from {from_branch.strip()}")


@command.command("delete", cls=VerbCommand)
@click.argument("name")
@uri_option
@json_option
@click.pass_obj
def delete_branch(scope: Scope, *, name: str, uri: str | None, as_json: bool) -> None:
    """Delete a branch. Commits that only it had are lost."""
    target = target_of(scope, uri)
    target.require_consent(f"deleting branch {name}", scope, as_json=as_json)
    with target.write("branch delete", scope) as graph:
        deleted = graph.branches.delete(name)
    if as_json:
        write_json({"uri": target.uri, "name": deleted, "actor_id": scope.actor})
    else:
        write_text(f"deleted branch {deleted}")
