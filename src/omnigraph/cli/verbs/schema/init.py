"""`omnigraph init`: make a graph where there is none, or a project to begin with.

Owns the parsing only; the steps live behind `omnigraph.graph.init`, the files of a project behind
`omnigraph.config.templates`.
"""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.project_schema import schema_of
from omnigraph.cli.options.scope import (
    CommandScope,
    Target,
    graph_of_project,
    storage_target,
    target_of,
)
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_note, write_text
from omnigraph.config.keys import TEMPLATES
from omnigraph.errors import BadRequest


@click.command("init", cls=VerbCommand)
@uri_argument
@click.option(
    "--schema",
    type=click.Path(path_type=Path),
    help="The schema of the graph, a .pg file; that of the project if not given.",
)
@click.option("--force", is_flag=True, help="Overwrite what an init that died has left.")
@click.option(
    "--template",
    type=click.Choice(TEMPLATES),
    help="Write a project to begin with; URI is its directory then, and no graph is made.",
)
@click.pass_obj
def command(
    scope: CommandScope, *, uri: str | None, schema: Path | None, force: bool, template: str | None
) -> None:
    """Make a new, empty graph, or write a project.

    Refused where there is a graph already, with or without --force. In a project URI may be the
    name of a graph, or left out for the default one.
    """
    if template is not None:
        directory = uri or scope.location or scope.store
        _write_project(directory, template, schema, force=force)
        return
    target = _target(scope, uri)
    path = schema_of(scope, target, schema)
    from omnigraph import graph
    from omnigraph.cli.options.cluster import refuse_in_cluster

    refuse_in_cluster(target.uri, "declare it in cluster.yaml, and run `omnigraph cluster apply`")
    graph.init(target.uri, path, force=force, actor=layers_of(scope).actor.value).close()
    if target.graph is not None and not scope.quiet:
        place = "local" if target.is_local else "remote"
        write_note(f"omnigraph init → {target.shown} (direct, {place})")
    write_text(f"initialized {target.uri}")


def _target(scope: CommandScope, uri: str | None) -> Target:
    # Unlike elsewhere, a path that is nearly the name of a graph of the project is a new one.
    is_new = uri is not None and not scope.is_addressed
    found = graph_of_project(scope, uri) if is_new and uri is not None else None
    if found is None:
        found = storage_target(uri) if is_new and uri is not None else target_of(scope, uri, "its")
    if found.is_served:
        raise BadRequest(f"{found.shown} is on a server: make it where its storage is")
    return found


def _write_project(
    directory: str | None, template: str, schema: Path | None, *, force: bool
) -> None:
    if schema is not None or force:
        raise click.UsageError("--template writes a project: leave --schema and --force out")
    if directory is None or "://" in directory:
        raise click.UsageError("where? give the directory of the project: --template NAME DIR")
    from omnigraph.config.templates import write_template

    place = Path(directory)
    for path in write_template(template, place):
        write_text(f"wrote {path}")
    write_note(f"next: cd {place} and follow README.md")
