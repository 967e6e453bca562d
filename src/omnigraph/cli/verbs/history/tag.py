"""`omnigraph tag`: list, create and delete the tags of a graph.

Owns the rendering only; what a tag keeps is the engine's to say.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.completed import refs, tags
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table


@click.group("tag", cls=VerbGroup)
def command() -> None:
    """List, create and delete tags: names of commits, which cleanup leaves readable."""


@command.command("list", cls=VerbCommand)
@uri_argument
@json_option
@click.pass_obj
def list_tags(scope: CommandScope, *, uri: str | None, as_json: bool) -> None:
    """List the tags by name, with the commits they keep."""
    with target_of(scope, uri).read() as graph:
        found = graph.tags.list()
    if as_json:
        from omnigraph.wire.graphs import TagBody, TagsBody

        write_json(TagsBody([TagBody(name, commit) for name, commit in found.items()]))
    elif found:
        write_text(render_table(("tag", "commit"), list(found.items())))


@command.command("create", cls=VerbCommand)
@uri_argument
@word("name")
@word("ref", default="main", shell_complete=refs)
@json_option
@click.pass_obj
def create_tag(scope: CommandScope, *, name: str, ref: str, uri: str | None, as_json: bool) -> None:
    """Give a commit a name; REF is a commit, a branch, `main~2` or the like, main if left out."""
    with target_of(scope, uri).write("tag create", scope) as graph:
        made = graph.tags.create(name, ref)
        commit = graph.commits.get(made)
    if as_json:
        from omnigraph.wire.graphs import TagBody

        write_json(TagBody(made, commit.id))
    else:
        write_text(f"created tag {made} of commit {commit.id}")


@command.command("delete", cls=VerbCommand)
@uri_argument
@word("name", shell_complete=tags)
@json_option
@click.pass_obj
def delete_tag(scope: CommandScope, *, name: str, uri: str | None, as_json: bool) -> None:
    """Delete a tag. What only it kept goes with the next cleanup."""
    with target_of(scope, uri).write("tag delete", scope) as graph:
        gone = graph.tags.delete(name)
    if as_json:
        from omnigraph.wire.graphs import TagDeletedBody

        write_json(TagDeletedBody(gone))
    else:
        write_text(f"deleted tag {gone}")
