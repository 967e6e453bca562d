"""What is configured where a command runs: the person's own file and the project, read once.

Owns reading them for a command line, and remarking what nobody knows in them. What counts is for
`omnigraph.config.layers` to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.render.output import diagnose

if TYPE_CHECKING:
    from omnigraph.cli.options.scope import CommandScope
    from omnigraph.config.keys import Output
    from omnigraph.config.layers import Layers
    from omnigraph.config.operator import OperatorConfig
    from omnigraph.config.project import ProjectFile

TAKES_STORE = "omnigraph.takes_store"
"""Where a command line keeps whether its command works on a location of storage."""
_WARNED = "omnigraph.config.warned"
_PROJECT = "omnigraph.config.project"


def _remembered() -> dict[str, Any]:
    """What this command line has read already; nothing is kept where none runs."""
    context = click.get_current_context(silent=True)
    return {} if context is None else context.meta


def operator_config() -> OperatorConfig:
    """What the person at the keyboard has configured; what is not known in it is remarked once."""
    from omnigraph.config.operator import read_operator_config

    config = read_operator_config()
    said = _remembered()
    if not said.get(_WARNED):
        said[_WARNED] = True
        for warning in config.warnings:
            diagnose("warning", warning)
    return config


def project_file(scope: CommandScope) -> ProjectFile | None:
    """The project that a command runs in; the variables of its `env_file` are set then."""
    if scope.no_config:
        return None
    memory = _remembered()
    if _PROJECT not in memory:
        from omnigraph.config.discovery import discover

        memory[_PROJECT] = found = discover(scope.config)
        if found is not None:
            for warning in [*found.warnings, *_set_variables(found)]:
                diagnose("warning", warning)
    project: ProjectFile | None = memory[_PROJECT]
    return project


def _set_variables(project: ProjectFile) -> list[str]:
    if project.env_file is None:
        return []
    from omnigraph.config.variables import load_env_file

    variables = {provider.key_variable for provider in project.embedding.values()}
    return load_env_file(project.env_file, frozenset(filter(None, variables)))


def layers_of(
    scope: CommandScope,
    *,
    branch: str | None = None,
    format: Output | None = None,  # noqa: A002 - the word of the option
) -> Layers:
    """Everything that was said about a command, by whom."""
    from omnigraph.config.layers import Flags, Layers

    project = project_file(scope)
    flags = Flags(scope.graph, branch, format, scope.actor, scope.profile)
    return Layers(
        operator_config(), project, flags, takes_store=_remembered().get(TAKES_STORE, False)
    )
