"""`omnigraph optimize`: put rows into few large files, and make the indexes fit.

Owns the options and the rendering; what is worth doing is the engine's to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option, engine_of, spark_options, spark_settings
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.maintain.reports import DatasetOptimize, OptimizeReport


@click.command("optimize", cls=VerbCommand)
@uri_argument
@branch_option
@click.option(
    "--type", "types", metavar="T", multiple=True, help="Only this type; may be given repeatedly."
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "inline", "spark"]),
    default="auto",
    help="Where it runs; by size if not given.",
)
@spark_options
@click.option(
    "--clustered", is_flag=True, help="Put nodes in the order of ids, edges in that of their ends."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    branch: str,
    types: Sequence[str],
    engine: str,
    master: str | None,
    remote: str | None,
    conf: Sequence[str],
    clustered: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put rows into few large files, and make indexes fit, as one commit.

    No row changes, writers go on meanwhile, and without anything to do there is no commit.
    Older commits keep their files until a cleanup.
    """
    target = target_of(scope, uri)
    with target.read() if dry_run else target.write("optimize", scope) as graph:
        report = graph.optimize(
            branch,
            list(types) or None,
            engine_of(engine, master, remote),
            clustered,
            dry_run,
            spark=spark_settings(master, remote, conf),
            progress=not as_json,
        )
    if as_json:
        from omnigraph.wire.reports import OptimizeBody

        write_json(OptimizeBody.of(report, target.uri))
    else:
        write_text(_text(report))


def _text(report: OptimizeReport) -> str:
    columns = ("type", "fragments", "become", "rows written", "indexes", "note")
    table = render_table(columns, [_row(one) for one in report.datasets])
    if report.dry_run:
        has_work = any(one.has_work for one in report.datasets)
        done = "nothing was done: a dry run" if has_work else "nothing to do"
    elif report.commit_id is None:
        done = "nothing to do: no commit"
    else:
        done = f"optimized {report.branch} in commit {report.commit_id}"
    return f"{table}\n{done}"


def _row(one: DatasetOptimize) -> tuple[object, ...]:
    indexes = [f"{change.property} {change.action}" for change in one.indexes]
    indexes += [f"{name} dropped" for name in one.indexes_dropped]
    notes = [] if one.skipped is None else [one.skipped]
    notes += [f"{pending.property}: {pending.reason}" for pending in one.pending]
    return (
        one.type_key,
        one.fragments_removed,
        one.fragments_added,
        one.rows_rewritten,
        ", ".join(indexes) or None,
        "; ".join(notes) or None,
    )
