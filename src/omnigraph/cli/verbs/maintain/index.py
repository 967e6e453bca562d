"""`omnigraph index`: build the indexes of a branch, and see what they cover.

Owns the rendering only; which indexes there are is the engine's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.maintain.reports import IndexReport, IndexState, IndexStatus


@click.group("index", cls=VerbGroup)
def command() -> None:
    """Build the indexes that a schema asks for, and see what they cover."""


@command.command("ensure", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def ensure(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> None:
    """Build missing indexes, and extend those that lag, as one commit.

    No row changes, writers go on meanwhile, and without anything to do there is no commit.
    """
    target = target_of(scope, uri)
    with target.write("index ensure", scope) as graph:
        report = graph.ensure_indices(branch)
    if as_json:
        from omnigraph.wire.reports import IndexReportBody

        write_json(IndexReportBody.of(report, target.uri))
    else:
        write_text(_report_text(report))


@command.command("status", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def status(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> None:
    """Show every index: what it covers, or why it is not there.

    Rows that an index does not cover yet are found all the same, only not as fast.
    """
    target = target_of(scope, uri)
    with target.read() as graph:
        found = graph.index_status(branch)
    if as_json:
        from omnigraph.wire.reports import IndexStatusBody

        write_json(IndexStatusBody.of(found, target.uri))
    else:
        write_text(_status_text(found))


def _report_text(report: IndexReport) -> str:
    rows: list[tuple[object, ...]] = [
        (change.type_key, change.property, change.kind, change.action, change.rows, None)
        for change in report.changes
    ]
    rows += [
        (one.type_key, one.property, None, "pending", None, one.reason) for one in report.pending
    ]
    columns = ("type", "property", "index", "what was done", "rows", "reason")
    count = len(report.changes)
    done = (
        "nothing to do: no commit"
        if report.commit_id is None
        else f"{count} index{'' if count == 1 else 'es'} in commit {report.commit_id}"
    )
    return f"{render_table(columns, rows)}\n{done}"


def _status_text(found: IndexStatus) -> str:
    columns = ("type", "property", "index", "rows covered", "state", "reason")
    table = render_table(columns, [_row(index) for index in found.indexes])
    return f"branch {found.branch}, commit {found.commit_id}\n{table}"


def _row(index: IndexState) -> tuple[object, ...]:
    covered = f"{index.rows_covered:,} of {index.rows_total:,}"
    return (index.type_key, index.property, index.kind, covered, index.state, index.reason)
