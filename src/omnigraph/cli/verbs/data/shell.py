"""`omnigraph shell`: ask a graph one thing after the other, at a prompt or through a pipe.

Owns the choice between the two. What is asked, and what is said to it, is omnigraph.cli.shell's.
"""

from __future__ import annotations

import sys

import click

from omnigraph.cli.command import VerbCommand
from omnigraph.cli.options.configured import layers_of
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.formats import FORMATS, Format, TableLayout
from omnigraph.cli.render.output import is_terminal

HISTORY = "shell_history"


@click.command("shell", cls=VerbCommand)
@uri_argument
@branch_option
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="How rows are printed; table if not given, and nothing else is configured.",
)
@click.pass_obj
def command(scope: CommandScope, *, uri: str | None, branch: str, format_: Format | None) -> int:
    """Ask a graph one thing after the other.

    URI is a path, a URI or a graph of the project; the default graph without one. What comes
    through a pipe is run statement by statement, and the exit code is 1 if one of them failed.
    """
    from omnigraph.cli.shell.loop import run_lines, run_terminal
    from omnigraph.cli.shell.session import ShellSession
    from omnigraph.config.operator import operator_directory

    layers = layers_of(scope, format=format_)
    session = ShellSession(
        scope,
        target_of(scope, uri),
        branch,
        layers.format(None).value,
        TableLayout(layers.width.value, layers.cell_layout.value),
    )
    try:
        # A graph or a branch that is not there is said before anything is asked.
        session.switch(branch)
        if is_terminal(sys.stdin) and is_terminal(sys.stdout):
            return run_terminal(session, operator_directory() / HISTORY)
        return run_lines(session, sys.stdin or ())
    finally:
        session.close()
