"""`omnigraph config`: what is configured and by whom, and whether a project is in order.

Owns what is said of it. What counts is for `omnigraph.config` to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.configured import layers_of, project_file
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import diagnose, write_data, write_json, write_note, write_text
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.config.project import ProjectFile
    from omnigraph.wire.configured import ConfigProblemBody


@click.group("config", cls=VerbGroup)
def command() -> None:
    """Look at what is configured, check it, and rewrite it."""


@command.command("show", cls=VerbCommand)
@click.option("--branch", metavar="B", help="As if this branch had been given.")
@json_option
@click.pass_obj
def show(scope: CommandScope, *, branch: str | None, as_json: bool) -> None:
    """Print every value that counts, and who says it."""
    from omnigraph.wire.configured import SettingBody, SettingsBody

    layers = layers_of(scope, branch=branch)
    project, operator = layers.project, layers.operator
    found = [SettingBody(key, one.value, one.source) for key, one in layers.values()]
    if as_json:
        path = None if project is None else str(project.path)
        warnings = [*(() if project is None else project.warnings), *operator.warnings]
        older = project is not None and project.is_older
        write_json(SettingsBody(path, str(operator.path), older, found, warnings))
        return
    write_text(f"project: {'none' if project is None else project.path}")
    write_text("\n".join(f"{one.key}: {_shown(one.value)}  ({one.source})" for one in found))


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    from omnigraph.wire.body import encode

    return encode(value).decode()


@command.command("schema", cls=VerbCommand)
def schema() -> None:
    """Print the JSON Schema of omnigraph.yaml, for editors."""
    from omnigraph.config.json_schema import project_schema
    from omnigraph.wire.body import pretty

    write_data(pretty(project_schema()))


@command.command("validate", cls=VerbCommand)
@json_option
@click.pass_obj
def validate(scope: CommandScope, *, as_json: bool) -> int:
    """Check the project: its file, and the schemas, queries and policies that it names.

    Opens no graph. Exits with 1 if anything is wrong.
    """
    from omnigraph.wire.configured import ConfigCheckBody

    project = _project(scope)
    problems = _problems(project)
    if as_json:
        body = ConfigCheckBody(
            not problems, str(project.path), problems, [str(one) for one in project.warnings]
        )
        write_json(body)
    else:
        for one in problems:
            diagnose("error", f"{one.place}: {one.message}")
        if not problems:
            dialect = "the older dialect" if project.is_older else "version 1"
            write_text(f"{project.path.name} is in order ({dialect}, {_counted(project)})")
    return 1 if problems else 0


def _counted(project: ProjectFile) -> str:
    graphs, aliases = len(project.graphs), len(project.aliases)
    return (
        f"{graphs} graph{'' if graphs == 1 else 's'}, {aliases} alias{'' if aliases == 1 else 'es'}"
    )


def _problems(project: ProjectFile) -> list[ConfigProblemBody]:
    from omnigraph.cli.options.project_checks import check_project
    from omnigraph.wire.configured import ConfigProblemBody

    return [ConfigProblemBody(place, message) for place, message in check_project(project)]


@command.command("migrate", cls=VerbCommand)
@click.option("--write", is_flag=True, help="Replace the file; without it the text is printed.")
@json_option
@click.pass_obj
def migrate_file(scope: CommandScope, *, write: bool, as_json: bool) -> None:
    """Rewrite the project's file to version 1, with its comments."""
    from omnigraph.cli.options.query_source import replace_text
    from omnigraph.config.migrate import migrate
    from omnigraph.wire.configured import MigratedBody

    path = _project(scope).path
    found = migrate(path.read_text(encoding="utf-8-sig"), path)
    if write and found.changes:
        replace_text(path, found.text)
    if as_json:
        written = write and bool(found.changes)
        write_json(MigratedBody(str(path), list(found.changes), written, found.text))
        return
    for change in found.changes:
        write_note(change)
    if not found.changes:
        write_text(f"{path} is in version 1 already")
    elif write:
        write_text(f"rewrote {path}")
    else:
        write_data(found.text.rstrip("\n"))


def _project(scope: CommandScope) -> ProjectFile:
    project = project_file(scope)
    if project is None:
        raise BadRequest(
            f"there is no omnigraph.yaml in {Path.cwd()} or above it: make a project with "
            "`omnigraph init --template blank .`, or name a file with --config"
        )
    return project
