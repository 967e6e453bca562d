"""The branch of a command that names none: what the environment or the project says, else main.

Owns putting it where the command looks for it. Leaves commands alone that were told a commit, all
branches, or a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from omnigraph.cli.options.configured import layers_of, project_file
from omnigraph.config.keys import BRANCH

if TYPE_CHECKING:
    from omnigraph.cli.options.scope import CommandScope

_INSTEAD = ("snapshot", "commit", "every")
"""The options that say what is looked at without a branch."""


def fill_branch(ctx: click.Context, scope: CommandScope, option: click.Option) -> None:
    """Give a command the branch that is configured, if it was given none."""
    name = option.name or ""
    if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
        return
    if any(ctx.params.get(other) for other in _INSTEAD) or "words" in ctx.params:
        return
    found = configured_branch(scope, ctx.params.get("uri"))
    if found is not None:
        ctx.params[name] = found


def configured_branch(scope: CommandScope, uri: str | None) -> str | None:
    """The branch that is configured for the graph of an address, or for the one that is meant."""
    uri = uri or scope.location
    if uri is None and not any((scope.store, scope.server, scope.cluster)):
        layers = layers_of(scope)
        place = layers.place
        graph = place.target if place is not None and place.kind == "graph" else None
        return layers.branch(graph).value
    if uri is not None and "://" not in uri:
        project = project_file(scope)
        if project is not None and uri in project.graphs:
            return layers_of(scope).branch(uri).value
    return layers_of(scope).environment.get(BRANCH, "").strip() or None
