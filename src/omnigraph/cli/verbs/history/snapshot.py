"""`omnigraph snapshot`: which version of every table a branch shows.

Owns the rendering only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of, uri_argument
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.manifest.snapshot import Snapshot


@click.command("snapshot", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> None:
    """Show what a branch holds: every type, its version and its size."""
    with target_of(scope, uri).read() as graph:
        snapshot = graph.snapshot(branch)
    if as_json:
        from omnigraph.wire.graphs import SnapshotBody

        write_json(SnapshotBody.of(snapshot))
    else:
        write_text(_text(snapshot))


def _text(snapshot: Snapshot) -> str:
    rows = [
        (key, found.pin.row_count, found.version, found.pin.version, found.table.path)
        for key, found in sorted(snapshot.tables.items())
    ]
    heading = f"branch {snapshot.branch}, manifest version {snapshot.manifest_version}"
    table = render_table(("type", "entities", "version", "lance version", "path"), rows)
    return f"{heading}, commit {snapshot.commit_id}\n{table}"
