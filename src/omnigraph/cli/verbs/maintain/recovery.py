"""`omnigraph recovery`: what became of writes that did not finish.

Owns the rendering only; nothing is swept or mended here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table, time_text

if TYPE_CHECKING:
    from omnigraph.write.change.results import Recovery, TableOutcome


@click.group("recovery", cls=VerbGroup)
def command() -> None:
    """Look at what became of writes that did not finish."""


@command.command("list", cls=VerbCommand)
@uri_argument
@json_option
@click.pass_obj
def list_recoveries(scope: CommandScope, *, uri: str | None, as_json: bool) -> None:
    """List the recovered writes of a graph, newest first."""
    with target_of(scope, uri).read() as graph:
        found = graph.recoveries()
    if as_json:
        from omnigraph.wire.reports import RecoveriesBody

        write_json(RecoveriesBody.of(found))
    else:
        columns = ("operation", "outcome", "writer", "actor", "commit", "recovered", "tables")
        write_text(render_table(columns, [_row(recovery) for recovery in found]))


def _row(recovery: Recovery) -> tuple[object, ...]:
    return (
        recovery.operation_id,
        recovery.recovery_kind,
        recovery.writer_kind,
        recovery.recovery_for_actor,
        recovery.graph_commit_id,
        time_text(recovery.created_at),
        ", ".join(map(_versions, recovery.tables)),
    )


def _versions(table: TableOutcome) -> str:
    if table.from_version == table.to_version:
        return f"{table.table_key} {table.to_version}"
    return f"{table.table_key} {table.from_version} → {table.to_version}"
