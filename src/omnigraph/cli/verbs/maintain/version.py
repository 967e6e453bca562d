"""`omnigraph version`: which program this is and which storage format it writes.

Owns the rendering only; the numbers live in `omnigraph.version`.
"""

from __future__ import annotations

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.version import INTERNAL_SCHEMA, __version__


def version_text() -> str:
    """The two lines that `version` and `--version` print."""
    return f"omnigraph {__version__}\ninternal-schema {INTERNAL_SCHEMA}"


@click.command("version", cls=VerbCommand)
@json_option
def command(*, as_json: bool) -> None:
    """Print the version of the program and of its storage format."""
    if as_json:
        from omnigraph.wire.graphs import VersionBody

        write_json(VersionBody.current())
    else:
        write_text(version_text())
