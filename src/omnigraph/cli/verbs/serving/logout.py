"""`omnigraph logout`: forget the token of a server.

Owns the rendering only.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.render.output import write_json, write_text


@click.command("logout", cls=VerbCommand)
@click.argument("name")
@json_option
def command(*, name: str, as_json: bool) -> None:
    """Forget the token of a server.

    Where there is none, nothing is done.
    """
    from omnigraph.config.credentials import remove_token

    removed = remove_token(name)
    if as_json:
        from omnigraph.wire.operator import LogoutBody

        write_json(LogoutBody(name, removed))
    else:
        write_text(f"forgot the token of {name}" if removed else f"there was no token of {name}")
