"""`omnigraph snapshot`: which version of every table a branch shows.

Owns the rendering only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.wire.graphs import SnapshotBody


@click.command("snapshot", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> None:
    """Show what a branch holds: every type, its version and its size."""
    from omnigraph.wire.graphs import SnapshotBody

    target, commit_id = target_of(scope, uri), None
    if target.is_served:
        found = target.served().snapshot(branch)
    else:
        with target.read() as graph:
            snapshot = graph.snapshot(branch)
        found, commit_id = SnapshotBody.of(snapshot), snapshot.commit_id
    if as_json:
        write_json(found)
    else:
        write_text(_text(found, commit_id))


def _text(found: SnapshotBody, commit_id: str | None) -> str:
    rows = [
        (
            f"{one.entity_kind}:{one.type_name}",
            one.entity_count,
            one.published_dataset_version,
            one.lance_version,
            one.dataset_path,
        )
        for one in found.datasets
    ]
    heading = f"branch {found.graph_branch}, manifest version {found.graph_manifest_version}"
    table = render_table(("type", "entities", "version", "lance version", "path"), rows)
    # A server does not say it.
    commit = "" if commit_id is None else f", commit {commit_id}"
    return f"{heading}{commit}\n{table}"
