"""`omnigraph login`: keep the token of a server.

Owns where the token comes from. It is written to the credentials file, and shown nowhere.
"""

from __future__ import annotations

import sys

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.configured import operator_config
from omnigraph.cli.render.output import diagnose, is_terminal, write_json, write_text


@click.command("login", cls=VerbCommand)
@click.argument("name")
@click.option("--token", metavar="T", help="The token; a line of stdin if not given.")
@json_option
def command(*, name: str, token: str | None, as_json: bool) -> None:
    """Keep the token of a server.

    NAME is what the server is called in the configuration. What is given with --token can be seen
    by others in the list of processes: better give it on stdin.
    """
    from omnigraph.config.credentials import store_token

    if token is None:
        token = (
            click.prompt("token", hide_input=True, err=True)
            if is_terminal(sys.stdin)
            else sys.stdin.readline()
        )
    path = store_token(name, token)
    config = operator_config()
    if name not in config.servers:
        diagnose(
            "warning",
            f"there is no server '{name}' in {config.path}: until it has a url there, its token "
            "is sent nowhere",
        )
    if as_json:
        from omnigraph.wire.operator import LoginBody

        write_json(LoginBody(name, str(path)))
    else:
        write_text(f"kept the token of {name} in {path}")
