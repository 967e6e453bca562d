"""`omnigraph lsp`: the language server that editors start.

Owns nothing but the start; the server is `omnigraph.language_server`.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand


@click.command("lsp", cls=VerbCommand)
def command() -> None:
    """Serve editors of .pg and .gq files over stdin and stdout.

    Editors start it: they show mistakes as lint finds them, complete words, show types, properties
    and functions, go to definitions, rename, and format. It ends when the editor does.
    """
    from omnigraph.language_server.server import serve

    serve()
