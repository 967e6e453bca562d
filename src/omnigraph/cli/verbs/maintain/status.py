"""`omnigraph status`: the health of a graph at a glance.

Owns the rendering only: the verdict comes first, then what it is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.sizes import size_text
from omnigraph.cli.render.tables import render_table, time_text

if TYPE_CHECKING:
    from omnigraph.maintain.health import GraphStatus, Level, TypeStatus
    from omnigraph.manifest.entries import Commit

SHOWN = 40
"""So many types are listed, those first that something is to be done about."""

_VERDICTS: dict[Level, tuple[str, str]] = {
    "ok": ("in order: nothing to do", "green"),
    "due": ("maintenance is due", "yellow"),
    "look": ("something to look at", "yellow"),
    "damaged": ("DAMAGED", "red"),
}


@click.command("status", cls=VerbCommand)
@uri_argument
@branch_option
@json_option
@click.pass_obj
def command(scope: CommandScope, *, uri: str | None, branch: str, as_json: bool) -> int:
    """Show the health of a graph: what it holds, what it takes, and what is to be done.

    Nothing is changed. The exit code is 1 when something is damaged.
    """
    target = target_of(scope, uri)
    with target.read() as graph:
        found = graph.status(branch)
    if as_json:
        from omnigraph.wire.health import StatusBody

        write_json(StatusBody.of(found, target.uri))
    else:
        write_text("\n".join(_lines(found, target.uri)))
    return 1 if found.level == "damaged" else 0


def _lines(status: GraphStatus, uri: str) -> Iterator[str]:
    words, colour = _VERDICTS[status.level]
    yield f"{click.style(uri, bold=True)}: {click.style(words, fg=colour, bold=True)}"
    width = max((len(one.subject) for one in status.findings), default=0)
    for one in status.findings:
        subject = click.style(one.subject.ljust(width), fg=_VERDICTS[one.level][1])
        yield f"  {subject}  {one.message} → {one.advice}"
    yield ""
    yield from _facts(status)
    yield ""
    yield _types(status)


def _facts(status: GraphStatus) -> Iterator[str]:
    yield f"head      {_commit(status.head)} on {status.branch}"
    kept = f"{status.commits_kept:,} can be read"
    yield f"commits   {kept}, the oldest {_commit(status.oldest_commit)}"
    yield f"branches  {status.branches:,}, {len(status.stale_branches):,} of them stale"
    at_most = "at most " if status.is_estimate else ""
    yield (
        f"space     {size_text(status.live_bytes)} live, {size_text(status.stored_bytes)} stored, "
        f"{at_most}{size_text(status.reclaimable_bytes)} reclaimable"
    )
    yield f"writes    {status.writes_at_work} at work, {status.writes_dead} dead"
    yield f"schema    {status.schema_hash}, storage format {status.format}"


def _commit(commit: Commit) -> str:
    by = "" if commit.actor is None else f" by {commit.actor}"
    return f"{commit.id} of {time_text(commit.created_at)}{by}"


def _types(status: GraphStatus) -> str:
    ordered = sorted(status.types, key=lambda one: (one.level == "ok", -one.rows, one.type_key))
    shown = ordered[:SHOWN]
    columns = ("type", "rows", "fragments", "deleted", "indexes", "live", "stored", "state")
    table = render_table(columns, [_row(one) for one in shown])
    rest = ordered[SHOWN:]
    if not rest:
        return table
    due = sum(one.level != "ok" for one in rest)
    words = "all in order" if not due else f"{due:,} of them not in order"
    return f"{table}\nand {len(rest):,} types more, {words}"


def _row(one: TypeStatus) -> tuple[object, ...]:
    return (
        one.type_key,
        one.rows,
        one.fragments,
        one.deleted_rows,
        _indexes(one),
        size_text(one.live_bytes),
        size_text(one.stored_bytes),
        one.level,
    )


def _indexes(one: TypeStatus) -> str:
    """How many of the wanted indexes are whole, and what is with the others."""
    lacking = [
        f"{count} {word}"
        for count, word in (
            (one.indexes_partial, "partial"),
            (one.indexes_pending, "pending"),
            (one.indexes_unasked, "unasked"),
        )
        if count
    ]
    wanted = one.indexes_complete + one.indexes_partial + one.indexes_pending
    if not wanted and not lacking:
        return "-"
    return ", ".join([f"{one.indexes_complete} of {wanted}", *lacking])
