"""`omnigraph alias`: run the read that a configured alias stands for.

Owns the parsing only; the rows are printed as those of `query`.
"""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.asked_query import asked_alias, param_options
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.project_queries import find_alias
from omnigraph.cli.options.query_source import read_params
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.formats import FORMATS, Format
from omnigraph.cli.verbs.data.query import run_query


@click.command("alias", cls=VerbCommand)
@click.argument("name")
@click.argument("args", metavar="[ARG…]", nargs=-1)
@param_options
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="How rows are printed; as the alias says if not given.",
)
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    name: str,
    args: tuple[str, ...],
    params: tuple[str, ...],
    params_file: Path | None,
    format_: Format | None,
    as_json: bool,
) -> None:
    """Run the read that an alias stands for, on the graph that it is for.

    ARGs are its parameters, in the order that the alias says. A mutation is run with
    `omnigraph mutate NAME`.
    """
    alias = find_alias(name, layers_of(scope).aliases)
    asked = asked_alias(scope, alias, args, read_params(params, params_file))
    run_query(scope, asked, format_="json" if as_json else format_)
