"""`omnigraph cleanup`: reclaim the files that no commit needs but those to be kept.

Owns the spelling of the rule and the rendering; what is needed is the engine's to say.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import (
    diagnose,
    is_terminal,
    write_json,
    write_note,
    write_text,
)
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.maintain.reports import CleanupProgress, CleanupReport

_REDRAW_SECONDS = 0.1
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?P<count>[0-9]+)(?P<unit>[smhdw]?)")


class Duration(click.ParamType[timedelta]):
    """A whole number and a unit, such as `7d`; without a unit, seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        """The duration, or a usage error."""
        if isinstance(value, timedelta):
            return value
        found = _DURATION.fullmatch(str(value).strip())
        if found is None:
            self.fail(
                f"{value!r} is not a duration: write a whole number and one of s, m, h, d, w, "
                "such as 7d",
                param,
                ctx,
            )
        try:
            return timedelta(**{_UNITS[found["unit"] or "s"]: int(found["count"])})
        except OverflowError:
            self.fail(f"{value!r} is too long", param, ctx)


@click.command("cleanup", cls=VerbCommand)
@uri_argument
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(min=0),
    help="Keep the newest N commits of every branch.",
)
@click.option(
    "--older-than",
    metavar="D",
    type=Duration(),
    help="Reclaim only commits older than this, such as 30d.",
)
@click.option(
    "--grace",
    metavar="D",
    type=Duration(),
    default="1h",
    help="Keep what a branch showed less than this ago; 1h if not given.",
)
@click.option("--confirm", is_flag=True, help="Really remove; without it, only show what would go.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    keep: int | None,
    older_than: timedelta | None,
    grace: timedelta,
    confirm: bool,
    as_json: bool,
) -> int:
    """Reclaim the files that no commit needs but those to be kept.

    Give --keep, --older-than or both: a commit goes only if both say so. The heads of all
    branches stay. Without --confirm nothing is removed.
    """
    if keep is None and older_than is None:
        raise click.UsageError("what is to be kept? give --keep N, --older-than D or both")
    target = target_of(scope, uri)
    if confirm:
        target.require_consent("reclaiming old commits", scope, as_json=as_json)
    with target.write("cleanup", scope) if confirm else target.read() as graph:
        is_shown = is_terminal(sys.stderr) and not as_json
        with _progress_line(is_shown=is_shown) as progress:
            report = graph.cleanup(
                keep, older_than, grace=grace, dry_run=not confirm, progress=progress
            )
    for notice in report.notices:
        diagnose("note", notice)
    if as_json:
        from omnigraph.wire.reports import CleanupBody

        write_json(CleanupBody.of(report, target.uri, keep, older_than))
    else:
        write_text(_text(report))
    if not confirm:
        write_note(f"{_policy(keep, older_than)}\nnothing was removed: add --confirm to do it")
    for directory, error in report.errors.items():
        diagnose("error", f"{directory}: {error}")
    return 1 if report.errors else 0


@contextmanager
def _progress_line(*, is_shown: bool) -> Iterator[Callable[[CleanupProgress], None] | None]:
    """One line on a terminal that says how far it is, and goes when it is done."""
    if not is_shown:
        yield None
        return
    shown = 0.0

    def show(progress: CleanupProgress) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= _REDRAW_SECONDS:
            shown = now
            text = f"cleanup: {progress.step} {progress.done:,} of {progress.total:,}"
            sys.stderr.write(f"\r{text}\033[K")
            sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()


def _text(report: CleanupReport) -> str:
    rows = [
        (one.type_key, one.old_versions_removed, one.files_removed, one.bytes_removed)
        for one in report.tables
    ]
    table = render_table(("table", "versions", "files", "bytes"), rows)
    done = "would reclaim" if report.dry_run else "reclaimed"
    commits = f"{report.commits_reclaimed} commit{'' if report.commits_reclaimed == 1 else 's'}"
    files = f"{report.files_removed} files, {report.bytes_removed:,} bytes"
    return f"{table}\n{done} {commits}: {files}"


def _policy(keep: int | None, older_than: timedelta | None) -> str:
    """The rule in words."""
    kept = []
    if keep is not None:
        count = max(keep, 1)
        kept.append("the newest commit" if count == 1 else f"the newest {count} commits")
    if older_than is not None:
        kept.append(f"commits younger than {_spelled(older_than)}")
    return f"to be kept: {' and '.join(kept)} of every branch, and what branches share"


def _spelled(duration: timedelta) -> str:
    seconds = int(duration.total_seconds())
    for unit in ("weeks", "days", "hours", "minutes"):
        size = int(timedelta(**{unit: 1}).total_seconds())
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit.removesuffix('s') if seconds == size else unit}"
    return f"{seconds} seconds"
