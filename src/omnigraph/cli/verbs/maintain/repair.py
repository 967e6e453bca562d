"""`omnigraph repair`: make again what is derived, and keep what is whole of what is lost.

Owns the rendering only; what can be mended is the engine's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_note, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.maintain.repair_report import RepairReport, Rescue


@click.command("repair", cls=VerbCommand)
@uri_argument
@click.option("--confirm", is_flag=True, help="Really mend; without it, only show what would be.")
@click.option("--force", is_flag=True, help="Make all indexes again; needs --confirm.")
@click.option(
    "--keep-as",
    metavar="NAME",
    help="Keep the newest whole commit of a damaged branch as this branch; needs --confirm.",
)
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    confirm: bool,
    force: bool,
    keep_as: str | None,
    as_json: bool,
) -> int:
    """Make again what is derived of a graph, and show what is lost.

    Without --confirm nothing is changed. Rows are never changed, and nothing is removed. Exits
    with 1 if something is lost that cannot be made again.
    """
    if not confirm and (force or keep_as is not None):
        raise click.UsageError("--force and --keep-as change the graph: add --confirm")
    from omnigraph.graph import repair

    target = target_of(scope, uri)
    if confirm and not scope.quiet:
        place = "local" if target.is_local else "remote"
        write_note(f"omnigraph repair → {target.uri} (direct, {place})")
    report = repair(target.uri, confirm=confirm, force=force, keep_as=keep_as)
    if as_json:
        from omnigraph.wire.reports import RepairBody

        write_json(RepairBody.of(report, target.uri, force=force))
    else:
        write_text(_text(report))
    if not confirm:
        write_note("nothing was changed: add --confirm to do it")
    return 0 if report.is_whole else 1


def _text(report: RepairReport) -> str:
    rows = [(one.type_key, one.classification, one.action) for one in report.datasets]
    lines = [render_table(("table", "drift", "action"), rows)]
    lines += report.repaired
    lines += map(_rescue, report.rescues)
    return "\n".join(lines)


def _rescue(rescue: Rescue) -> str:
    if rescue.commit_id is None:
        return f"branch {rescue.branch} has lost something, and no commit of it is whole"
    if rescue.kept_as is not None:
        return f"branch {rescue.branch}: commit {rescue.commit_id} is kept as {rescue.kept_as}"
    return (
        f"branch {rescue.branch} has lost something: commit {rescue.commit_id} is whole, keep it "
        "with --confirm --keep-as NAME"
    )
