"""`omnigraph graphs`: the graphs of a server.

Owns the rendering only; who may list them the server says.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.configured import operator_config
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import diagnose, write_json, write_text


@click.group("graphs", cls=VerbGroup)
def command() -> None:
    """Look at the graphs of a server."""


@command.command("list", cls=VerbCommand)
@json_option
@click.pass_obj
def list_graphs(scope: CommandScope, *, as_json: bool) -> None:
    """List the graphs of a server: their ids, and where they are."""
    from omnigraph.cli.options.served import address_of, graphs_of
    from omnigraph.config.operator import active_profile

    config = operator_config()
    server, profile = scope.server, active_profile(scope.profile)
    if server is None and profile is not None:
        kind, server = config.profile(profile).binding
        if kind != "server":
            raise click.UsageError(f"the profile '{profile}' names a {kind}, not a server")
    server = server or config.defaults.server
    if server is None:
        raise click.UsageError("which server? give --server NAME|URL")
    found = graphs_of(address_of(server, config), config)
    if as_json:
        write_json(found)
        return
    write_text("\n".join(f"{one.graph_id}\t{one.uri}" for one in found.graphs))
    for one in found.quarantined:
        diagnose("warning", f"{one.graph_id} is not served: {one.reason}")
